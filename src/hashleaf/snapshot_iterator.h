// snapshot_iterator.h: reads every pair of the engine as of one instant, leaf by leaf, while
// writers go on.
//
//   keys     0          from                                           end
//            |= walked =|.......|== image ==|...........|== image ==|...|
//
//   walked   the iterator has given their pairs
//   image    the pairs of the beginning of a leaf, in order, because it has changed since
//   else     the leaves still have the pairs, and the ranges, of the beginning
//
// Protocol. The iterator has a number; each leaf has that of the last iterator that is done with
// it.
//   open    locks all leaves: this is the instant. The iterator is open.
//   writer  before it changes, splits or merges a leaf whose number is not the iterator's: gives it
//           the number and, if it is not walked yet, keeps its pairs as an image
//           (LeafMutator::BeforeChange).
//   Next    locks the leaf that has `from`. If the leaf has the number, there is an image that
//           begins at `from`, which is taken; else the leaf is unchanged, is given the number, and
//           its pairs are taken.
//   close   sets the number of the open iterator to none.
//
// Why the iterator gives the pairs of the beginning, each once
//   (1) A leaf without the number has the range and pairs of the beginning: a thread that changes
//       either gives it the number first. A new leaf has the number of the one it comes from.
//   (2) An image is made of a leaf without the number, so by (1) of a leaf of the beginning. The
//       ranges of these are disjoint and cover all keys: `from` is always the first key of one.
//   (3) Before a leaf has the number none of its keys is given; it gets the number once, with an
//       image, or with its pairs being given.
// An atomic batch holds all its leaves from its first change to its last, so it is seen whole or
// not at all.
//
// Memory: images are charged to the budget, at most all pairs. If there is no room for one, the
// iterator is lost and Next returns an error; the writer goes on.
#pragma once

#include <memory>
#include <vector>

#include "hashleaf/core.h"

namespace skep::hashleaf {

// Thread safety: one owner. Must end before the engine.
template <typename K>
class SnapshotIterator final : public PairIterator {
 public:
  // Opens an iterator; the instant lies within the call. Only one can be open.
  //   kUnavailable  another one is open
  static Result<std::unique_ptr<PairIterator>> Open(Core<K>& core, uint64_t now_ms);
  ~SnapshotIterator() override;
  SnapshotIterator(const SnapshotIterator&) = delete;
  SnapshotIterator& operator=(const SnapshotIterator&) = delete;

  // Returns the pairs of one leaf or more, in order; none at the end. Valid until the next call.
  //   kSnapshotTooOld  there was no memory to save what writers changed; all later calls fail too
  Result<std::span<const Pair>> Next() override;

 private:
  explicit SnapshotIterator(Core<K>& core) : core_(core) {}
  Status TakeLeaf();

  Core<K>& core_;
  uint64_t id_ = 0;
  std::vector<char> bytes_;
  std::vector<Pair> pairs_;
};

extern template class SnapshotIterator<uint32_t>;
extern template class SnapshotIterator<uint64_t>;
extern template class SnapshotIterator<Key128>;

}  // namespace skep::hashleaf
