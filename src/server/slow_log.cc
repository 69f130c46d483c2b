#include "server/slow_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace skep {
namespace {

constexpr size_t kWordsMax = 32;
constexpr size_t kWordBytesMax = 128;

std::string WordToLog(std::string_view word) {
  if (word.size() <= kWordBytesMax) return std::string(word);
  return fmt::format("{}... ({} more bytes)", word.substr(0, kWordBytesMax),
                     word.size() - kWordBytesMax);
}

}  // namespace

bool IsSecret(std::span<const std::string_view> args, size_t index) {
  if (index == 0) return false;
  if (EqualsIgnoringCase(args[0], "auth")) return true;
  if (EqualsIgnoringCase(args[0], "hello")) return index > 1;
  if (index == 1) return false;
  const std::string_view before = args[index - 1];
  if (EqualsIgnoringCase(args[0], "acl")) return EqualsIgnoringCase(args[1], "setuser");
  if (EqualsIgnoringCase(args[0], "migrate")) {
    return EqualsIgnoringCase(before, "auth") || EqualsIgnoringCase(before, "auth2") ||
           EqualsIgnoringCase(args[index - 2], "auth2");
  }
  return EqualsIgnoringCase(args[0], "config") &&
         (EqualsIgnoringCase(before, "requirepass") || EqualsIgnoringCase(before, "masterauth") ||
          EqualsIgnoringCase(before, "masteruser"));
}

std::vector<std::string> WordsToLog(std::span<const std::string_view> args) {
  std::vector<std::string> words;
  const size_t whole = args.size() > kWordsMax ? kWordsMax - 1 : args.size();
  for (size_t i = 0; i < whole; ++i) {
    words.push_back(IsSecret(args, i) ? std::string(kSecret) : WordToLog(args[i]));
  }
  if (args.size() > whole)
    words.push_back(fmt::format("... ({} more arguments)", args.size() - whole));
  return words;
}

void SlowLog::Add(Entry entry, size_t count_max) {
  const MutexLock lock(mutex_);
  entry.id = next_id_++;
  entries_.push_front(std::move(entry));
  while (entries_.size() > count_max) entries_.pop_back();
}

std::vector<SlowLog::Entry> SlowLog::Newest(size_t count_max) const {
  const MutexLock lock(mutex_);
  const auto count = static_cast<std::ptrdiff_t>(std::min(count_max, entries_.size()));
  return {entries_.begin(), entries_.begin() + count};
}

size_t SlowLog::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

void SlowLog::Clear() {
  const MutexLock lock(mutex_);
  entries_.clear();
}

void LatencyMonitor::Add(std::string_view event, uint64_t unix_s, uint64_t ms) {
  const MutexLock lock(mutex_);
  const auto found = events_.find(event);
  Points& points = found != events_.end() ? found->second : events_[std::string(event)];
  points.ms_max = std::max(points.ms_max, ms);
  if (!points.latest.empty() && points.latest.back().unix_s == unix_s) {
    points.latest.back().ms = std::max(points.latest.back().ms, ms);
    return;
  }
  points.latest.push_back({.unix_s = unix_s, .ms = ms});
  if (points.latest.size() > kPointsMax) points.latest.pop_front();
}

std::vector<LatencyMonitor::Event> LatencyMonitor::Latest() const {
  const MutexLock lock(mutex_);
  std::vector<Event> all;
  for (const auto& [name, points] : events_) {
    all.push_back({.name = name, .latest = points.latest.back(), .ms_max = points.ms_max});
  }
  return all;
}

std::vector<LatencyMonitor::Point> LatencyMonitor::History(std::string_view event) const {
  const MutexLock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return {};
  return {found->second.latest.begin(), found->second.latest.end()};
}

size_t LatencyMonitor::Reset(std::span<const std::string_view> events) {
  const MutexLock lock(mutex_);
  if (events.empty()) {
    const size_t count = events_.size();
    events_.clear();
    return count;
  }
  size_t count = 0;
  for (const std::string_view event : events) {
    const auto found = events_.find(event);
    if (found == events_.end()) continue;
    events_.erase(found);
    ++count;
  }
  return count;
}

}  // namespace skep
