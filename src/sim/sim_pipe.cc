#include "sim/sim_pipe.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace skep {

uint64_t SimPipe::InOrder(uint64_t arrival_ns) {
  last_arrival_ns_ = std::max(last_arrival_ns_, arrival_ns);
  return last_arrival_ns_;
}

uint64_t SimPipe::Send(std::string_view bytes, uint64_t arrival_ns) {
  SKEP_CHECK(!finished() && bytes.size() <= room());
  const uint64_t arrival = InOrder(arrival_ns);
  if (cut_) return arrival;
  held_ += bytes.size();
  segments_.push_back({arrival, std::string(bytes)});
  return arrival;
}

uint64_t SimPipe::Finish(uint64_t arrival_ns) {
  SKEP_CHECK(!finished());
  finished_ = true;
  const uint64_t arrival = InOrder(arrival_ns);
  if (!cut_) end_ns_ = arrival;
  return arrival;
}

bool SimPipe::HasBytes(uint64_t now_ns) const {
  return !segments_.empty() && segments_.front().arrival_ns <= now_ns;
}

size_t SimPipe::Read(char* to, size_t bytes, uint64_t now_ns) {
  size_t done = 0;
  while (done < bytes && HasBytes(now_ns)) {
    const std::string& front = segments_.front().bytes;
    const size_t count = std::min(bytes - done, front.size() - front_read_);
    memcpy(to + done, front.data() + front_read_, count);
    done += count;
    front_read_ += count;
    if (front_read_ == front.size()) {
      segments_.pop_front();
      front_read_ = 0;
    }
  }
  held_ -= done;
  return done;
}

void SimPipe::Cut(uint64_t now_ns) {
  cut_ = true;
  if (end_ns_ > now_ns) end_ns_ = kNever;
  while (!segments_.empty() && segments_.back().arrival_ns > now_ns) {
    held_ -= segments_.back().bytes.size();
    segments_.pop_back();
  }
}

}  // namespace skep
