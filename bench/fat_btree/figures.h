// figures.h: the experiments of Fat-B+Tree's paper (section V), counted and modelled.
//
//   5        queries by number of keys
//   6        queries whose distribution is not the one that the switches were filled for
//   7        queries by the skew of Zipf's law
//   8        queries by nodes a layer
//   9        queries by layers
//   10a-d    throughput of servers that are asked by call, with and without switches: by keys,
//            clients, share of reads, skew
//   inserts  what insertions do to the paper's temporary roots and to Skep's hints
//   ranges   a range query by parts (IV-C)
//
// The nodes that a query reads one after the other are counted. Keys and accesses are drawn, a
// training stream gives the hits, and FatRootBuilder, LayerCache and the tables of
// src/netindex/switch lead each access of another stream down, as in a switch. Trees are those of
// model_tree.h. Time alone is modelled, from the constants in FatBTreeCosts.
//
// Columns of 5 to 9:
//
//   interrupt  READs from the root, each of which wakes the client: the paper's baseline
//   polled     the same READs of a client that polls
//   client     polled; the client caches as many bytes as the switches hold
//   switch     polled; switches lead to a node
//   call       one call, and the server goes down
//   paper      switches lead to a node, and each READ wakes the client: the paper's Fat-B+Tree
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "bench/figure_table.h"

namespace skep::bench {

struct FatBTreeCosts {
  uint64_t interrupt_ns = 16'000;         // a READ whose client sleeps
  std::optional<uint64_t> round_trip_ns;  // a READ or a call; 2,000, for 10 14,000
  uint64_t hop_ns = 150;                  // what looking up adds in a switch, once a query
  uint32_t hops = 2;                      // switches that look up
  std::optional<uint64_t> message_ns;     // a server's work on a call; 1,000, for 10 4,000
  std::optional<uint64_t> level_ns;       // and on each node; 100, for 10 350
};

struct FatBTreeOptions {
  std::string figure;
  std::vector<double> points;     // of the figure's axis; empty: as in the paper, or near to it
  uint64_t records = 0;           // keys, the most of 5 and 10a; 0: see figures.cc
  uint64_t training = 1'000'000;  // accesses from which hits are known
  uint64_t accesses = 200'000;    // that are counted
  double alpha = 0.99;
  uint64_t ranges = 600;           // of the fat root
  std::optional<uint32_t> layers;  // 3, for 10 4
  uint64_t nodes = 3'600;          // of a layer
  uint32_t leaf_trips = 1;         // READs of a leaf of our tree, one after the other
  uint32_t clients = 16;           // 10
  uint32_t servers = 4;            // 10
  double read_share = 0.9;         // 10
  uint64_t seed = 1;
  FatBTreeCosts costs;
};

struct FatBTreeReport : FigureTable {
  FatBTreeOptions options;  // with all defaults
};

// Returns a report, or a line for people: no such figure, or an option that makes no sense.
std::expected<FatBTreeReport, std::string> RunFatBTree(const FatBTreeOptions& options);

}  // namespace skep::bench
