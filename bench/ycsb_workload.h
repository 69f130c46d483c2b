// ycsb_workload.h: the workloads of the benchmarks: shares of operations, and the choice of keys.
//
// YCSB's six core workloads, by their own definitions:
//
//   name  read  update  insert  scan  read-modify-write  keys are chosen
//   a       50      50                                   zipfian
//   b       95       5                                   zipfian
//   c      100                                           zipfian
//   d       95               5                           latest
//   e                        5    95                     zipfian; 1..100 items, uniform
//   f       50                                       50  zipfian
//
// Further workloads:
//
//   get     100                                          uniform
//   update         100                                   uniform
//   scanN                         100                    uniform; N items (1..kScanItemsMax)
//   cloudP               100-P     P (0..100)            uniform; 3 or 4 items: the storage of a
//                                                        cloud, Honeycomb section 6
//   hotN    100                                          uniform over the N keys that are first in
//                                                        order: one key, or about one leaf
//   churn            34      33                          uniform; 33 % deletes of loaded or
//                                                        inserted keys, so that their number stays
//   get-heavy   95   5                                   zipfian        HeteroKV's, section IV
//   put-heavy    5  95                                   zipfian
//   scan-heavy       5            95                     zipfian; 100 items
//   load     every key is inserted once
//   delete   every key is deleted once
//
// hotN, churn and delete are for skep-bench compare.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace skep::bench {

enum class OpKind : uint8_t { kRead, kUpdate, kInsert, kReadModifyWrite, kDelete, kScan };

enum class Distribution : uint8_t {
  kUniform,  // over the records loaded
  kZipfian,  // scrambled: hot keys lie anywhere; inserted keys included once they exist
  kLatest,   // Zipf over age: the newest key is the hottest
};

inline constexpr uint32_t kScanItemsMax = 10'000;
inline constexpr uint32_t kHotKeysMax = 10'000;

struct Workload {
  std::string name;
  // Shares in per cent; their sum is 100. All are 0 if there is a sweep.
  int read = 0, update = 0, insert = 0, scan = 0, read_modify_write = 0, remove = 0;
  Distribution distribution = Distribution::kUniform;  // the default
  // The number of items of a scan: each number in the range equally often.
  uint32_t scan_items_min = 1;
  uint32_t scan_items_max = 100;
  std::optional<OpKind> sweep = std::nullopt;  // kInsert, kDelete: each key once, instead of a mix
  uint32_t hot_keys = 0;  // reads are of this many keys, the first in order; 0: of any

  bool writes() const { return update + insert + read_modify_write + remove > 0 || sweep; }
  // Returns whether it needs what only skep-bench compare does: items that are put back, keys in
  // order.
  bool is_for_compare() const { return hot_keys > 0 || remove > 0 || sweep == OpKind::kDelete; }
};

// Returns YCSB's own workloads: a to f.
std::span<const Workload> CoreWorkloads();
// Returns nothing if there is no such workload.
std::optional<Workload> FindWorkload(std::string_view name);

std::string_view NameOf(Distribution distribution);
std::optional<Distribution> FindDistribution(std::string_view name);

}  // namespace skep::bench
