// pinned_pieces.h: pieces of values (pieces.h) that are kept beyond a batch, one by one.
//
// A pin keeps the pieces that it is made of, and no table, node or version: who holds one for long
// keeps those bytes from being used again and nothing else.
//
//    63      62                                  0    the word `pins` of a piece
//   +------+--------------------------------------+   D: the piece has left the tree, and its owner
//   |  D   |          pins that live              |      there, the freer, has nothing more to do
//   +------+--------------------------------------+      with it
//
// Roles
//   reader  Pin(): finds the table of a value within its epoch, and adds 1 to each piece's word.
//   freer   Disown(): sets D of a piece that no epoch needs (reclaim.h). If there were no pins, it
//           frees the piece; else it forgets it.
//   holder  ~PinnedPieces(): takes 1 from each word. Of a piece whose word is D alone then, it was
//           the last one: it gives the piece to UnpinnedPieces, from where the freer frees it.
//
// Why a piece is freed once, and not while it is pinned
//   (1) A word is changed by atomic read-modify-writes alone, so these have one order.
//   (2) No pin is made after D: a reader adds 1 within an epoch in which it has found the table,
//       and the freer sets D when all such epochs are over (E of versions.h).
//   (3) So if there are pins when D is set, exactly one holder takes the last of them after D, and
//       sees D alone; if there are none, nobody comes after the freer. The changes are acq_rel, so
//       what the holders have read of the bytes is done when the piece is freed.
//
// Progress: nobody waits, but for the lock of UnpinnedPieces, which is held for a constant time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/mutex.h"
#include "btree/pieces.h"
#include "btree/stored.h"
#include "skep/pinned_value.h"

namespace skep::btree {

// The work that a pin of a piece counts as (Batch::work_bytes): a line of memory.
inline constexpr size_t kPinWorkBytes = 64;

// Pieces that have left the tree and are not pinned any more. Thread-safe.
class UnpinnedPieces {
 public:
  using Pieces = std::list<std::vector<OutsideBlock>>;

  // Takes over one list of at least one piece. Allocates nothing.
  void Give(Pieces&& pieces);
  // Takes a piece out. False: there is none.
  bool Take(OutsideBlock* piece);
  bool is_empty() const { return !has_some_.load(std::memory_order_relaxed); }

 private:
  Mutex mutex_;
  Pieces pieces_ SKEP_GUARDED_BY(mutex_);
  std::atomic<bool> has_some_{false};  // changed under mutex_
};

// The bytes from `begin` to `end` of a value in pieces, which the constructor pins.
class PinnedPieces final : public PinnedValue {
 public:
  // The caller is in the epoch in which it has found the value. `arena` and `unpinned` must outlive
  // the object. Requires begin < end.
  PinnedPieces(const Arena& arena, UnpinnedPieces& unpinned, const Pieces& value, size_t begin,
               size_t end);
  ~PinnedPieces() override;

  size_t size() const override { return size_; }
  std::string_view From(size_t offset) const override;
  size_t count() const { return pieces_.front().size(); }

 private:
  const Arena& arena_;
  UnpinnedPieces& unpinned_;
  UnpinnedPieces::Pieces pieces_;  // one list, so that giving it away allocates nothing
  const size_t begin_;             // of the value, in the first piece
  const size_t size_;
};

// Called by the freer: the piece leaves the tree. Returns whether it is pinned by nobody, and is
// to be freed by the caller.
bool Disown(const Arena& arena, ArenaAddress piece);

}  // namespace skep::btree
