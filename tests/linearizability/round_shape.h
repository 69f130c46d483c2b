// round_shape.h: the shapes of rounds of tests with real threads, and the stores that are tested.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "skep/options.h"
#include "tests/linearizability/padded_client.h"
#include "tests/linearizability/workload.h"

namespace skep::linearizability {

// A store under test.
struct Variant {
  const char* name;
  const char* engine;
  BtreeOptions btree = {};
  // A tick acts at one instant, also for operations in flight. With other engines an operation
  // learns the time at one instant of its call and acts at another.
  bool is_time_one = false;
  bool is_tree() const { return std::string_view(engine) == "btree"; }
};

// Returns every engine; the tree, of either layout, with nodes of the default size, and with the
// smallest ones: without a log, so that every write makes a new leaf, and with a log of a few
// items.
std::span<const Variant> AllVariants();

// The shape of one round, on an empty store.
struct RoundShape {
  Mix mix;
  Neighbours neighbours = Neighbours::kNone;
  uint32_t clients = 2;
  bool filled = false;          // every key has a value at the beginning
  uint32_t hold_up_one_in = 0;  // TreeProbe
  bool pads_keys = true;        // else the store's keys are a few bytes, as in the history
};

// Returns all kinds of rounds in turn: few keys alone; some twenty in several leaves, alone and
// with neighbours around them; few keys with neighbours between them, points only or everything.
RoundShape ShapeOf(uint64_t round);

// Gives every key of the mix a value; returns the store's contents then.
std::vector<Pair> Fill(KvClient& client, const Mix& mix);

}  // namespace skep::linearizability
