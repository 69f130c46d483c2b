// snapshot_iterator.h: every pair of a hash engine as of one instant, read while writers go on.
//
//   Open()     locks all partitions at once: the instant       nobody is inside a batch
//   Next()     locks one partition at a time, for a few chains, and copies their pairs
//   ~          locks all partitions at once
//
// Writers save the pairs that they are about to change, of what is not walked yet; before_images.h
// has the protocol of one table, and the argument. The instant is one of all tables: an atomic
// batch holds all its partitions from its first write to its last, so it is seen whole or not at
// all.
//
// Pairs are given with their deadline, whether or not it has passed: a write that has found one
// before its deadline may be replayed on what the iterator gave.
//
// Cost. No iterator is open: a branch that is never taken, for each write. An iterator: a hash and
// a copy of every pair. Memory: what writers save is charged to the budget, at most all pairs; what
// Next() gives is not, some hundred KiB, or the pairs of one chain.
// The budget's end: if there is no room for what must be saved, or for those who store (found by
// Engine::Maintain), the iterator is lost: what was saved is freed, piece by piece as writers and
// upkeep come by, and Next() says so.
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
  // The instant lies within the call. One at a time.
  //   kUnavailable  another one is open
  static Result<std::unique_ptr<PairIterator>> Open(Core& core, uint64_t now_ms);
  ~SnapshotIterator() override;
  SnapshotIterator(const SnapshotIterator&) = delete;
  SnapshotIterator& operator=(const SnapshotIterator&) = delete;

  // The next pairs, in no order; none at the end. They are valid until the next call.
  //   kSnapshotTooOld  there was no memory for what writers have changed: from now on, always
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
  std::vector<std::unique_ptr<BeforeImages>> images_;  // of each partition
  bool is_open_ = false;
  size_t partition_ = 0;  // those before are done
  std::vector<Pair> pairs_;
  Scratch scratch_;
};

}  // namespace skep::hash
