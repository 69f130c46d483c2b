// large_counts.h: the value of a node of counts, which says how many members of a large collection
// lie where (collections/counts.h).
//
//   +--------------------+-------+---------------+-----------------+---------------+----
//   | varint, fence      | fence | varint, count | separator, text | varint, count | ...
//   | bytes + 1; 0: none |       | of entry 0    | of entry 1      | of entry 1    |
//   +--------------------+-------+---------------+-----------------+---------------+----
//
// An entry counts the members from its separator up to that of the next entry, or up to the fence.
// The separator of the first entry is that of the node, which the node's key has; separators
// ascend.
//
// The functions change entries where they lie, so that writers of one node do not disturb each
// other. One that finds no entry as its operand says is kAborted, as for an absent node.
// Places in an operand ascend.
//
//   name                 operand                      returned
//   large-counts-add     number of 8 bytes to add,    for each a varint, the count of its entry
//                        text place, ...              then
//   large-counts-divide  text begin, text separator,  nothing; the separator, which no entry has,
//                        varint n                     divides the entry whose separator is `begin`:
//                                                     n members stay in it
//   large-counts-join    text separator               nothing; the entry of the separator becomes a
//                                                     part of the one before it
//   large-blocks-add     index of 4 bytes, number     nothing. It is of another value: counts of 4
//                        of 8 bytes to add, ...       bytes each (collections/list_counts.h)
//
// Cost: a copy of the node.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/compare_bytes.h"
#include "base/varint.h"
#include "skep/scratch.h"
#include "types/function_table.h"

namespace skep::types {

struct CountEntry {
  std::string_view separator;  // of the first entry empty: the node's key has it
  uint64_t count = 0;
};

// The entries of a node, as views of its bytes.
struct CountNode {
  std::optional<std::string_view> fence;
  std::vector<CountEntry> entries;  // at least one

  uint64_t Total() const;
  // The index of the entry that has a place which is below the fence and not below the node.
  size_t Find(std::string_view place) const;
};
// Nothing if the bytes are no node.
std::optional<CountNode> ReadCountNode(std::string_view bytes);
std::string WriteCountNode(std::optional<std::string_view> fence,
                           std::span<const CountEntry> entries);

// Copies a node, adding to the counts of its entries, which it goes through once.
class CountsCopy {
 public:
  // `changes`: to so many entries at most is added.
  CountsCopy(std::string_view node, size_t changes, Scratch& scratch)
      : rest_(node),
        copied_(node.data()),
        begin_(scratch.Allocate(node.size() + kVarintBytesMax * (changes + 1))),
        to_(begin_) {}

  // Begins with the first entry. False: the bytes are no node.
  bool Begin();
  bool EndsBefore(std::string_view place) const {
    return fence_ && CompareBytes(place, *fence_) >= 0;
  }
  // Goes on to the entry that has the place, which is not below that of an earlier call. False: as
  // Begin.
  bool GoTo(std::string_view place);
  uint64_t* count() { return &count_; }
  // The whole node then.
  std::string_view End();

 private:
  bool TakeCount();
  void WriteCount();
  void CopyUpTo(const char* end);

  std::string_view rest_;           // behind the entry
  const char* copied_;              // bytes before this are copied, or replaced
  const char* count_at_ = nullptr;  // where the entry's count begins
  uint64_t count_before_ = 0;       // that it has there
  char* const begin_;
  char* to_;
  std::optional<std::string_view> fence_;
  uint64_t count_ = 0;
};

std::span<const TypeFunction> LargeCountsFunctions();

}  // namespace skep::types
