// sorted_set_join.h: unions, intersections and differences of sorted sets, and how the whole of one
// is stored.
//
// The functions, their operands, and what they return beside the answer of an error:
//
//   name        operand                    integer
//   zset-store  entry, ... of different    how many entries; they replace what the key has
//               members
//
// Thread safety: all functions are pure. Cost: of a join, the logarithm of the members for each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "skep/scratch.h"
#include "types/sorted_set.h"

namespace skep::types {

enum class Join : uint8_t { kUnion, kIntersection, kDifference };
enum class Aggregate : uint8_t { kSum, kMin, kMax };

struct JoinInput {
  std::vector<Entry> entries;
  double weight = 1;
};

// The members of the join, ascending. As in Redis sums are made from the smallest input to the
// largest, and what would be no number is 0. Weights and `aggregate` have no meaning for a
// difference.
std::vector<Entry> JoinEntries(Join join, Aggregate aggregate, std::vector<JoinInput> inputs);

// Sorts by score, and by member where scores are equal.
void SortEntries(std::vector<Entry>& entries);

// The value of a sorted set of these entries, which ascend; minus zero becomes zero. Empty if there
// are none.
std::string_view WriteSortedSet(std::vector<Entry> entries, Scratch& scratch);

}  // namespace skep::types
