// slow_log.h: the latest commands that took long, for SLOWLOG, and the times of the longest ones,
// for LATENCY.
//
// Only commands at or above a threshold come here, so that the mutex is not on the way of others.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace skep {

// Whether the word at `index` is a password, or may be one.
bool IsSecret(std::span<const std::string_view> args, size_t index);
inline constexpr std::string_view kSecret = "(redacted)";

// The words of a command as SLOWLOG tells them: at most 32, of at most 128 bytes each, the last of
// which say how much was left out. Passwords are replaced.
std::vector<std::string> WordsToLog(std::span<const std::string_view> args);

class SlowLog {
 public:
  struct Entry {
    uint64_t id = 0;  // rises from 0
    uint64_t unix_s = 0;
    uint64_t us = 0;  // how long it took
    std::vector<std::string> words;
    std::string peer, client_name;
  };

  // Gives the entry its id, and drops the oldest ones beyond `count_max`.
  void Add(Entry entry, size_t count_max);
  // The newest entries, at most `count_max`, the newest first.
  std::vector<Entry> Newest(size_t count_max) const;
  size_t size() const;
  void Clear();

 private:
  mutable Mutex mutex_;
  uint64_t next_id_ SKEP_GUARDED_BY(mutex_) = 0;
  std::deque<Entry> entries_ SKEP_GUARDED_BY(mutex_);  // the newest first
};

// Events that took long, each with its latest kPointsMax times: one point a second, with the
// longest time of that second.
class LatencyMonitor {
 public:
  static constexpr size_t kPointsMax = 160;
  struct Point {
    uint64_t unix_s = 0;
    uint64_t ms = 0;
  };
  struct Event {
    std::string name;
    Point latest;
    uint64_t ms_max = 0;
  };

  void Add(std::string_view event, uint64_t unix_s, uint64_t ms);
  // All events, by name.
  std::vector<Event> Latest() const;
  // The points of one event, the oldest first; none if there is no such event.
  std::vector<Point> History(std::string_view event) const;
  // Forgets these events, without names all of them. Returns how many there were.
  size_t Reset(std::span<const std::string_view> events);

 private:
  struct Points {
    std::deque<Point> latest;
    uint64_t ms_max = 0;
  };
  mutable Mutex mutex_;
  std::map<std::string, Points, std::less<>> events_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
