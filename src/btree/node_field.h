// node_field.h: reads and writes single fields, keys and values at given offsets in a node of any
// layout.
//
//   bits of a length:   15        14         13         12    11      0
//                      +---------+----------+----------+-----+---------+
//   of a key           | outside | deleted  | replaces |  0  | length  |   deleted and replaces: in
//   of a value         | outside | metadata |    0     |  0  | length  |   the log only
//                      +---------+----------+----------+-----+---------+
//
// The functions that read trust the bytes: on bytes of unknown origin, the layout's Check comes
// first.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/stored.h"
#include "skep/copy_bytes.h"

namespace skep::btree::field {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint16_t kLengthMask = 0x0fff;
inline constexpr uint16_t kOutside = 0x8000;   // keys and values
inline constexpr uint16_t kDeleted = 0x4000;   // keys
inline constexpr uint16_t kReplaces = 0x2000;  // keys
inline constexpr uint16_t kMetadata = 0x4000;  // values
inline constexpr uint16_t kNoFence = 0xffff;

inline constexpr uint32_t kLengthBytes = 2;
inline constexpr uint32_t kLinkBytes = sizeof(Link);

template <class T>
T Load(const NodeHeader* node, uint32_t at) {
  T value;
  std::memcpy(&value, node->bytes() + at, sizeof(T));
  return value;
}
template <class T>
void Store(NodeHeader* node, uint32_t at, T value) {
  std::memcpy(node->bytes() + at, &value, sizeof(T));
}
inline std::string_view BytesAt(const NodeHeader* node, uint32_t at, uint32_t length) {
  return {reinterpret_cast<const char*>(node->bytes()) + at, length};
}

// KeyAt and ValueAt return what is stored at an offset, AfterField the offset after it.
inline StoredKey KeyAt(const NodeHeader* node, uint32_t at) {
  const auto length = Load<uint16_t>(node, at);
  return {.bytes = BytesAt(node, at + kLengthBytes, length & kLengthMask),
          .outside = (length & kOutside) != 0};
}
inline StoredValue ValueAt(const NodeHeader* node, uint32_t at) {
  const auto length = Load<uint16_t>(node, at);
  return {.bytes = BytesAt(node, at + kLengthBytes, length & kLengthMask),
          .outside = (length & kOutside) != 0,
          .has_metadata = (length & kMetadata) != 0};
}
inline uint32_t AfterField(const NodeHeader* node, uint32_t at) {
  return at + kLengthBytes + (Load<uint16_t>(node, at) & kLengthMask);
}

inline uint32_t BytesOf(const StoredKey& key) {
  return kLengthBytes + static_cast<uint32_t>(key.bytes.size());
}
inline uint32_t BytesOf(const StoredValue& value) {
  return kLengthBytes + static_cast<uint32_t>(value.bytes.size());
}

// PutField, PutKey and PutValue return the offset after what they wrote.
inline uint32_t PutField(NodeHeader* node, uint32_t at, std::string_view bytes, uint32_t flags) {
  SKEP_DCHECK(bytes.size() <= kLengthMask);
  Store(node, at, static_cast<uint16_t>(bytes.size() | flags));
  CopyBytes(node->bytes() + at + kLengthBytes, bytes.data(), bytes.size());
  return at + kLengthBytes + static_cast<uint32_t>(bytes.size());
}
inline uint32_t PutKey(NodeHeader* node, uint32_t at, const StoredKey& key, uint32_t flags = 0) {
  return PutField(node, at, key.bytes, flags | (key.outside ? kOutside : 0u));
}
inline uint32_t PutValue(NodeHeader* node, uint32_t at, const StoredValue& value) {
  return PutField(node, at, value.bytes,
                  (value.outside ? kOutside : 0u) | (value.has_metadata ? kMetadata : 0u));
}

// Fences: u16 form | lower key, u16 form | upper key, or kNoFence.
inline Fences FencesAt(const NodeHeader* node, uint32_t at) {
  const uint32_t upper = AfterField(node, at);
  Fences fences;
  fences.lower = KeyAt(node, at);
  fences.unbounded = Load<uint16_t>(node, upper) == kNoFence;
  if (!fences.unbounded) fences.upper = KeyAt(node, upper);
  return fences;
}
inline uint32_t BytesOf(const Fences& fences) {
  return BytesOf(fences.lower) + (fences.unbounded ? kLengthBytes : BytesOf(fences.upper));
}
inline uint32_t PutFences(NodeHeader* node, uint32_t at, const Fences& fences) {
  at = PutKey(node, at, fences.lower);
  if (!fences.unbounded) return PutKey(node, at, fences.upper);
  Store(node, at, kNoFence);
  return at + kLengthBytes;
}

}  // namespace skep::btree::field
