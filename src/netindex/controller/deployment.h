// deployment.h: which switch gets which tables (Fat-B+Tree, IV-A).
//
//   core          the fat root
//   aggregation   layers 1 and 2 below it, of the servers of its pod
//   edge          layers 3 and 4, of the servers behind it
//   only          the fat root and layers 1 to 3: the only switch on the way
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netindex/controller/leaf_source.h"
#include "netindex/switch/fat_root_builder.h"
#include "netindex/switch/layer_cache.h"
#include "netindex/switch/switch_tables.h"
#include "skep/status.h"

namespace skep::netindex {

struct SwitchRole {
  std::string socket;  // where its process listens
  bool has_root = false;
  bool is_last = false;                   // sees the answers of servers that count
  uint32_t layer = 0;                     // the first one, from 0 on
  uint32_t layers = 0;                    // how many
  std::vector<std::string> servers = {};  // HOST:PORT; empty: all
};

// "core:PATH", "edge:PATH=HOST:PORT,HOST:PORT"; nothing: it is no role.
std::optional<SwitchRole> ParseRole(std::string_view text);

// The layers that these roles have together.
uint32_t LayersOf(const std::vector<SwitchRole>& roles);

struct Tables {
  std::vector<ServerRange> ranges;
  IndexTree tree;
  FatRoot root;
  std::vector<Layer> layers;
  double covered = 0;  // the share of hits of leaves for which there is a hint
};

// `leaves` has those of each range. Addresses of nodes that only switches know begin at
// `first_address`.
Tables MakeTables(const std::vector<ServerRange>& ranges, const std::vector<ServerLeaves>& leaves,
                  uint32_t layers, uint64_t first_address);

// Writes what the role has into a bank of zeros.
//   kInvalidArgument  the address of a server is none
//   kTooLarge         more than SWITCH_SERVERS_MAX ranges
Status WriteBank(const Tables& tables, const SwitchRole& role, SwitchBank* bank);

}  // namespace skep::netindex
