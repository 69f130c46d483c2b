// absl_target.h: benchmarks on absl::btree_map, the ordered peer that every machine can install.
//
// It is given what helps it: keys and values of a fixed size inside the nodes, keys kept as machine
// words that compare in the order of their bytes, nodes on huge pages, each on cache lines of its
// own. It has no threads, no versions, no limits to check; a batch is a loop.
//
//   operation          calls
//   read               find
//   insert             emplace
//   update             find, assign
//   read-modify-write  find, read, assign
//   delete             erase(key)
//   scan               lower_bound, then ++ until n items are read
#pragma once

#include <cstdint>
#include <memory>

#include "bench/record_format.h"
#include "bench/ycsb_target.h"

namespace skep::bench {

inline constexpr const char* kAbslName = "absl";

// Of so many items at most. `values` must outlive the target. Thread safety: none: its sessions
// belong to one thread.
//   kNotSupported  keys or values are not of 8, 16, 24 or 32 bytes
//   kIo            no address space
Result<std::unique_ptr<YcsbTarget>> OpenAbslTarget(size_t key_bytes, const ValuePool& values,
                                                   uint64_t items_max);

}  // namespace skep::bench
