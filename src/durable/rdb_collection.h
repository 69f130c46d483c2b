// rdb_collection.h: hashes, sets, lists and sorted sets in RDB files and in the payloads of DUMP.
//
//   type  of          the value is                                             written by
//      1  list        count, element ...                                       the first Redis
//      2  set         count, member ...
//      3  sorted set  count, member, score as text ...
//      4  hash        count, field, value ...
//      5  sorted set  count, member, score as a double ...                     4.0
//      9  hash        a string: a zipmap                                       2.2 to 2.4
//     10  list        a string: a ziplist                                      2.2 to 3.0
//     11  set         a string: an intset                                      2.2
//     12  sorted set  a string: a ziplist of member, score                     2.4 to 6.2
//     13  hash        a string: a ziplist                                      2.6 to 6.2
//     14  list        count, string ...: ziplists                              3.2 to 6.2
//     16  hash        a string: a listpack                                     7.0
//     17  sorted set  a string: a listpack of member, score                    7.0
//     18  list        count, (1 and an element, or 2 and a listpack) ...       7.0
//     20  set         a string: a listpack                                     7.2
//  22 23  hash        as 25, without the 8 bytes                               previews of 7.4
//     24  hash        8 bytes, count, (deadline, field, value) ...             7.4
//     25  hash        8 bytes, a string: a listpack of field, value, deadline  7.4
//
// The 8 bytes of 24 and 25 are the earliest deadline of a field. In 24 a deadline is a length, 0 if
// there is none, else by one more than it is behind the earliest; in 22 it is the deadline itself.
//
// Strings and lengths are those of rdb_input.h, what is packed those of rdb_packed.h. What is
// written is of types 1, 2, 4 and 5, which every Redis since 4.0 has, and 24 where fields of a hash
// have deadlines.
//
// Thread safety: all functions are pure; a builder has one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "durable/rdb_input.h"

namespace skep::durable {

// One member of a collection: an element of a list, a field of a hash.
struct RdbMember {
  std::string_view member;
  std::string_view value = {};  // of a field
  double score = 0;             // of a member of a sorted set: a number, and not minus zero
  uint64_t deadline_ms = 0;     // of a field, in Unix milliseconds; 0: none
};
// The views are valid in the call.
using OnRdbMember = std::function<void(const RdbMember& member)>;

// The type of value (types/value_type.h) that values of this RDB type have here; kString if they
// are no collections.
uint8_t KindOfRdbType(uint8_t rdb_type);

// Reads a value, which is a collection, and shows its members in the order of the file. An error is
// noted in `in`: kCorrupt, the value is malformed. The callee may note one, too, which ends the
// reading. Memory: the longest string of the value, twice.
void ReadRdbMembers(RdbInput& in, uint8_t rdb_type, const OnRdbMember& on_member);

// Makes the value of a collection (types/hash.h and its kin) of its members. Deadlines of fields
// stay as they are, in Unix milliseconds.
class CollectionBuilder {
 public:
  // `kind`: the type of the value, of a collection.
  explicit CollectionBuilder(uint8_t kind) : kind_(kind) {}

  void Add(const RdbMember& member);
  uint64_t members() const { return members_; }
  // About as many as the value will have.
  size_t bytes() const {
    return texts_.size() + scores_.size() * sizeof(double) + deadlines_.size() * sizeof(uint64_t);
  }

  // The value, and the builder is empty again. Nothing if a member was added twice.
  // Cost: sorts the members; takes 16 bytes, of sorted sets 40, for each of them meanwhile.
  std::optional<std::string> Take();

 private:
  const uint8_t kind_;
  uint64_t members_ = 0;
  std::string texts_;  // of the members, and the values of fields, in their order
  std::vector<double> scores_;
  std::vector<uint64_t> deadlines_;  // of the fields up to the last one that has one
};

// Shows the members of a collection's value, in its order, as views of it; false if the bytes are
// none of this kind.
bool ForEachMember(uint8_t kind, std::string_view value, const OnRdbMember& on_member);

// The RDB type that a collection of this kind is written as, a hash without deadlines of fields.
uint8_t RdbTypeOf(uint8_t kind);

}  // namespace skep::durable
