// before_images.h: the pairs of one table as they were when a snapshot iterator began, at those
// positions (position.h) where they have changed since.
//
//   positions   0            done                                                     end
//               |== walked ===|....|=== saved ===|..........|= saved =|................|
//
//   walked   the iterator has given their pairs
//   saved    the pairs of the beginning are here
//   else     the table still has the pairs of the beginning, and no others
//
// Protocol. All under the partition's lock.
//   writer    before it changes what is stored of a key (Table::BeforeChange): if the key's
//             position is neither walked nor saved, saves the pairs of that position, and of the
//             positions around it that are neither, as far as the key's chain goes.
//   iterator  takes the next interval, from `done` on: a saved one from this object, any other from
//             the table, as far as the chain goes; then `done` is the interval's end.
//
// Why the iterator gives the pairs of the beginning, each once
//   (1) At the beginning nothing is walked or saved, and the table has the pairs of the beginning.
//   (2) A position that is neither walked nor saved has the pairs of the beginning: a writer that
//       changed one of them would have saved it first. Splits and merges move pairs to other
//       buckets and give no key another position, so they do not count as changes.
//   (3) What a writer saves is of such positions, so by (2) the pairs of the beginning; and it
//       saves all pairs of those positions: a chain has all keys of its interval.
//   (4) So each position is walked once, with the pairs of the beginning, saved or from the table.
// Several partitions begin together while all are locked (snapshot_iterator.h).
//
// If the budget has no room for what a writer has to save, all saved pairs are dropped, and the
// iterator is lost and reports it; the writer goes on.
//
// Cost of a write while an iterator is open: finding its position, O(log intervals), and once for
// each chain a copy of its pairs. A write that deletes everything copies all pairs that are not
// walked yet, under all locks.
//
// Thread safety: the lock of the table's partition protects it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "engine/pair_iterator.h"
#include "hash/position.h"
#include "hash/table.h"

namespace skep::hash {

// What the before-images of all tables of one iterator share.
struct SnapshotIteratorState {
  explicit SnapshotIteratorState(MemoryBudget& the_budget)
      : budget(the_budget), memory(the_budget) {}

  // This much of the budget is left to writes.
  static constexpr uint64_t kBytesLeft = Arena::kSpanBytes;

  MemoryBudget& budget;
  BudgetedMemory memory;
  // Relaxed: a thread that needs pairs that were not saved looks under the lock of the writer that
  // did not save them.
  std::atomic<bool> is_lost{false};
};

class BeforeImages {
 public:
  // The state must outlive this object.
  explicit BeforeImages(SnapshotIteratorState& state) : state_(state), saved_(&state.memory) {}

  // Saves the pairs of a chain's unsaved positions; to be called before a pair at this position
  // changes.
  void Save(const Table& table, Position position);
  // Saves all unsaved pairs; to be called before all of them change.
  void SaveAll(const Table& table);

  Position done() const { return done_; }
  // Calls visit(pair) for the pairs of the beginning in the next interval, which is at most that of
  // one chain, now or when it was saved. done() is then its end. done() must be before
  // kPositionEnd.
  template <typename Visit>
  void Take(const Table& table, Visit visit);

  // Drops everything if the budget has no room left for writes: the iterator is lost.
  void GiveWay();

 private:
  // Stands before the key and value of each pair.
  struct Header {
    uint64_t deadline_ms;
    uint32_t key_bytes;
    uint32_t value_bytes;
  };
  // The pairs that an interval had at the beginning, one behind the other.
  struct Saved {
    Position end;
    std::pmr::vector<char> pairs;
  };
  using Intervals = std::pmr::map<Position, Saved>;  // by their first position

  // Calls visit(pair) for the pairs in [begin, end) of the chain at this bucket that were there at
  // the beginning.
  template <typename Visit>
  void ForEachIn(const Table& table, uint64_t index, Position begin, Position end,
                 Visit visit) const;
  template <typename Visit>
  static void ForEachOf(const Saved& saved, Visit visit);
  // Returns the first interval that ends behind this position.
  Intervals::iterator IntervalFrom(Position position);
  static void Append(const Pair& pair, std::pmr::vector<char>* to);
  void GiveUp();

  SnapshotIteratorState& state_;
  Position done_ = 0;
  Intervals saved_;  // disjoint; all begin at done_ or behind it
};

template <typename Visit>
void BeforeImages::Take(const Table& table, Visit visit) {
  const auto next = saved_.begin();
  if (next != saved_.end() && next->first == done_) {
    ForEachOf(next->second, visit);
    done_ = next->second.end;
    saved_.erase(next);
    return;
  }
  const Table::Chain chain = table.ChainAt(done_);
  const Position end = next == saved_.end() ? chain.end : std::min(chain.end, next->first);
  ForEachIn(table, chain.index, done_, end, visit);
  done_ = end;
}

template <typename Visit>
void BeforeImages::ForEachIn(const Table& table, uint64_t index, Position begin, Position end,
                             Visit visit) const {
  table.ForEachIn(index, [&](const Pair& pair) {
    const Position position = PositionOf(HashOf(pair.key));
    if (position >= begin && position < end) visit(pair);
  });
}

template <typename Visit>
void BeforeImages::ForEachOf(const Saved& saved, Visit visit) {
  for (std::string_view left(saved.pairs.data(), saved.pairs.size()); !left.empty();) {
    Header header;
    std::memcpy(&header, left.data(), sizeof(header));
    left.remove_prefix(sizeof(header));
    visit(Pair{.key = left.substr(0, header.key_bytes),
               .value = left.substr(header.key_bytes, header.value_bytes),
               .deadline_ms = header.deadline_ms});
    left.remove_prefix(size_t{header.key_bytes} + header.value_bytes);
  }
}

}  // namespace skep::hash
