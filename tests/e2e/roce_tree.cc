// Makes a tree in the memory of some servers, and gives switches what they may know of it.
// Usage: roce_tree FOLDER KEYS SERVER,SERVER... ROLE:SOCKET...
//
// FOLDER/memory<i>  nodes of server i, 256 bytes each, from address (i + 1) << 40 on
// FOLDER/keys       lines "KEY VALUE" of random keys
//
// A node is a SwitchNode, little-endian. A leaf has 15 keys in place of pivots, their values in
// place of children, and all ones as last child; the rkey of server i is 4096 + i.
#include <arpa/inet.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "netindex/controller/controller.h"
#include "netindex/switch/bank_writer.h"

namespace skep::netindex {
namespace {

constexpr size_t kLeafKeys = SWITCH_BRANCHES - 1;

struct World {
  std::vector<ServerRange> ranges;
  std::vector<ServerLeaves> leaves;
  std::vector<SwitchNode> leaf_nodes;  // the address of an IndexLeaf is its index here, plus 1
};

// The keys in equal parts to all servers.
World MakeWorld(const std::vector<uint64_t>& keys, const std::vector<std::string>& servers,
                std::ofstream& listing) {
  World world;
  const size_t share = keys.size() / servers.size() / kLeafKeys * kLeafKeys;
  for (size_t s = 0; s < servers.size(); ++s) {
    const size_t end = s + 1 < servers.size() ? (s + 1) * share : keys.size();
    world.ranges.push_back({.lower = "", .address = servers[s]});
    ServerLeaves& own = world.leaves.emplace_back();
    own.first = s == 0 ? 0 : keys[s * share];
    for (size_t at = s * share; at < end; at += kLeafKeys) {
      SwitchNode& leaf = world.leaf_nodes.emplace_back();
      for (size_t i = 0; i < kLeafKeys && at + i < end; ++i) {
        leaf.pivot[i] = keys[at + i];
        leaf.child[i] = keys[at + i] * 3 + 1;
        listing << leaf.pivot[i] << ' ' << leaf.child[i] << '\n';
      }
      leaf.child[SWITCH_BRANCHES - 1] = ~uint64_t{0};
      own.leaves.push_back({.first = own.leaves.empty() ? own.first : keys[at],
                            .address = world.leaf_nodes.size(),
                            .hits = keys[at] % 1000});
    }
  }
  return world;
}

// Gives every node of the tree a place in its server's memory, and writes that.
void WriteMemory(const std::string& folder, const World& world, Tables* tables) {
  const std::vector<IndexNode> before = tables->tree.nodes;
  std::vector<uint64_t> next(world.ranges.size());
  for (IndexNode& node : tables->tree.nodes) {
    node.address = (uint64_t{node.server} + 1) << 40 | 256 * next[node.server]++;
  }
  std::vector<std::ofstream> files;
  for (size_t s = 0; s < world.ranges.size(); ++s) {
    files.emplace_back(folder + "/memory" + std::to_string(s), std::ios::binary);
  }
  for (uint32_t i = 0; i < before.size(); ++i) {
    const IndexNode& node = tables->tree.nodes[i];
    SwitchNode bytes =
        node.children.empty() ? world.leaf_nodes[before[i].address - 1] : NodeOf(tables->tree, i);
    bytes.address = node.address;
    files[node.server].write(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  }
}

bool Install(const Tables& tables, const std::string& text) {
  const auto role = ParseRole(text);
  const auto bank = std::make_unique<SwitchBank>();
  if (!role || !WriteBank(tables, *role, bank.get()).ok()) return false;
  for (uint32_t s = 0; s < tables.ranges.size(); ++s) bank->servers[s].rkey = htonl(4096 + s);
  return UnixSwitchPort(role->socket).Ask(1, bank.get()).has_value();
}

int Main(const std::vector<std::string>& words) {
  const std::string& folder = words[0];
  std::mt19937_64 rng(std::random_device{}());
  std::set<uint64_t> keys;
  while (keys.size() < std::strtoull(words[1].c_str(), nullptr, 10)) keys.insert(rng() | 1);
  std::vector<std::string> servers;
  for (const auto server : std::views::split(std::string_view(words[2]), ',')) {
    servers.emplace_back(server.begin(), server.end());
  }
  std::ofstream listing(folder + "/keys");
  const World world = MakeWorld({keys.begin(), keys.end()}, servers, listing);
  Tables tables = MakeTables(world.ranges, world.leaves, 4, 1);
  // A smaller fat root, so that nodes lie below it in all layers.
  tables.root = BuildFatRoot(tables.tree, 8);
  tables.layers = CacheLayers(tables.tree, tables.root, 4, SWITCH_NODES_MAX);
  WriteMemory(folder, world, &tables);
  for (size_t i = 3; i < words.size(); ++i) {
    if (Install(tables, words[i])) continue;
    std::cerr << words[i] << ": the tables cannot be installed\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace skep::netindex

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  return skep::netindex::Main({argv + 1, argv + argc});
}
