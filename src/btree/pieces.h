// pieces.h: values that lie in pieces, so that a change of a part copies no more than that part.
//
//   stub in the node -> table:   | born, 8 | address of piece 0, 8 | address of piece 1, 8 | ...
//                       piece:   | born, 8 | pins, 8 | kPieceBytes bytes |     the last one has the
//                                                                              rest
//
// How a value lies follows from its size: one of more than kContiguousMax bytes is in pieces.
//
// Nothing that was published changes. A change of a part makes a new table and new ones of the
// pieces that it touches; the other pieces belong to the tables before and after it. So readers at
// any version find the bytes of their version, without locks, as with every outside block.
//
// The owner of a piece. A table and all its pieces are named by the one item of the key that names
//   the table (layout.h, BlocksOf). When an item that names another table replaces it, what the new
//   table does not name leaves the tree at the version of that item: the old table always, and the
//   pieces that were changed. A piece is seen from its own `born` on, which may be long before that
//   of the table: so a piece that snapshots need because of older tables is kept for them when the
//   last of its tables leaves (reclaim.h).
//
// Cost. A change copies the table, 8 bytes for each 16 KiB of the value, and the pieces that it
// touches: so of the largest value, 64 MiB, less than 64 KiB for a change of one byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/arena.h"
#include "btree/stored.h"
#include "engine/value_parts.h"

namespace skep::btree {

// Reads a value in pieces. Thread safety: a view; the caller's epoch protects what it reads.
class Pieces final : public ValueParts {
 public:
  Pieces(const Arena& arena, const StoredValue& value) : Pieces(arena, BlockOf(value)) {}
  Pieces(const Arena& arena, const OutsideBlock& table)
      : arena_(arena), table_(table.at), size_(table.value_bytes) {}

  size_t size() const override { return size_; }
  void Read(size_t offset, std::span<char> to) const override;

  size_t count() const { return PiecesOf(size_); }
  ArenaAddress address(size_t piece) const;
  // The bytes of the value that the piece has.
  std::span<const char> bytes(size_t piece) const;
  OutsideBlock block(size_t piece) const;

 private:
  const Arena& arena_;
  const ArenaAddress table_;
  const size_t size_;
};

// How many bytes of a value of `size` bytes a piece of it has.
constexpr size_t PieceBytesOf(size_t size, size_t piece) {
  return size - piece * kPieceBytes < kPieceBytes ? size - piece * kPieceBytes : kPieceBytes;
}

// At most how many bytes a change of a value copies, of those that it does not give itself.
inline size_t BytesToEdit(const PartsEffect& effect) {
  return PiecesOf(effect.size) * sizeof(ArenaAddress) + (effect.edits.size() + 1) * kPieceBytes;
}

// Appends the pieces of the tables among the blocks, behind all of them.
void AddPieces(const Arena& arena, std::vector<OutsideBlock>* blocks);

// Appends the blocks of the outside value `before` that `after`, which replaces it, does not name.
// `after` is null if the value is erased.
void AddReplaced(const Arena& arena, const StoredValue& before, const StoredValue* after,
                 std::vector<OutsideBlock>* blocks);

// Appends the pieces of the tables among `gone` that no table of `made` names.
void AddPiecesGone(const Arena& arena, std::span<const OutsideBlock> made,
                   std::vector<OutsideBlock>* gone);

}  // namespace skep::btree
