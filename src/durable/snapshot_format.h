// snapshot_format.h: the bytes of a snapshot file, version 3. docs/formats/snapshot.md describes
// them with an example, byte by byte.
//
//   +--------+-------+-------+-- --+-------+--------+---------+
//   | header | block | block | ... | block | footer | trailer |
//   +--------+-------+-------+-- --+-------+--------+---------+
//     24 B    32 B + payload each             ^        24 B
//                                             |__________|
//
//   block    header, payload. The payload, perhaps compressed, is items of one keyspace:
//              shared | key bytes | value bytes, typed | deadline | type | key | value
//            The first four are varints (7 bits a byte, the lowest first, the highest bit set on
//            all but the last byte). A key begins with `shared` bytes of the key before it in the
//            block; `key bytes` counts the others, which are what is stored. The third is twice
//            the length of the value, and 1 more if it is not of kPlainType: then its type is the
//            byte before the key. The deadline is in ms since 1970, 0: none. In blocks of the
//            encodings of version 1 the third is the length alone, and there are no types.
//   footer   FooterHead; for each keyspace a KeyspaceEntry and its engine's name; for each block an
//            IndexEntry, in the order of the file. The blocks lie side by side, from the header to
//            the footer.
//
// A file without a footer is no snapshot: the trailer is written last. Numbers are little-endian.
//
// A CRC is the CRC-32C of the bytes named. Those of a block's header, the footer and the trailer
// begin with the 8 bytes of their offset in the file (CrcAt). So bytes that lie at another place
// than they were written to, as those of a snapshot that is a value in a snapshot, fail their
// check.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "skep/batch.h"

namespace skep::durable {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kSnapshotVersion = 3;  // a reader opens this and all before it

inline constexpr size_t kSnapshotKeyBytesMax = 64 * 1024;
inline constexpr size_t kSnapshotValueBytesMax = 64 * 1024 * 1024;
inline constexpr size_t kSnapshotEngineBytesMax = 255;

// A block is full with this many bytes of items, or with one item that has more.
inline constexpr size_t kSnapshotBlockBytes = 256 * 1024;
inline constexpr size_t kSnapshotItemHeadBytesMax = 3 + 3 + 4 + 10 + 1;  // four varints, type
inline constexpr size_t kSnapshotRawBytesMax =
    kSnapshotItemHeadBytesMax + kSnapshotKeyBytesMax + kSnapshotValueBytesMax;
// The stored bytes are never fewer than the items' bytes divided by this, so that the size of a
// file tells a reader how much memory it may need.
inline constexpr size_t kSnapshotExpansionMax = 1024;

// The first bytes as a number.
template <typename Number>
consteval Number Magic(std::string_view text) {
  Number magic = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    magic |= static_cast<Number>(static_cast<Number>(static_cast<uint8_t>(text[i])) << 8 * i);
  }
  return magic;
}
inline constexpr auto kSnapshotMagic = Magic<uint64_t>("SKEPSNAP");
inline constexpr auto kSnapshotBlockMagic = Magic<uint32_t>("BLCK");
inline constexpr auto kSnapshotFooterMagic = Magic<uint32_t>("FOOT");
inline constexpr auto kSnapshotTrailerMagic = Magic<uint64_t>("SKEPDONE");

enum class SnapshotEncoding : uint32_t {
  kRawUntyped = 0,  // of version 1, as kZstdUntyped
  kZstdUntyped = 1,
  kRaw = 2,
  kZstd = 3,  // frames of zstd, the last of which may be one to skip
};
constexpr bool IsCompressed(SnapshotEncoding encoding) {
  return encoding == SnapshotEncoding::kZstdUntyped || encoding == SnapshotEncoding::kZstd;
}
constexpr bool HasTypes(SnapshotEncoding encoding) { return encoding >= SnapshotEncoding::kRaw; }

// The first 24 bytes of the file. They mean the same in every version to come.
struct SnapshotHeader {
  uint64_t magic;
  uint64_t created_ms;
  uint32_t version;
  uint32_t crc;  // of the 20 bytes before it
};
static_assert(sizeof(SnapshotHeader) == 24 && offsetof(SnapshotHeader, crc) == 20);

struct SnapshotBlockHeader {
  uint32_t magic;
  uint32_t stored_bytes;  // of the payload, in the file
  uint32_t raw_bytes;     // of the items
  uint32_t items;         // at least one
  uint32_t keyspace;
  SnapshotEncoding encoding;
  uint32_t payload_crc;  // of the payload, as it is stored
  uint32_t crc;          // of the 28 bytes before it, at their offset
};
static_assert(sizeof(SnapshotBlockHeader) == 32 && offsetof(SnapshotBlockHeader, crc) == 28);

struct SnapshotFooterHead {
  uint32_t magic;
  uint32_t keyspaces;
  uint64_t blocks;
  uint64_t items;      // of all keyspaces
  uint64_t raw_bytes;  // of all blocks
};
static_assert(sizeof(SnapshotFooterHead) == 32);

// The entries ascend by index.
struct SnapshotKeyspaceEntry {
  uint32_t index;
  uint32_t engine_bytes;  // that many bytes follow
  uint64_t version;
  uint64_t now_ms;
  uint64_t log_position;
  uint64_t items;
};
static_assert(sizeof(SnapshotKeyspaceEntry) == 40);

struct SnapshotIndexEntry {
  uint64_t offset;
  uint64_t bytes;  // header and payload
  uint32_t raw_bytes;
  uint32_t items;
  uint32_t keyspace;
  uint32_t crc;  // the one at the end of the block's header
};
static_assert(sizeof(SnapshotIndexEntry) == 32);

struct SnapshotTrailer {
  uint64_t footer_offset;
  uint32_t footer_crc;  // of the bytes from there to the trailer, at that offset
  uint32_t crc;         // of the 12 bytes before it, at their offset
  uint64_t magic;
};
static_assert(sizeof(SnapshotTrailer) == 24 && offsetof(SnapshotTrailer, crc) == 12);

// The bytes of one of the structs above.
template <typename T>
std::string_view BytesOf(const T& what) {
  static_assert(std::has_unique_object_representations_v<T>);
  return {reinterpret_cast<const char*>(&what), sizeof(T)};
}

// The CRC of bytes that lie at this offset of the file.
inline uint32_t CrcAt(uint64_t offset, std::string_view bytes) {
  return Crc32c(bytes, Crc32c(BytesOf(offset)));
}

// The description of a keyspace in a snapshot.
struct SnapshotKeyspace {
  uint32_t index = 0;
  std::string engine;
  uint64_t version = 0;       // the instant at which it was read
  uint64_t now_ms = 0;        // the time of that instant
  uint64_t log_position = 0;  // from where recovery goes on
  uint64_t items = 0;

  bool operator==(const SnapshotKeyspace&) const = default;
};

struct SnapshotItem {
  std::string_view key;
  std::string_view value;
  uint64_t deadline_ms;  // 0: none
  uint8_t type = kPlainType;
};

}  // namespace skep::durable
