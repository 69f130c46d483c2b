#include "hash/cursor_scanner.h"

#include <algorithm>
#include <mutex>

#include "engine/point.h"

namespace skep::hash {

void CursorScanner::Scan() {
  const uint64_t end = core_.partitions.size() << kIndexBits;
  uint64_t cursor = request_.cursor;
  if (cursor >= end) return out_.Refuse(slot_, {Code::kInvalidArgument, "invalid cursor"});
  out_.BeginItems(slot_);
  const auto is_full = [&] { return HasEnough() || visits_ >= batch_.scan_visits_max(); };
  do {
    Partition& partition = *core_.partitions[cursor >> kIndexBits];
    const std::lock_guard locked(partition.lock);
    const uint64_t now_ms = core_.now.Latest();
    const uint64_t first = cursor & ~LowBits(kIndexBits);
    Position position = cursor & LowBits(kIndexBits);
    partition.table.PrefetchChains(position, kChainsALock);
    int chains = 0;
    do {
      position = WalkChain(partition.table, position, now_ms);
    } while (position < kPositionEnd && ++chains < kChainsALock && !is_full());
    cursor = first + position;
  } while (cursor < end && !is_full());
  out_.outcome(slot_).verdict = Verdict::kDone;
  out_.outcome(slot_).integer = cursor == end ? 0 : static_cast<int64_t>(cursor);
}

// Emits the keys of the chain at this position, from the position on, until the step has enough.
// Returns where to go on.
Position CursorScanner::WalkChain(const Table& table, Position from, uint64_t now_ms) {
  const Table::Chain chain = table.ChainAt(from);
  found_.clear();
  ++visits_;
  table.ForEachIn(chain.index, [&](const Pair& pair) {
    ++visits_;
    const Position position = PositionOf(HashOf(pair.key));
    if (position < from || HasExpired(pair.deadline_ms, now_ms)) return;
    found_.push_back({.position = position, .pair = pair});
  });
  std::ranges::sort(found_, {}, &Found::position);
  for (size_t i = 0; i < found_.size(); ++i) {
    const bool is_new = i > 0 && found_[i].position != found_[i - 1].position;
    if (is_new && HasEnough()) return found_[i].position;
    Give(found_[i].pair);
  }
  return chain.end;
}

void CursorScanner::Give(const Pair& pair) {
  const bool keys_only = request_.has(Request::kKeysOnly);
  out_.AddItem(slot_, {.key = pair.key, .value = keys_only ? std::string_view() : pair.value});
  ++items_;
  bytes_ += pair.key.size() + (keys_only ? 0 : pair.value.size());
}

}  // namespace skep::hash
