// write_window.h: which of the latest marked writes of a client are not answered yet.
//
// The server keeps the replies of a client's last 1024 marked writes (server/reply_memory.h). If a
// write is still unanswered when so many newer ones have been sent, it could be forgotten, and then
// nobody could tell whether it was done. So a write is sent only while it is less than kMax places
// behind the oldest unanswered one:
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
  // Takes a place, for which there must be room. Returns it; never 0.
  uint64_t Open() {
    waits_.set(next_ % kMax);
    return next_++;
  }
  // The write at that place was answered, or was given up.
  void Close(uint64_t place) {
    waits_.reset(place % kMax);
    while (oldest_ < next_ && !waits_[oldest_ % kMax]) ++oldest_;
  }

 private:
  uint64_t oldest_ = 1;
  uint64_t next_ = 1;
  std::bitset<kMax> waits_;  // bit `place % kMax`, from oldest_ to next_
};

}  // namespace skep::client
