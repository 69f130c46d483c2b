// list.h: a list in one value.
//
//   +-------------------+----------+----------+----
//   | varint, elements  | element  | element  | ...
//   +-------------------+----------+----------+----
//
//   element    +---------------+------------------+
//              | text, text.h  | length, backward |
//              +---------------+------------------+
//
// The length is that of the text with its own varint, and is a varint whose bytes stand in the
// opposite order, so that it is read from the end. So a list is walked from either end, and a
// command that is about an end looks at that end only. An element of up to 126 bytes takes two
// bytes more than it has.
//
// The functions, their operands, and what they return beside the answer of an error. Numbers in
// operands are decimals, and indexes below 0 count from the end, -1 is the last one.
//
//   name              operand                integer             returned
//   list-push-left    element, ...           the new length
//   list-push-right   element, ...           the new length
//   list-pushx-left   element, ...           the new length; 0: no list, nothing is done
//   list-pushx-right  element, ...           likewise
//   list-pop-left     count                  how many are gone   those elements
//   list-pop-right    count                  likewise            the last first
//   list-rotate       "left" or "right":                         the element that was moved
//                     from where; to where
//   list-length                              how many elements
//   list-range        first, last                                element, ...
//   list-index        index                                      the element; nothing: none
//   list-set          index, element
//   list-insert       "before" or "after",   the new length; -1: no pivot; 0: no list
//                     pivot, element
//   list-remove       count, element         how many are gone
//   list-trim         first, last
//   list-find         element, rank, count,  how many are found  their indexes, as decimals
//                     most
//
// Cost: a walk from the nearer end; to store, a copy of the list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/text.h"

namespace skep::types {

struct Counted;

// The elements of a list, from the first to the last; nothing if the bytes are wrong. Views of
// them.
std::optional<std::vector<std::string_view>> ReadListElements(const Counted& list);

// Takes an element from the front. False: the bytes do not begin with one.
inline bool TakeElement(std::string_view& from, std::string_view* text) {
  const size_t before = from.size();
  if (!TakeText(from, text)) return false;
  const size_t length_bytes = VarintBytes(before - from.size());
  if (length_bytes > from.size()) return false;
  from.remove_prefix(length_bytes);
  return true;
}
// Takes an element from the back. False: the bytes do not end with one.
bool TakeLastElement(std::string_view& from, std::string_view* text);
void AppendElement(std::string& to, std::string_view text);

// What list-find is asked for.
struct FindRequest {
  std::string_view element;
  int64_t rank = 1;    // from which match on, and from which end if it is negative; not 0
  uint64_t count = 0;  // how many are wanted; 0: all
  uint64_t most = 0;   // how many elements are looked at; 0: all

  uint64_t to_skip() const {  // matches before the first that is wanted
    return (rank > 0 ? static_cast<uint64_t>(rank) : uint64_t{0} - static_cast<uint64_t>(rank)) - 1;
  }
};
std::optional<FindRequest> ReadFindRequest(std::string_view operand);

}  // namespace skep::types
