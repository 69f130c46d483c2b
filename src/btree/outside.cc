#include "btree/outside.h"

#include <algorithm>
#include <cstring>

#include "base/reserve_more.h"

namespace skep::btree {
namespace {

// Writes an edit into pieces that nobody else sees yet.
void Write(const Arena& arena, const Pieces& pieces, const PartEdit& edit) {
  size_t offset = edit.offset;
  for (std::string_view left = edit.bytes; !left.empty();) {
    const size_t piece = offset / kPieceBytes;
    const size_t at = offset % kPieceBytes;
    const size_t size = std::min(left.size(), PieceBytesOf(pieces.size(), piece) - at);
    auto* const to = reinterpret_cast<char*>(arena.At(pieces.address(piece)));
    std::memcpy(to + kPieceHeaderBytes + at, left.data(), size);
    left.remove_prefix(size);
    offset += size;
  }
}

}  // namespace

bool Storing::LongKey(std::string_view key, StoredKey* stored) {
  const size_t head = core_.codec.geometry.long_key_head_bytes();
  char* const bytes = scratch_.Allocate(head + kStubBytes);
  std::memcpy(bytes, key.data(), head);
  if (!Add(key.substr(head), static_cast<uint32_t>(key.size()), bytes + head)) return false;
  *stored = {.bytes = {bytes, head + kStubBytes}, .outside = true};
  return true;
}

// Stores a value that is long or has metadata.
bool Storing::CopyValue(std::string_view value, uint64_t deadline_ms, uint8_t type,
                        StoredValue* stored) {
  const size_t metadata = MetadataBytes(deadline_ms, type);
  const bool outside = metadata + value.size() > core_.codec.geometry.value_inline_max();
  const size_t size = metadata + (outside ? kStubBytes : value.size());
  char* const bytes = scratch_.Allocate(size);
  if (metadata > 0) WriteMetadata(bytes, deadline_ms, type);
  if (!outside) {
    value.copy(bytes + metadata, value.size());  // the data() of an empty value may be null
  } else if (!AddValue(value, bytes + metadata)) {
    return false;
  }
  *stored = {.bytes = {bytes, size}, .outside = outside, .has_metadata = metadata > 0};
  return true;
}

// Stores a value outside the node.
bool Storing::AddValue(std::string_view value, char* stub) {
  if (value.size() <= kContiguousMax) {
    return Add(value, static_cast<uint32_t>(value.size()), stub);
  }
  return AddPieces(value.size(), stub, [&](size_t piece, ArenaAddress* at) {
    return CopyPiece(value.substr(piece * kPieceBytes, kPieceBytes), at);
  });
}

// Makes a block with room for so many bytes, which it returns. Null: no memory.
char* Storing::AddBlock(size_t bytes, std::vector<OutsideBlock>& blocks, ArenaAddress* at) {
  const auto size = static_cast<uint32_t>(bytes + kOutsideHeaderBytes);
  ReserveMore(blocks, 1);
  *at = core_.arena.Allocate(thread_.cache, size, limit_);
  if (!*at) return nullptr;
  core_.has_blocks.store(true, std::memory_order_relaxed);
  blocks.push_back({.at = *at, .bytes = size});
  return reinterpret_cast<char*>(core_.arena.At(*at)) + kOutsideHeaderBytes;
}

char* Storing::AddPiece(size_t bytes, ArenaAddress* at) {
  constexpr size_t kPinsBytes = kPieceHeaderBytes - kOutsideHeaderBytes;
  char* const to = AddBlock(bytes + kPinsBytes, pieces_, at);
  if (to == nullptr) return nullptr;
  const Version born = core_.Stamp(core_.versions.last_drawn());
  std::memcpy(to - kOutsideHeaderBytes, &born, sizeof born);
  std::memset(to, 0, kPinsBytes);
  return to + kPinsBytes;
}

// Makes a piece of the bytes. False: no memory.
bool Storing::CopyPiece(std::string_view bytes, ArenaAddress* at) {
  char* const to = AddPiece(bytes.size(), at);
  if (to != nullptr) std::memcpy(to, bytes.data(), bytes.size());
  return to != nullptr;
}

bool Storing::Add(std::string_view bytes, uint32_t whole_size, char* stub) {
  ArenaAddress at;
  char* const to = AddBlock(bytes.size(), blocks_, &at);
  if (to == nullptr) return false;
  std::memcpy(to, bytes.data(), bytes.size());
  WriteStub(stub, {.size = whole_size, .block = at});
  return true;
}

// Makes the table of a value of `size` bytes, and its pieces: fill(piece, &at) makes or names each.
template <typename Fill>
bool Storing::AddPieces(size_t size, char* stub, Fill fill) {
  ArenaAddress table;
  char* to = AddBlock(PiecesOf(size) * sizeof(ArenaAddress), blocks_, &table);
  if (to == nullptr) return false;
  for (size_t piece = 0; piece < PiecesOf(size); ++piece, to += sizeof(ArenaAddress)) {
    ArenaAddress at;
    if (!fill(piece, &at)) return false;
    std::memcpy(to, &at.bits, sizeof(at));
  }
  WriteStub(stub, {.size = static_cast<uint32_t>(size), .block = table});
  return true;
}

// Makes the stored form of an outside value but for its stub, which it returns the place of.
char* Storing::MetadataAndStub(uint64_t deadline_ms, uint8_t type, StoredValue* stored) {
  const size_t metadata = MetadataBytes(deadline_ms, type);
  char* const bytes = scratch_.Allocate(metadata + kStubBytes);
  if (metadata > 0) WriteMetadata(bytes, deadline_ms, type);
  *stored = {
      .bytes = {bytes, metadata + kStubBytes}, .outside = true, .has_metadata = metadata > 0};
  return bytes + metadata;
}

void Storing::Carry(const StoredValue& before, uint64_t deadline_ms, StoredValue* stored) {
  const Stub stub = StubOf(before.bytes);
  WriteStub(MetadataAndStub(deadline_ms, TypeOf(before), stored), stub);
}

bool Storing::CopyPieces(const StoredValue& before, uint64_t deadline_ms, StoredValue* stored) {
  const Pieces pieces(core_.arena, before);
  char* const stub = MetadataAndStub(deadline_ms, TypeOf(before), stored);
  return AddPieces(pieces.size(), stub, [&](size_t piece, ArenaAddress* at) {
    const std::span<const char> bytes = pieces.bytes(piece);
    return CopyPiece({bytes.data(), bytes.size()}, at);
  });
}

bool Storing::Edited(const StoredValue& before, const PartsEffect& effect, uint64_t deadline_ms,
                     StoredValue* stored) {
  const Pieces pieces(core_.arena, before);
  // An element says whether bytes of its piece change. The last piece changes if it gets longer.
  std::vector<bool> touched(PiecesOf(effect.size));
  for (const PartEdit& edit : effect.edits) {
    if (edit.bytes.empty()) continue;
    const size_t last = (edit.offset + edit.bytes.size() - 1) / kPieceBytes;
    for (size_t piece = edit.offset / kPieceBytes; piece <= last; ++piece) touched[piece] = true;
  }
  for (size_t piece = pieces.count() - 1; piece < touched.size(); ++piece) {
    touched[piece] = touched[piece] || effect.size > pieces.size();
  }
  char* const stub = MetadataAndStub(deadline_ms, TypeOf(before), stored);
  const auto fill = [&](size_t piece, ArenaAddress* at) {
    if (!touched[piece]) {
      *at = pieces.address(piece);
      return true;
    }
    const size_t size = PieceBytesOf(effect.size, piece);
    char* const to = AddPiece(size, at);
    if (to == nullptr) return false;
    const std::span<const char> old =
        piece < pieces.count() ? pieces.bytes(piece) : std::span<const char>();
    CopyBytes(to, old.data(), old.size());
    std::memset(to + old.size(), 0, size - old.size());
    return true;
  };
  if (!AddPieces(effect.size, stub, fill)) return false;
  const Pieces made(core_.arena, *stored);
  for (const PartEdit& edit : effect.edits) Write(core_.arena, made, edit);
  return true;
}

bool Storing::Edited(const StoredValue& before, const EditedPieces& after, uint64_t deadline_ms,
                     StoredValue* stored) {
  const Pieces pieces(core_.arena, before);
  char* const stub = MetadataAndStub(deadline_ms, TypeOf(before), stored);
  return AddPieces(after.size(), stub, [&](size_t piece, ArenaAddress* at) {
    if (after.HasChanged(piece)) return CopyPiece(after.bytes(piece), at);
    *at = pieces.address(piece);
    return true;
  });
}

void Storing::SetBorn(Version version) {
  for (const OutsideBlock& block : blocks_) {
    std::memcpy(core_.arena.At(block.at), &version, sizeof version);
  }
}

void Storing::DropCopies() {
  for (auto* const blocks : {&blocks_, &pieces_}) {
    for (const OutsideBlock& block : *blocks) {
      core_.arena.Free(thread_.cache, block.at, block.bytes);
    }
    blocks->clear();
  }
  scratch_.Clear();
}

}  // namespace skep::btree
