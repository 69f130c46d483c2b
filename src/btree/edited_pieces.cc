#include "btree/edited_pieces.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace skep::btree {
namespace {

constexpr std::array<char, kPieceBytes> kZeros{};

}  // namespace

EditedPieces::EditedPieces(const Arena& arena, const StoredValue& value, uint32_t part)
    : pieces_(arena, value), part_(part), size_(pieces_.size()), copies_(pieces_.count()) {}

EditedPieces::EditedPieces(EditedPieces& before, uint32_t part)
    : pieces_(before.pieces_),
      part_(part),
      size_(before.size_),
      copies_(before.copies_),
      before_(&before) {
  if (before.before_ != nullptr) before.before_->copies_ = {};
  for (Copy& copy : copies_) copy.own = nullptr;
}

std::string_view EditedPieces::bytes(size_t piece) const {
  const size_t size = PieceBytesOf(size_, piece);
  if (copies_[piece].bytes != nullptr) return {copies_[piece].bytes, size};
  if (IsNew(piece)) return {kZeros.data(), size};
  const std::span<const char> in_tree = pieces_.bytes(piece);
  return {in_tree.data(), in_tree.size()};
}

void EditedPieces::Read(size_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const std::string_view from = bytes(offset / kPieceBytes).substr(offset % kPieceBytes);
    const size_t size = from.copy(to.data(), to.size());
    to = to.subspan(size);
    offset += size;
  }
}

// Returns a copy of the piece that may be written. Behind the end of the value it has zeros.
char* EditedPieces::Own(size_t piece, Scratch& scratch) {
  Copy& copy = copies_[piece];
  if (copy.own != nullptr) return copy.own;
  char* const to = scratch.Allocate(kPieceBytes);
  const size_t size = bytes(piece).copy(to, kPieceBytes);
  std::fill(to + size, to + kPieceBytes, '\0');
  copy = {.bytes = to, .own = to};
  return to;
}

// The last piece gets longer with the value: one of the tree has no zeros behind its end.
void EditedPieces::Grow(size_t size, Scratch& scratch) {
  if (size == size_) return;
  if (size_ % kPieceBytes != 0) Own(copies_.size() - 1, scratch);
  copies_.resize(PiecesOf(size));
  size_ = size;
}

void EditedPieces::Write(const PartEdit& edit, Scratch& scratch) {
  size_t offset = edit.offset;
  for (std::string_view left = edit.bytes; !left.empty();) {
    const size_t piece = offset / kPieceBytes;
    const size_t at = offset % kPieceBytes;
    const size_t size = std::min(left.size(), kPieceBytes - at);
    if (size == kPieceBytes) {
      copies_[piece] = {.bytes = left.data()};
    } else {
      std::memcpy(Own(piece, scratch) + at, left.data(), size);
    }
    left.remove_prefix(size);
    offset += size;
  }
}

void EditedPieces::Apply(const PartsEffect& effect, Scratch& scratch) {
  Grow(effect.size, scratch);
  for (const PartEdit& edit : effect.edits) Write(edit, scratch);
}

}  // namespace skep::btree
