// hash_fields.h: the fields of a hash whose fields may have deadlines of their own.
//
//   +---+-----------------+-------+-------+----
//   | 0 | varint, fields  | field | field | ...
//   +---+-----------------+-------+-------+----
//
//   field   +---+------------------+------------+-------------+
//           | 0 | deadline, 8, ms  | name, text | value, text |     little-endian
//           +---+------------------+------------+-------------+
//
// A hash without deadlines begins with the number of its fields, which is not 0, and a field
// without one with its name, which is not 0 either: such a hash, and such a field, have no byte for
// that (hash.h). A hash whose last deadline goes is written without the 0 in front.
//
// A field whose deadline is not above the time of the batch (FunctionInput::now_ms) is *due*: every
// function does as if it were not there, and a write of the hash leaves it out. A write that would
// change nothing else leaves it where it is.
//
// A function on a hash with deadlines runs the function of hash.h on the fields that are not due,
// in the plain form, and then gives the fields that are left their deadlines. Cost: two copies of
// the hash more.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "skep/scratch.h"
#include "types/function_table.h"

namespace skep::types {

struct HashField {
  std::string_view name;
  std::string_view value;
  uint64_t deadline_ms = 0;  // 0: none
  bool IsDue(uint64_t now_ms) const { return deadline_ms != 0 && deadline_ms <= now_ms; }
  friend bool operator==(const HashField&, const HashField&) = default;
};
using HashFields = std::vector<HashField>;

// Whether a hash in one value, or a field's bytes, are of the form with deadlines.
inline bool HasDeadlineForm(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == '\0';
}
// Takes what stands in front of the name of a field that has a deadline. False: the bytes begin
// with no such thing.
bool TakeFieldDeadline(std::string_view& from, uint64_t* deadline_ms);
// Takes a field of either form from the front. False: the bytes do not begin with one.
bool TakeHashField(std::string_view& from, HashField* field);
// The fields of a hash of either form, in its order; none of an absent one. Nothing if the bytes
// are no hash. Views of the value.
std::optional<HashFields> ReadHash(const std::optional<std::string_view>& value);
// Likewise, but those that are not due.
std::optional<HashFields> ReadLiveHash(const std::optional<std::string_view>& value,
                                       uint64_t now_ms);
// The hash in one value, with deadlines if a field has one.
std::string_view WriteHash(std::span<const HashField> fields, Scratch& scratch);

// Runs a function of the plain form on a hash with deadlines. With `takes_deadlines` the operand is
// pairs of a field and a value, and the fields of the operand lose their deadlines.
FunctionEffect RunOnLiveFields(const FunctionInput& input, FunctionBody plain,
                               bool takes_deadlines);

// What the operand of a function that gives fields a deadline begins with: one byte, bits of When,
// and the deadline in 8 bytes, little-endian.
struct FieldDeadline {
  enum When : uint8_t {
    // hash-expire: the field has no deadline, has one, has an earlier one, has a later one. A field
    // without a deadline counts as having the latest.
    kHasNone = 1,
    kHasOne = 2,
    kLater = 4,
    kEarlier = 8,
    // hash-set-until: no field is there, all are there; fields keep the deadlines they have
    kNoneThere = 16,
    kAllThere = 32,
    kKeeps = 64,
  };
  static constexpr size_t kBytes = 9;

  uint8_t when = 0;
  uint64_t deadline_ms = 0;  // 0: none
};
std::string_view WriteFieldDeadline(const FieldDeadline& deadline, std::string_view rest,
                                    Scratch& scratch);

// What the functions about deadlines of fields answer for a field.
inline constexpr int64_t kNoField = -2;
inline constexpr int64_t kNoDeadline = -1;      // hash-deadlines, hash-persist
inline constexpr int64_t kConditionNotMet = 0;  // hash-expire
inline constexpr int64_t kDeadlineChanged = 1;  // hash-expire, hash-persist
inline constexpr int64_t kFieldDeleted = 2;     // hash-expire: the deadline had passed

std::span<const TypeFunction> HashDeadlineFunctions();

}  // namespace skep::types
