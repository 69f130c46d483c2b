// sim_pipe.h: one direction of a simulated connection.
//
//   sender --> [segment, arrives at t3] [t2] [t1 <= now: can be read] --> receiver
//
// A pipe holds at most `capacity` bytes, in flight and unread together; bytes that are read make
// room at once. Invariant P1: arrivals never decrease from segment to segment, the end included, so
// bytes are read in the order they were sent.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace skep {

class SimPipe {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  explicit SimPipe(size_t capacity) : capacity_(capacity) {}

  // For the sender. An `arrival_ns` before an earlier arrival counts as that one (P1); returns the
  // instant of arrival. The pipe must not be finished, and bytes.size() <= room().
  uint64_t Send(std::string_view bytes, uint64_t arrival_ns);
  uint64_t Finish(uint64_t arrival_ns);
  size_t room() const { return capacity_ - held_; }
  bool finished() const { return finished_; }
  uint64_t last_arrival_ns() const { return last_arrival_ns_; }

  // For the receiver, at an instant.
  size_t Read(char* to, size_t bytes, uint64_t now_ns);
  bool HasBytes(uint64_t now_ns) const;
  // Returns whether everything was read and the sender's end has arrived.
  bool Ended(uint64_t now_ns) const { return segments_.empty() && end_ns_ <= now_ns; }

  // Returns the number of bytes sent and not read, arrived or not.
  size_t held() const { return held_; }
  // Loses what has not arrived, the end included, and everything that is sent from now on.
  void Cut(uint64_t now_ns);

 private:
  struct Segment {
    uint64_t arrival_ns;
    std::string bytes;
  };

  uint64_t InOrder(uint64_t arrival_ns);

  size_t capacity_;
  size_t held_ = 0;
  std::deque<Segment> segments_;
  size_t front_read_ = 0;  // number of bytes of the first segment that were read
  uint64_t last_arrival_ns_ = 0;
  bool finished_ = false;
  bool cut_ = false;
  uint64_t end_ns_ = kNever;  // when the end arrives
};

}  // namespace skep
