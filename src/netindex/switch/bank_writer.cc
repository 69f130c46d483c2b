#include "netindex/switch/bank_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "netindex/switch/range_encoder.h"

namespace skep::netindex {
namespace {

constexpr uint64_t kGreatest = ~uint64_t{0};
constexpr uint64_t kSeedsMax = 1000;

void WriteStage(const RangeStage& from, SwitchStage* to) {
  SKEP_CHECK(from.size() <= SWITCH_ENTRIES_MAX);
  std::ranges::fill(to->start, ~uint32_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    to->start[i] = from[i].table << 16 | from[i].low;
    to->result[i] = (from[i].is_table ? SWITCH_IS_TABLE : 0) | from[i].result;
  }
}

// For each node of the layer the slot that it gets with this seed; nothing: one lies too far from
// its own. The nodes are placed in the order of their own slots, so none is further than it must.
std::optional<std::vector<uint32_t>> Place(const IndexTree& tree, const Layer& layer,
                                           uint64_t seed) {
  std::vector<std::pair<uint32_t, size_t>> own;
  for (size_t i = 0; i < layer.size(); ++i) {
    own.emplace_back(SwitchSlotOf(seed, tree.nodes[layer[i]].address), i);
  }
  std::ranges::sort(own);
  std::vector<uint32_t> slots(layer.size());
  uint32_t free = 0;
  for (const auto& [slot, i] : own) {
    free = std::max(free, slot);
    if (free - slot >= SWITCH_PROBES) return std::nullopt;
    slots[i] = free++;
  }
  return slots;
}

}  // namespace

void WriteRoot(const IndexTree& tree, const FatRoot& root, SwitchBank* bank) {
  SKEP_CHECK(!root.ranges.empty() && root.ranges.size() <= SWITCH_RANGES_MAX);
  std::ranges::fill(bank->root.pivot, kGreatest);
  std::vector<uint64_t> uppers;
  for (size_t i = 0; i < root.ranges.size(); ++i) {
    const IndexNode& node = tree.nodes[root.ranges[i]];
    bank->root.address[i] = node.address;
    bank->root.server[i] = node.server;
    if (i == 0) continue;
    bank->root.pivot[i - 1] = node.pivot;
    uppers.push_back(node.pivot);
  }
  uppers.push_back(kGreatest);
  const auto stages = EncodeRanges(uppers, SWITCH_STAGES);
  for (uint32_t s = 0; s < SWITCH_STAGES; ++s) WriteStage(stages[s], &bank->root.stage[s]);
  bank->ranges = root.ranges.size();
}

SwitchNode NodeOf(const IndexTree& tree, uint32_t index) {
  const IndexNode& from = tree.nodes[index];
  SKEP_CHECK(!from.children.empty() && from.children.size() <= SWITCH_BRANCHES);
  SwitchNode node{.address = from.address, .pivot = {}, .child = {}};
  for (size_t i = 0; i < SWITCH_BRANCHES; ++i) {
    const IndexNode& child = tree.nodes[from.children[std::min(i, from.children.size() - 1)]];
    node.child[i] = child.address;
    if (i > 0) node.pivot[i - 1] = child.pivot;
  }
  return node;
}

void WriteLayer(const IndexTree& tree, const Layer& layer, uint32_t number, SwitchBank* bank) {
  SKEP_CHECK(number < SWITCH_LAYERS && layer.size() <= SWITCH_NODES_MAX);
  std::optional<std::vector<uint32_t>> slots;
  uint64_t seed = 0;
  while (!slots) {
    SKEP_CHECK(++seed <= kSeedsMax);
    slots = Place(tree, layer, seed);
  }
  for (size_t i = 0; i < layer.size(); ++i) {
    bank->slots[number][(*slots)[i]] = NodeOf(tree, layer[i]);
  }
  bank->seed[number] = seed;
  bank->nodes[number] = layer.size();
}

void WriteServers(std::span<const SwitchServer> servers, SwitchBank* bank) {
  SKEP_CHECK(servers.size() <= SWITCH_SERVERS_MAX);
  std::ranges::copy(servers, bank->servers);
}

}  // namespace skep::netindex
