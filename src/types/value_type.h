// value_type.h: the types of values that Skep's commands know, and the forms that collections have.
//
//   type  form
//      0  plain bytes: a string
//      1  a hash in one value          hash.h
//      2  a set in one value           set.h
//      3  a list in one value          list.h
//      4  a sorted set in one value    sorted_set.h
//     17  the record of a large hash, whose members lie in segments of their own    large_record.h
//     18  likewise of a set
//     19  likewise of a list
//     20  likewise of a sorted set
//     32  a segment of a large collection, under a key that clients cannot name
//
// The numbers are in logs and snapshots, so each keeps its meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "skep/status.h"
#include "types/form_scope.h"

namespace skep::types {

inline constexpr uint8_t kString = 0;
inline constexpr uint8_t kHash = 1;
inline constexpr uint8_t kSet = 2;
inline constexpr uint8_t kList = 3;
inline constexpr uint8_t kSortedSet = 4;
inline constexpr uint8_t kLargeForm = 16;
inline constexpr uint8_t kSegment = 32;

// Whether a value of this type is the record of a large collection.
constexpr bool IsLarge(uint8_t type) {
  return type > kLargeForm && type <= kLargeForm + kSortedSet;
}

// The type of which a value's type is a form.
constexpr uint8_t KindOf(uint8_t type) { return IsLarge(type) ? type - kLargeForm : type; }

// The name by which clients know the type: "string", "hash", "set", "list", "zset"; "unknown".
constexpr std::string_view NameOf(uint8_t type) {
  constexpr std::string_view kNames[] = {"string", "hash", "set", "list", "zset"};
  const uint8_t kind = KindOf(type);
  return kind <= kSortedSet ? kNames[kind] : "unknown";
}

// The error of a collection that would take so many bytes in one value; kOk if it may
// (form_scope.h).
inline Status FormError(size_t bytes) {
  FormScope* const scope = FormScope::Current();
  const size_t bytes_max = scope != nullptr ? scope->bytes_max() : kOneValueBytesMax;
  if (bytes <= bytes_max) return {};
  if (scope != nullptr) scope->NoteOutgrown();
  return {Code::kTooLarge, "a collection exceeds the maximum size", bytes_max};
}
// The error of stored bytes that are no collection of their type.
inline constexpr Status kNoCollection(Code::kCorrupt, "the stored bytes are no such collection");

}  // namespace skep::types
