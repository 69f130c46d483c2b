// engine_spec.h: an engine and its options as one word on a command line.
//
//   btree
//   btree:layout=paper,node=4096,log=256,mvcc=off
//
//   option  of BtreeOptions
//   layout  layout: heads or paper
//   node    node_bytes
//   log     log_bytes
//   mvcc    multi_version: on or off
//
//   hash:inline=25,fill=6
//   hash:pair=8+16,utilisation=0.5
//
//   option       of HashOptions
//   inline       inline_bytes_max
//   fill         fill_slots
//   pair         bytes of key and value: chooses the best inline and fill for such pairs
//                  (hash/tuning.h), and
//   utilisation    for this share of memory; 0.5 by default. Neither goes with inline or fill
//
//   hashleaf:leaf=256K
//
//   option  of HashleafOptions
//   threads threads
//   leaf    leaf_bytes; K and M are units. The sizes of keys and values are those of the benchmark
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "skep/options.h"

namespace skep::bench {

// Returns options of a store of one keyspace with that engine. Store::Open decides whether there is
// such an engine and whether it accepts these numbers; the error is a line for people.
std::expected<Options, std::string> ParseEngineSpec(std::string_view spec);

// Joins the specs of a list that was cut at every comma: an element `option=value` belongs to the
// spec before it.
std::vector<std::string> JoinEngineSpecs(const std::vector<std::string>& pieces);

}  // namespace skep::bench
