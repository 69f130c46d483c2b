// bank_writer.h: writes the tables of a switch (switch_tables.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "netindex/switch/fat_root_builder.h"
#include "netindex/switch/index_tree.h"
#include "netindex/switch/layer_cache.h"
#include "netindex/switch/switch_tables.h"

namespace skep::netindex {

// Writes the fat root, of at most SWITCH_RANGES_MAX ranges, into a bank of zeros.
void WriteRoot(const IndexTree& tree, const FatRoot& root, SwitchBank* bank);

// Writes a layer of at most SWITCH_NODES_MAX inner nodes, whose addresses differ.
void WriteLayer(const IndexTree& tree, const Layer& layer, uint32_t number, SwitchBank* bank);

void WriteServers(std::span<const SwitchServer> servers, SwitchBank* bank);

// The node as a switch, or a memory server, holds it; of at most SWITCH_BRANCHES children.
SwitchNode NodeOf(const IndexTree& tree, uint32_t index);

}  // namespace skep::netindex
