// atomic_points.h: atomic batches of points, whose keys are all known beforehand.
//
// The leaves of all keys are locked, also of those that are only read; then the requests are
// performed, and their changes are written.
//
// Paths. The keys go down in windows, in their order (look_ahead.h), a window after the leaves of
// the one before are locked. That is only reading, and a place it has found may go out of date:
// then its key is looked for from the root. A leaf that is locked as it was found is the newest of
// its LID and stays so; so a place that holds and is the leaf locked last needs no other lock, and
// no key between two keys of one leaf belongs to another one. Nothing is detached between the look
// and the lock: an exclusive writer that detaches waits until this operation, begun before the
// look, is over (P1).
//
// Who waits for whom. A batch waits, holding nothing, for the writes that have a turn at its first
// leaf; then for each of its leaves' locks, holding those to the left. A lock is held by a write of
// one key, by a change of structure or by another atomic batch: none of them waits for anything but
// locks further right, so the wait ends with their operations. Threads that want to write into one
// of its leaves wait for the batch, and so does an exclusive writer, until the batch is done or has
// seen the phase. A batch of points stops no writers, and readers wait for none of its locks.
//
// atomic_batch.h says what bounds its tries.
//
// Cost: sorting the keys. A batch allocates nothing if its thread has executed one of as many keys
// before, up to kKeysKept, and no leaf is merged.
#pragma once

#include "btree/atomic_batch.h"

namespace skep::btree {

// Owner: one execution of one batch.
template <class Layout>
class AtomicPoints final : public AtomicBatch<Layout> {
 public:
  explicit AtomicPoints(const AtomicContext<Layout>& context) : AtomicBatch<Layout>(context) {}

 private:
  using Base = AtomicBatch<Layout>;
  using Base::batch_;
  using Base::core_;
  using Base::lists_;
  using Base::now_ms_;

  Attempt Try() override;
  KeyState& StateOf(std::string_view key) override;
  KeyState& OwnState(uint32_t index) override { return lists_.states[lists_.places[index]]; }
  const KeyState* Find(std::string_view key) override;

  void ListNamed();
  void ListStates();
};

}  // namespace skep::btree
