// ordered_names.h: names in the order of their bytes, which are searched by comparing numbers.
//
//   names   ""   "member:0001"   "member:0420"   "member:1f00"
//   heads    -   '0001' ...      '0420' ...      '1f00' ...       eight bytes of each
//                ^^^^^^^ what all names but the first begin with
//
// The head of a name is the eight bytes behind what all names but the first begin with, as a number
// in the order of the bytes; those that are missing are zeros. Heads lie side by side, so a search
// halves an array of numbers, and looks at the bytes of names only where their heads are equal to
// that of the place. The first name has no head: it is the floor of what lies below all others.
//
// Cost: of a search, log2(names) steps without a branch, and likewise among equal heads; of an
// insertion or an erasure, a move of what lies behind, and new heads for all if what they all begin
// with becomes longer or shorter.
//
// Thread safety: as a vector. The bytes of the names are not owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace skep::collections {

class OrderedNames {
 public:
  // The memory that a name takes beside its own bytes.
  static constexpr size_t kNameBytes = sizeof(uint64_t) + sizeof(std::string_view);

  size_t size() const { return names_.size(); }
  std::string_view operator[](size_t i) const { return names_[i]; }
  void Reserve(size_t names);
  // The number of the last name that is not above the place; 0 also if all are. There is a name.
  size_t FindFloor(std::string_view place) const;
  // The name gets the number `at`, where it is in order.
  void Insert(size_t at, std::string_view name);
  void Erase(size_t at);
  // Moves the names from number `at` on, which is not 0, to an empty one.
  void MoveTail(size_t at, OrderedNames& to);
  // Replaces the bytes of a name by the same bytes elsewhere.
  void Relocate(size_t i, std::string_view name) { names_[i] = name; }

 private:
  void Settle(size_t changed);

  std::vector<uint64_t> heads_;
  std::vector<std::string_view> names_;
  size_t common_bytes_ = 0;  // that all names but the first begin with
};

}  // namespace skep::collections
