#include "tests/linearizability/search.h"

#include <algorithm>

namespace skep::linearizability {

SegmentSearch::SegmentSearch(Model& model, std::vector<Event> events, uint32_t pending,
                             uint32_t bits, Budget& budget)
    : model_(model),
      budget_(budget),
      pending_(pending),
      configuration_(1 + (bits + 31) / 32),
      memo_(configuration_.size()) {
  linked_.push_back(Event{});
  linked_.insert(linked_.end(), events.begin(), events.end());
  std::vector<int32_t> call_of(bits, kEnd);
  const int32_t count = static_cast<int32_t>(linked_.size());
  for (int32_t i = 0; i < count; ++i) {
    Event& event = linked_[i];
    event.previous = i - 1;
    event.next = i + 1 < count ? i + 1 : kEnd;
    if (i == kHead) continue;
    if (event.is_return) {
      linked_[call_of[event.bit]].partner = i;
      ++answered_;
    } else {
      call_of[event.bit] = i;
    }
  }
}

void SegmentSearch::Run(const Frontier& start, bool first_only) {
  Begin(start);
  int32_t at = events_[kHead].next;
  while (true) {
    if (budget_.is_spent()) return;
    if (left_ == 0) {
      NoteEnd();
      if (first_only) return;
    } else if (at != kEnd && !events_[at].is_return) {
      at = TryToPlace(at) ? events_[kHead].next : events_[at].next;
      continue;
    } else if (at != kEnd) {
      NoteStuck(at, start);
    }
    const std::optional<int32_t> next = TakeBack();
    if (!next) return;
    at = *next;
  }
}

void SegmentSearch::Begin(const Frontier& start) {
  events_ = linked_;
  left_ = answered_;
  placed_.clear();
  std::ranges::fill(configuration_, 0);
  configuration_[0] = start.state;
  for (int32_t i = events_[kHead].next; i != kEnd; i = linked_[i].next) {
    const Event& event = events_[i];
    if (event.bit >= pending_ || !start.placed[event.bit]) continue;
    FlipBit(event.bit);
    Unlink(i);
  }
  memo_.Intern(configuration_);
}

// Places the operation of this call if its answers are the recorded ones and it leads to a new
// configuration.
bool SegmentSearch::TryToPlace(int32_t call) {
  ++budget_.steps;
  const Event& event = events_[call];
  const StateId before = configuration_[0];
  const std::optional<StateId> after = model_.Act(before, event.operation);
  if (!after) return false;
  const bool is_pending = event.bit < pending_;
  if (is_pending && *after == before) return false;  // (4) of checker.h
  configuration_[0] = *after;
  FlipBit(event.bit);
  if (!memo_.Intern(configuration_).fresh) {
    configuration_[0] = before;
    FlipBit(event.bit);
    return false;
  }
  placed_.push_back({.call = call, .before = before});
  Unlink(call);
  if (!is_pending) {
    Unlink(event.partner);
    --left_;
  }
  return true;
}

// Takes the last operation back. Returns the event to go on from; nullopt if none was placed.
std::optional<int32_t> SegmentSearch::TakeBack() {
  if (placed_.empty()) return std::nullopt;
  const auto [call, before] = placed_.back();
  placed_.pop_back();
  const Event& event = events_[call];
  configuration_[0] = before;
  FlipBit(event.bit);
  if (event.bit >= pending_) {
    Relink(event.partner);
    ++left_;
  }
  Relink(call);
  return event.next;
}

void SegmentSearch::NoteStuck(int32_t at_return, const Frontier& start) {
  const uint64_t position = static_cast<uint64_t>(at_return) + 1;
  if (position <= furthest_.stuck_at) return;
  furthest_ = {.stuck_at = position,
               .culprit = events_[at_return].operation,
               .start = start,
               .state = configuration_[0],
               .order = {}};
  for (const Placed& placed : placed_) {
    furthest_.order.push_back(events_[placed.call].operation);
  }
}

void SegmentSearch::NoteEnd() {
  Frontier end{.state = configuration_[0], .placed = std::vector<bool>(pending_)};
  for (uint32_t bit = 0; bit < pending_; ++bit) {
    end.placed[bit] = (configuration_[1 + bit / 32] >> (bit % 32) & 1) != 0;
  }
  if (std::ranges::find(ends_, end) == ends_.end()) ends_.push_back(std::move(end));
}

void SegmentSearch::Unlink(int32_t at) {
  const Event& event = events_[at];
  events_[event.previous].next = event.next;
  if (event.next != kEnd) events_[event.next].previous = event.previous;
}

// Undoes the last Unlink that is not undone yet.
void SegmentSearch::Relink(int32_t at) {
  const Event& event = events_[at];
  events_[event.previous].next = at;
  if (event.next != kEnd) events_[event.next].previous = at;
}

}  // namespace skep::linearizability
