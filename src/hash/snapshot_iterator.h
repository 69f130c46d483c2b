// snapshot_iterator.h: every pair of a hash engine as of one instant, read while writers go on.
//
//   Open()       locks all partitions at once: the instant     no thread is inside a batch
//   Next()       locks one partition at a time, for a few chains, and copies their pairs
//   destructor   locks all partitions at once
//
// Writers save the pairs that they are about to change and that are not walked yet; before_images.h
// has the protocol of one table, and the argument. The instant is the same for all tables: an
// atomic batch holds all its partitions from its first write to its last, so the iterator sees it
// whole or not at all.
//
// Pairs are given with their deadline, also when it has passed: a write that found a pair before
// its deadline may be replayed on what the iterator gave.
//
// Cost. While no iterator is open, each write has a branch that is never taken. An iterator hashes
// and copies every pair. The pairs that writers save are charged to the budget, at most all pairs;
// what Next() returns is not: some hundred KiB, or the pairs of one chain.
// Memory. If the budget has no room for pairs that must be saved, or for writes (which
// Engine::Maintain finds out), the iterator is lost: the saved pairs are freed, partition by
// partition as writers and upkeep get there, and Next() returns an error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hash/before_images.h"
#include "hash/core.h"
#include "skep/scratch.h"

namespace skep::hash {

// Thread safety: one owner. Must end before the engine.
class SnapshotIterator final : public PairIterator {
 public:
  // Opens an iterator; the instant lies within the call. Only one can be open.
  //   kUnavailable  another one is open
  static Result<std::unique_ptr<PairIterator>> Open(Core& core, uint64_t now_ms);
  ~SnapshotIterator() override;
  SnapshotIterator(const SnapshotIterator&) = delete;
  SnapshotIterator& operator=(const SnapshotIterator&) = delete;

  // Returns the next pairs, in no order; none at the end. They are valid until the next call.
  //   kSnapshotTooOld  there was no memory to save what writers changed; all later calls fail too
  Result<std::span<const Pair>> Next() override;

 private:
  static constexpr int kChainsALock = 8;
  static constexpr size_t kPairsMax = 1024;
  static constexpr size_t kBytesMax = 256 * 1024;

  explicit SnapshotIterator(Core& core);
  bool HasEnough() const { return pairs_.size() >= kPairsMax || scratch_.used() >= kBytesMax; }
  bool TakeSome();

  Core& core_;
  SnapshotIteratorState state_;
  std::vector<std::unique_ptr<BeforeImages>> images_;  // one of each partition
  bool is_open_ = false;
  size_t partition_ = 0;  // partitions before this one are done
  std::vector<Pair> pairs_;
  Scratch scratch_;
};

}  // namespace skep::hash
