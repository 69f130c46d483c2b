// tuning.h: chooses the parameters of a table for pairs of one size (KV-Direct, sections 3.3.1,
// 5.1.1).
//
// The paper chooses two parameters when a store is made, for the size of the pairs and the wanted
// utilisation of memory: up to which size a pair lies inline, and which share of the memory is
// index. Here the index grows, so its share is a consequence of fill_slots, the wanted slots a
// bucket. The more slots a bucket has to serve, the less memory a pair takes, and the more keys are
// in chains.
//
//   utilisation   bytes of all keys and values / bytes of buckets, slabs and bodies
//   lines         of 64 B: read by a GET, and read and written by a PUT of an equal length
//
// Expected values. The number of keys of a bucket is Poisson-distributed. Linear hashing has
// buckets of two loads, those that were split in this round and those that were not, which have
// twice as many keys; the loads are averaged over all moments of the round. The memory of n keys of
// a bucket follows from how they are stored: inline while there is room, then as pointers in the
// slots that are left, then in another bucket.
// The model leaves out: secondary hashes that agree by chance (a line in fifty chains), pairs that
// splits leave in slabs though there is room (some percent of the memory where chains are common),
// deadlines (a pair with one is never inline), and memory that is held but not used: up to 2 MiB of
// index, and free slabs.
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

// Returns the expected layout of pairs of these sizes, whatever their number.
TableLayout ExpectLayout(const TableOptions& options, size_t key_bytes, size_t value_bytes);

// Returns, of the options that are expected to reach the utilisation (above 0 and below 1), those
// with the fewest lines; if none does, those with the highest utilisation. Takes some milliseconds.
TableOptions ChooseTableOptions(size_t key_bytes, size_t value_bytes, double utilisation);

// Returns the measured layout of a table of up to `pairs` pairs: the mean of four moments in which
// their number doubles. For tests and figures. key_bytes > 2, pairs < 2^24.
TableLayout MeasureLayout(const TableOptions& options, size_t key_bytes, size_t value_bytes,
                          uint32_t pairs);

}  // namespace skep::hash
