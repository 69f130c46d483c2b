// ycsb_workload.h: the six core workloads of YCSB, by their own definitions.
//
//   name  read  update  insert  scan  read-modify-write  keys are chosen
//   a       50      50                                   zipfian
//   b       95       5                                   zipfian
//   c      100                                           zipfian
//   d       95               5                           latest
//   e                        5    95                     zipfian; 1..100 items, uniform
//   f       50                                       50  zipfian
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace skep::bench {

enum class OpKind : uint8_t { kRead, kUpdate, kInsert, kReadModifyWrite, kDelete, kScan };

enum class Distribution : uint8_t {
  kUniform,  // over the records loaded
  kZipfian,  // scrambled: hot keys lie anywhere; inserted keys included once they exist
  kLatest,   // Zipf over age: the newest key is the hottest
};

struct Workload {
  char name;
  // Per cent; the sum is 100.
  int read, update, insert, scan, read_modify_write;
  Distribution distribution;  // the default
};

inline constexpr uint32_t kScanItemsMax = 100;

std::span<const Workload> AllWorkloads();
// Null if there is no such workload.
const Workload* FindWorkload(char name);

std::string_view NameOf(Distribution distribution);
std::optional<Distribution> FindDistribution(std::string_view name);

}  // namespace skep::bench
