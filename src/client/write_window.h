// write_window.h: which of the latest writes that a client marked were not answered yet.
//
// The server keeps the replies of a client's last 1024 marked writes (server/reply_memory.h). A
// write that is still unanswered when so many newer ones have been sent could be forgotten, and
// then nobody could tell what became of it. So a write is sent only while it is less than kMax
// places behind the oldest one that is unanswered:
//
//   place  oldest_                                next_
//          | waits | done | done | waits | done |       <- at most kMax from oldest_ to next_
//
// A write keeps its place when it is sent again. Thread safety: none; one owner.
#pragma once

#include <bitset>
#include <cstdint>

namespace skep::client {

class WriteWindow {
 public:
  static constexpr uint64_t kMax = 1000;

  bool HasRoom() const { return next_ - oldest_ < kMax; }
  // Takes a place; there must be room. Never 0.
  uint64_t Open() {
    waits_.set(next_ % kMax);
    return next_++;
  }
  // The write at that place was answered, or nobody waits for its answer any more.
  void Close(uint64_t place) {
    waits_.reset(place % kMax);
    while (oldest_ < next_ && !waits_[oldest_ % kMax]) ++oldest_;
  }

 private:
  uint64_t oldest_ = 1;
  uint64_t next_ = 1;
  std::bitset<kMax> waits_;  // by place % kMax, from oldest_ to next_
};

}  // namespace skep::client
