// ordered_load.h: the loads of the benchmark of ordered indexes, and the operations they are of.
//
//   name            one operation                                       keys
//   insert          a new key; from an empty index until all are there  each once, random order
//   get, get_zipf   find a key that is there                            uniform, Zipf 0.99
//   scanN           N items from a key that is there on, N = 1..100     uniform; scanN_zipf
//   update          another value for a key that is there               uniform; update_zipf
//   delete          a key that is there                                 each once, random order
//
// Keys are numbered 0 .. items-1 and their bytes are random, so that the order of numbers is a
// random order of keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/op_stream.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

struct OrderedLoad {
  std::string name;
  OpKind kind;
  uint32_t scan_items;        // kScan
  Distribution distribution;  // uniform or Zipf; kInsert and kDelete take each key once
};

// Nothing if there is no such load.
std::optional<OrderedLoad> FindOrderedLoad(std::string_view name);

// Which part of the work, and from which seed.
struct OrderedShare {
  uint64_t items;  // > 0: how many keys there are
  uint32_t thread;
  uint32_t threads;  // > thread
  uint64_t seed;
};

// The operations of a load that is neither kInsert nor kDelete, without end. Equal shares choose
// equal ones. Updates of different threads never meet on one key, so that what is stored in the end
// does not depend on who was faster.
std::unique_ptr<OpSource> MakeChoices(const OrderedLoad& load, const OrderedShare& share);

// Keys, each once as long as no more than `items` are taken by all threads together; of `kind`.
std::unique_ptr<OpSource> MakeSweep(OpKind kind, const OrderedShare& share);

}  // namespace skep::bench
