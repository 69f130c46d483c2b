// edited_pieces.h: a value in pieces as an atomic batch has changed it, before it is stored.
//
//   pieces of the tree   | 0 | 1 | 2 | 3 |            shared, never changed
//   copies               | - | * | - | - | - | * |    `-`: the tree's piece; behind those: zeros
//
// However many changes a batch makes of one value, each copies the pieces that it touches, at most
// once in a part of the batch, and a table of 16 bytes a piece.
//
// Taking back. What a part of the batch has changed may have to be taken back. So a part that
//   changes a value which an earlier part has changed works on an object of its own, made of the
//   earlier one, and copies again the pieces that it touches: the earlier object stays as it is.
//   Objects that are older than that are of no use any more: their tables are freed, so a value
//   has two tables at most.
//
// Cost, in time and in bytes of the scratch. Construction: the table, on the heap. Apply: of the
// bytes that it writes, and kPieceBytes for each piece of which it writes a part. Memory of pieces
// that are written whole is not taken: their bytes are referred to.
//
// Thread safety: the thread that executes the batch, in the epoch in which it has found the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "btree/pieces.h"
#include "engine/value_parts.h"
#include "skep/scratch.h"

namespace skep::btree {

class EditedPieces final : public ValueParts {
 public:
  // The value as the tree has it. `part` is the number of the part of the batch that changes it.
  EditedPieces(const Arena& arena, const StoredValue& value, uint32_t part);
  // The value as an earlier part has made it.
  EditedPieces(EditedPieces& before, uint32_t part);

  size_t size() const override { return size_; }
  void Read(size_t offset, std::span<char> to) const override;

  uint32_t part() const { return part_; }
  // Changes the value. The bytes of the edits, and the scratch, must outlive the object.
  void Apply(const PartsEffect& effect, Scratch& scratch);

  // Whether the piece has other bytes than that of the tree, or there is none.
  bool HasChanged(size_t piece) const { return copies_[piece].bytes != nullptr || IsNew(piece); }
  // The bytes of the value that the piece has.
  std::string_view bytes(size_t piece) const;

 private:
  // The bytes of a piece that has changed. Those of a piece that was written whole are the edit's.
  struct Copy {
    const char* bytes = nullptr;
    char* own = nullptr;  // the same, if this object has made the copy, with room for kPieceBytes
  };

  bool IsNew(size_t piece) const { return piece >= pieces_.count(); }
  char* Own(size_t piece, Scratch& scratch);
  void Grow(size_t size, Scratch& scratch);
  void Write(const PartEdit& edit, Scratch& scratch);

  const Pieces pieces_;
  const uint32_t part_;
  size_t size_;
  std::vector<Copy> copies_;
  EditedPieces* before_ = nullptr;  // of which this object was made; it lives as long as this one
};

}  // namespace skep::btree
