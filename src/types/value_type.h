// value_type.h: the types of values that Skep's commands know, and the forms that collections have.
//
//   type  form
//      0  plain bytes: a string
//      1  a hash in one value          hash.h
//      2  a set in one value           set.h
//      3  a list in one value          list.h
//      4  a sorted set in one value    sorted_set.h
//
// The numbers are in logs and snapshots, so each keeps its meaning. A collection lies in one value,
// whatever its size, up to kCollectionBytesMax. The numbers kLargeForm + 1 to kLargeForm + 4 are
// kept for collections whose members are items of their own; KindOf already counts them with their
// type, and FormError is the one place that says when a collection no longer fits its form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "skep/status.h"

namespace skep::types {

inline constexpr uint8_t kString = 0;
inline constexpr uint8_t kHash = 1;
inline constexpr uint8_t kSet = 2;
inline constexpr uint8_t kList = 3;
inline constexpr uint8_t kSortedSet = 4;
inline constexpr uint8_t kLargeForm = 16;

// The bytes that a collection in one value may take.
inline constexpr size_t kCollectionBytesMax = size_t{1} << 20;

// The type of which a value's type is a form.
constexpr uint8_t KindOf(uint8_t type) {
  return type > kLargeForm && type <= kLargeForm + kSortedSet ? type - kLargeForm : type;
}

// The name by which clients know the type: "string", "hash", "set", "list", "zset"; "unknown".
constexpr std::string_view NameOf(uint8_t type) {
  constexpr std::string_view kNames[] = {"string", "hash", "set", "list", "zset"};
  const uint8_t kind = KindOf(type);
  return kind <= kSortedSet ? kNames[kind] : "unknown";
}

// The error of a collection that would take so many bytes; kOk if it may.
constexpr Status FormError(size_t bytes) {
  if (bytes <= kCollectionBytesMax) return {};
  return {Code::kTooLarge, "a collection exceeds the maximum size", kCollectionBytesMax};
}
// The error of stored bytes that are no collection of their type.
inline constexpr Status kNoCollection(Code::kCorrupt, "the stored bytes are no such collection");

}  // namespace skep::types
