// stored.h: keys and values as nodes hold them.
//
// A key of up to key_inline_max() bytes, or a value of up to value_inline_max(), is stored whole.
// For a longer key or value the node holds a stub, and the rest lies in an arena allocation of its
// own, the outside block:
//
//   long key:    head, long_key_head_bytes() | size of the whole key u32 | ArenaAddress u64
//   long value:                                size of the whole value u32 | ArenaAddress u64
//
//   outside block:  +--------------------+-----------------------+
//                   | born, Version, 8 B | bytes                 |   long key: the bytes after the
//                   +--------------------+-----------------------+   head; long value: all of them
//
// `born` is the version of the write that stored the block; reclaim.h uses it.
//
// A value of more than kContiguousMax bytes lies in pieces (pieces.h): its outside block is a table
// that names further outside blocks, which have its bytes.
//
// Metadata. A value that has metadata begins with a length byte and that many bytes. The length
//   tells the form:
//
//     1   type                      the type of the value, which is not kPlainType (batch.h)
//     7   deadline                  milliseconds since 1970, little-endian, not 0
//     8   deadline, type
//
//   So a plain value without a deadline takes no byte more, a typed one 2, and a key that expires 8
//   or 9.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/compare_bytes.h"
#include "btree/geometry.h"
#include "engine/point.h"
#include "skep/batch.h"
#include "skep/scratch.h"

namespace skep::btree {

inline constexpr size_t kStubBytes = 12;
inline constexpr size_t kOutsideHeaderBytes = 8;
inline constexpr size_t kPieceHeaderBytes = 16;
inline constexpr size_t kContiguousMax = size_t{64} << 10;  // bytes of a value in one block
// Bytes of each piece of a longer value but the last: with its header it fills a slot of the arena.
inline constexpr size_t kPieceBytes = (size_t{16} << 10) - kPieceHeaderBytes;
inline constexpr uint32_t kTypeBytes = 1;      // of the metadata
inline constexpr uint32_t kDeadlineBytes = 7;  // of the metadata
inline constexpr uint32_t kMetadataBytesMax = 1 + kDeadlineBytes + kTypeBytes;

// The stored form of a key: views into a node, or into a caller's buffer on its way to a node.
struct StoredKey {
  std::string_view bytes;
  bool outside = false;  // `bytes` is head and stub
};

// The stored form of a value.
struct StoredValue {
  std::string_view bytes;
  bool outside = false;       // after the metadata, `bytes` is a stub
  bool has_metadata = false;  // `bytes` begins with a length byte and that many bytes of metadata
};

// The deadline of the key; 0: none.
inline uint64_t DeadlineOf(const StoredValue& value) {
  if (!value.has_metadata || value.bytes[0] == kTypeBytes) return 0;
  uint64_t deadline_ms = 0;
  std::memcpy(&deadline_ms, value.bytes.data() + 1, kDeadlineBytes);
  return deadline_ms;
}
// The type of the value.
inline uint8_t TypeOf(const StoredValue& value) {
  if (!value.has_metadata || value.bytes[0] == kDeadlineBytes) return kPlainType;
  return static_cast<uint8_t>(value.bytes[static_cast<uint8_t>(value.bytes[0])]);
}

// How many bytes the metadata of a value take, the length byte included.
inline size_t MetadataBytes(uint64_t deadline_ms, uint8_t type) {
  const size_t bytes =
      (deadline_ms == 0 ? 0 : kDeadlineBytes) + (type == kPlainType ? 0 : kTypeBytes);
  return bytes == 0 ? 0 : 1 + bytes;
}
// Writes them. Requires that there are any.
inline void WriteMetadata(char* at, uint64_t deadline_ms, uint8_t type) {
  const size_t bytes = MetadataBytes(deadline_ms, type);
  at[0] = static_cast<char>(bytes - 1);
  if (deadline_ms != 0) std::memcpy(at + 1, &deadline_ms, kDeadlineBytes);
  if (type != kPlainType) at[bytes - 1] = static_cast<char>(type);
}

// The stub at the end of an outside key, or of an outside value.
struct Stub {
  uint32_t size;  // of the whole key or value
  ArenaAddress block;
};
inline Stub StubOf(std::string_view stored_bytes) {
  const char* const at = stored_bytes.data() + stored_bytes.size() - kStubBytes;
  Stub stub;
  std::memcpy(&stub.size, at, 4);
  std::memcpy(&stub.block.bits, at + 4, 8);
  return stub;
}
// The arena allocation of an outside block.
struct OutsideBlock {
  ArenaAddress at;
  uint32_t bytes;
  // The block of a table has the bytes of its value here, that of a piece kPiece, and any other 0.
  uint32_t value_bytes = 0;

  static constexpr uint32_t kPiece = UINT32_MAX;
  bool is_piece() const { return value_bytes == kPiece; }
  bool is_table() const { return value_bytes != 0 && !is_piece(); }
};
// Sorts the blocks by address and drops duplicates. A node may name a block more than once: in its
// sorted item and in the log items of one key.
void KeepEachOnce(std::vector<OutsideBlock>* blocks);

// The bytes of the key itself that the node holds.
inline std::string_view OwnBytes(const StoredKey& key) {
  return key.outside ? key.bytes.substr(0, key.bytes.size() - kStubBytes) : key.bytes;
}

// The block of an outside key.
inline OutsideBlock BlockOf(const StoredKey& key) {
  const Stub stub = StubOf(key.bytes);
  const size_t rest = stub.size - OwnBytes(key).size();
  return {.at = stub.block, .bytes = static_cast<uint32_t>(rest + kOutsideHeaderBytes)};
}
// How many pieces a value of so many bytes has.
constexpr size_t PiecesOf(size_t value_bytes) {
  return (value_bytes + kPieceBytes - 1) / kPieceBytes;
}
// Whether the value lies in pieces.
inline bool IsInPieces(const StoredValue& value) {
  return value.outside && StubOf(value.bytes).size > kContiguousMax;
}
// The block of an outside value; of one in pieces, that of its table.
inline OutsideBlock BlockOf(const StoredValue& value) {
  const Stub stub = StubOf(value.bytes);
  if (stub.size <= kContiguousMax) {
    return {.at = stub.block, .bytes = static_cast<uint32_t>(stub.size + kOutsideHeaderBytes)};
  }
  const size_t bytes = kOutsideHeaderBytes + PiecesOf(stub.size) * sizeof(ArenaAddress);
  return {.at = stub.block, .bytes = static_cast<uint32_t>(bytes), .value_bytes = stub.size};
}

// Appends the block of a key or value, if it has one.
template <typename Stored>
void AddBlock(const Stored& stored, std::vector<OutsideBlock>* blocks) {
  if (stored.outside) blocks->push_back(BlockOf(stored));
}

inline void WriteStub(char* at, Stub stub) {
  std::memcpy(at, &stub.size, 4);
  std::memcpy(at + 4, &stub.block.bits, 8);
}

// Reads the keys and values that a node refers to. Thread safety: a value; the caller's epoch
// protects what it reads.
struct Codec {
  Geometry geometry;
  const Arena* arena = nullptr;

  // Returns <0, 0 or >0 as `key` is below, equal to or above the stored one, in the order of
  // unsigned bytes. Without an arena an outside key is compared by its head alone: 0 if that does
  // not decide.
  int Compare(std::string_view key, const StoredKey& stored) const {
    return stored.outside ? CompareOutside(key, stored) : CompareBytes(key, stored.bytes);
  }
  int Compare(const StoredKey& a, const StoredKey& b) const {
    if (!a.outside) return Compare(a.bytes, b);
    return b.outside ? CompareBothOutside(a, b) : -CompareOutside(b.bytes, a);
  }
  // All bytes of a key: a view of an inline one, a copy in `scratch` of an outside one.
  std::string_view Whole(const StoredKey& stored, Scratch& scratch) const;
  // All bytes of a value without the metadata: a view, or of one in pieces a copy in `scratch`.
  std::string_view Whole(const StoredValue& stored, Scratch& scratch) const;
  // Likewise, always a view: of a value in pieces it has no bytes.
  std::string_view Contiguous(const StoredValue& stored) const;
  // The value with its metadata, by Contiguous().
  PointState StateOf(const StoredValue& stored) const {
    return {Contiguous(stored), DeadlineOf(stored), TypeOf(stored)};
  }
  size_t SizeOf(const StoredKey& stored) const;
  size_t SizeOf(const StoredValue& stored) const;  // without the metadata

 private:
  int CompareOutside(std::string_view key, const StoredKey& stored) const;
  int CompareBothOutside(const StoredKey& a, const StoredKey& b) const;
  // The bytes after the head of an outside key.
  std::string_view RestOf(const StoredKey& stored) const;
  const char* OutsideBytes(ArenaAddress block) const;
};

}  // namespace skep::btree
