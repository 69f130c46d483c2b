// tuning.h: the parameters of a table for pairs of one size (KV-Direct, sections 3.3.1 and 5.1.1).
//
// The paper chooses two when a store is made, for the size of the pairs and the utilisation of
// memory that is wanted: up to which size a pair lies inline, and which part of the memory is
// index. Here the index grows, so its part is a consequence: of fill_slots, the slots wanted for
// each bucket. The more there are, the less memory a pair takes, and the more keys are in chains.
//
//   utilisation   bytes of all keys and values / bytes of buckets, slabs and bodies
//   lines         of 64 B, that a GET reads, and that a PUT of an equal length reads and writes
//
// Expected values. The keys of a bucket are Poisson-distributed. Linear hashing has buckets of two
// loads, those that were split in this round and those that were not, which have twice as many; all
// positions in the round are averaged. What n keys of a bucket take follows from how they are put
// there: inline while there is room, then pointers in the slots that are left, then another bucket.
// Left out: secondary hashes that agree by chance (a line in fifty chains), pairs that splits leave
// in slabs though there is room (some percent of the memory where chains are common), deadlines (a
// pair with one is never inline), and what is held but not used: up to 2 MiB of index, and slabs
// that are free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hash/table.h"

namespace skep::hash {

struct TableLayout {
  double utilisation;
  double get_lines;
  double put_lines;
  double lines() const { return get_lines + put_lines; }
};

// Of pairs of these sizes, whatever their number.
TableLayout ExpectLayout(const TableOptions& options, size_t key_bytes, size_t value_bytes);

// The options with the fewest lines of those that are expected to reach the utilisation, which is
// above 0 and below 1; if none does, those with the highest utilisation. Some milliseconds.
TableOptions ChooseTableOptions(size_t key_bytes, size_t value_bytes, double utilisation);

// What a table of up to so many pairs really has: the mean of four moments in which their number
// doubles. For tests and figures. key_bytes > 2, pairs < 2^24.
TableLayout MeasureLayout(const TableOptions& options, size_t key_bytes, size_t value_bytes,
                          uint32_t pairs);

}  // namespace skep::hash
