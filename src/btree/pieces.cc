#include "btree/pieces.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace skep::btree {

ArenaAddress Pieces::address(size_t piece) const {
  ArenaAddress at;
  std::memcpy(&at.bits, arena_.At(table_) + kOutsideHeaderBytes + piece * sizeof(at), sizeof(at));
  return at;
}

std::span<const char> Pieces::bytes(size_t piece) const {
  const auto* const block = reinterpret_cast<const char*>(arena_.At(address(piece)));
  return {block + kPieceHeaderBytes, PieceBytesOf(size_, piece)};
}

OutsideBlock Pieces::block(size_t piece) const {
  const size_t bytes = kPieceHeaderBytes + PieceBytesOf(size_, piece);
  return {.at = address(piece),
          .bytes = static_cast<uint32_t>(bytes),
          .value_bytes = OutsideBlock::kPiece};
}

void Pieces::Read(size_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const std::span<const char> from = bytes(offset / kPieceBytes).subspan(offset % kPieceBytes);
    const size_t size = std::min(from.size(), to.size());
    std::memcpy(to.data(), from.data(), size);
    to = to.subspan(size);
    offset += size;
  }
}

void AddPieces(const Arena& arena, std::vector<OutsideBlock>* blocks) {
  for (size_t i = 0, tables_end = blocks->size(); i < tables_end; ++i) {
    if (!(*blocks)[i].is_table()) continue;
    const Pieces pieces(arena, (*blocks)[i]);
    for (size_t piece = 0; piece < pieces.count(); ++piece) blocks->push_back(pieces.block(piece));
  }
}

void AddReplaced(const Arena& arena, const StoredValue& before, const StoredValue* after,
                 std::vector<OutsideBlock>* blocks) {
  const OutsideBlock old = BlockOf(before);
  const OutsideBlock made = after != nullptr && after->outside ? BlockOf(*after) : OutsideBlock{};
  if (old.at == made.at) return;
  blocks->push_back(old);
  if (!old.is_table()) return;
  const Pieces pieces(arena, old);
  const Pieces now(arena, made);
  for (size_t piece = 0; piece < pieces.count(); ++piece) {
    // A piece that is kept is at the same place of the table.
    const bool is_kept = piece < now.count() && now.address(piece) == pieces.address(piece);
    if (!is_kept) blocks->push_back(pieces.block(piece));
  }
}

void AddPiecesGone(const Arena& arena, std::span<const OutsideBlock> made,
                   std::vector<OutsideBlock>* gone) {
  const auto is_table = [](const OutsideBlock& block) { return block.is_table(); };
  if (std::ranges::none_of(*gone, is_table)) return;
  std::vector<OutsideBlock> kept;
  std::ranges::copy_if(made, std::back_inserter(kept), is_table);
  AddPieces(arena, &kept);
  KeepEachOnce(&kept);
  std::vector<OutsideBlock> all = *gone;
  AddPieces(arena, &all);
  KeepEachOnce(&all);
  gone->clear();
  const auto place = [](const OutsideBlock& block) { return block.at.bits; };
  std::ranges::set_difference(all, kept, std::back_inserter(*gone), {}, place, place);
}

}  // namespace skep::btree
