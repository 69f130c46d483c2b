#include "hash/before_images.h"

#include <iterator>
#include <new>

namespace skep::hash {

void BeforeImages::Save(const Table& table, Position position) {
  if (state_.is_lost.load(std::memory_order_relaxed)) return saved_.clear();
  if (position < done_) return;
  const auto next = IntervalFrom(position);
  if (next != saved_.end() && next->first <= position) return;
  const Table::Chain chain = table.ChainAt(position);
  Position begin = std::max(chain.begin, done_);
  Position end = chain.end;
  if (next != saved_.begin()) begin = std::max(begin, std::prev(next)->second.end);
  if (next != saved_.end()) end = std::min(end, next->first);
  constexpr size_t kNode = sizeof(Intervals::value_type) + 4 * sizeof(void*);
  size_t bytes = 0;
  ForEachIn(table, chain.index, begin, end, [&](const Pair& pair) {
    bytes += sizeof(Header) + pair.key.size() + pair.value.size();
  });
  if (!state_.budget.HasRoomFor(kNode + bytes + SnapshotIteratorState::kBytesLeft)) return GiveUp();
  try {
    std::pmr::vector<char> pairs(&state_.memory);
    pairs.reserve(bytes);
    ForEachIn(table, chain.index, begin, end, [&](const Pair& pair) { Append(pair, &pairs); });
    saved_.emplace_hint(next, begin, Saved{.end = end, .pairs = std::move(pairs)});
  } catch (const std::bad_alloc&) {
    GiveUp();  // the iterator is given up, not the write
  }
}

void BeforeImages::SaveAll(const Table& table) {
  for (Position at = done_; at < kPositionEnd; at = IntervalFrom(at)->second.end) {
    Save(table, at);
    if (state_.is_lost.load(std::memory_order_relaxed)) return saved_.clear();
  }
}

BeforeImages::Intervals::iterator BeforeImages::IntervalFrom(Position position) {
  const auto behind = saved_.upper_bound(position);
  if (behind == saved_.begin()) return behind;
  const auto before = std::prev(behind);
  return before->second.end > position ? before : behind;
}

void BeforeImages::Append(const Pair& pair, std::pmr::vector<char>* to) {
  const Header header = {.deadline_ms = pair.deadline_ms,
                         .key_bytes = static_cast<uint32_t>(pair.key.size()),
                         .value_bytes = static_cast<uint32_t>(pair.value.size())};
  const auto* const bytes = reinterpret_cast<const char*>(&header);
  to->insert(to->end(), bytes, bytes + sizeof(header));
  to->insert(to->end(), pair.key.begin(), pair.key.end());
  to->insert(to->end(), pair.value.begin(), pair.value.end());
}

void BeforeImages::GiveWay() {
  if (state_.is_lost.load(std::memory_order_relaxed)) return saved_.clear();
  if (!state_.budget.HasRoomFor(SnapshotIteratorState::kBytesLeft)) GiveUp();
}

void BeforeImages::GiveUp() {
  state_.is_lost.store(true, std::memory_order_relaxed);
  saved_.clear();
}

}  // namespace skep::hash
