// Prints test vectors as JSON, for other implementations of the switch: tables of random trees, and
// packets before and after each hop. Usage: switch_vectors SEED
//
//   [{"hops": [SWITCH...], "packets": [[FRAME, FRAME behind the first hop, ...]...]}...]
//   SWITCH  {"service", "port", "duties", "servers": [{"address", "rkey"}],
//            "ranges": [{"pivot", "address", "server"}]   pivot: of the range's lower end
//            "stages": [[{"table", "low", "high", "is_table", "result"}...] x 4],
//            "layers": [[{"address", "pivots" (16), "children" (16)}...] x 3]}
//
// Frames are hexadecimal. IPv4 addresses and rkeys are numbers whose highest byte is the first of
// the packet. Numbers may need 64 bits.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "base/hex.h"
#include "netindex/switch/range_encoder.h"
#include "netindex/switch/switch_frame.h"
#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

using Json = nlohmann::json;

Json JsonOf(const RangeStage& stage) {
  Json entries = Json::array();
  for (const RangeEntry& entry : stage) {
    entries.push_back({{"table", entry.table},
                       {"low", entry.low},
                       {"high", entry.high},
                       {"is_table", entry.is_table},
                       {"result", entry.result}});
  }
  return entries;
}

void AddRoot(const SwitchBank& bank, Json& json) {
  json["ranges"] = Json::array();
  json["stages"] = Json::array();
  std::vector<uint64_t> uppers;
  for (uint64_t i = 0; i < bank.ranges; ++i) {
    json["ranges"].push_back({{"pivot", i == 0 ? 0 : bank.root.pivot[i - 1]},
                              {"address", bank.root.address[i]},
                              {"server", bank.root.server[i]}});
    uppers.push_back(i + 1 < bank.ranges ? bank.root.pivot[i] : ~uint64_t{0});
  }
  if (uppers.empty()) return;
  for (const RangeStage& stage : EncodeRanges(uppers)) json["stages"].push_back(JsonOf(stage));
}

Json LayerOf(const SwitchBank& bank, uint32_t layer) {
  Json nodes = Json::array();
  for (const SwitchNode& node : bank.slots[layer]) {
    if (node.address == 0) continue;
    std::vector<uint64_t> pivots = {0};
    pivots.insert(pivots.end(), std::begin(node.pivot), std::end(node.pivot));
    nodes.push_back({{"address", node.address}, {"pivots", pivots}, {"children", node.child}});
  }
  return nodes;
}

Json JsonOf(const TestSwitch& at) {
  Json json = {{"service", ntohl(at.config->service)},
               {"port", at.config->port},
               {"duties", at.config->duties}};
  for (const SwitchServer& server : at.bank->servers) {
    if (server.address == 0) continue;
    json["servers"].push_back({{"address", ntohl(server.address)}, {"rkey", ntohl(server.rkey)}});
  }
  AddRoot(*at.bank, json);
  for (uint32_t layer = 0; layer < SWITCH_LAYERS; ++layer) {
    json["layers"].push_back(LayerOf(*at.bank, layer));
  }
  return json;
}

std::vector<TestSwitch> RandomWay(const IndexTree& tree, size_t hops, size_t servers) {
  const FatRoot root = BuildFatRoot(tree, 20);
  const auto layers = CacheLayers(tree, root, SWITCH_LAYERS * hops, 40);
  std::vector<TestSwitch> way;
  for (size_t hop = 0; hop < hops; ++hop) {
    const bool is_first = hop == 0, is_last = hop + 1 == hops;
    way.emplace_back(
        static_cast<uint16_t>((is_first ? SWITCH_FIRST : 0) | (is_last ? SWITCH_LAST : 0)));
    SwitchBank* const bank = way.back().bank.get();
    SetServers(servers, bank);
    if (is_first) WriteRoot(tree, root, bank);
    for (uint32_t i = 0; i < SWITCH_LAYERS; ++i) {
      WriteLayer(tree, layers[SWITCH_LAYERS * hop + i], i, bank);
    }
  }
  return way;
}

std::string RandomFrame(std::mt19937_64& rng, uint64_t key, size_t servers) {
  const uint32_t to =
      rng() % 3 == 0 ? ServerAt(static_cast<uint32_t>(rng() % servers)).address : kService;
  std::string frame =
      rng() % 2 == 0 ? GetFrame(KeyBytes(key, 1 + rng() % 16), 0, to) : ReadFrame(key, 0, to);
  if (rng() % 8 == 0) Put(frame, SWITCH_ETHERTYPE + rng() % 60, static_cast<uint8_t>(rng()));
  return frame;
}

Json Case(std::mt19937_64& rng) {
  const size_t servers = 1 + rng() % 3;
  const auto branches = static_cast<uint32_t>(2 + rng() % 15);
  const IndexTree tree = MakeIndexTree(RandomLeaves(rng, servers, 1 + rng() % 400), branches);
  auto way = RandomWay(tree, 1 + rng() % 3, servers);
  Json json = {{"hops", Json::array()}, {"packets", Json::array()}};
  for (const TestSwitch& at : way) json["hops"].push_back(JsonOf(at));
  auto keys = KeysFor(tree, rng);
  std::ranges::shuffle(keys, rng);
  keys.resize(std::min<size_t>(keys.size(), 100));
  for (const uint64_t key : keys) {
    std::string frame = RandomFrame(rng, key, servers);
    Json frames = {ToHex(frame)};
    for (TestSwitch& at : way) {
      SwitchFrame(*at.config, *at.bank, &at.counters, &frame);
      frames.push_back(ToHex(frame));
    }
    json["packets"].push_back(std::move(frames));
  }
  return json;
}

}  // namespace
}  // namespace skep::netindex

int main(int argc, char** argv) {
  std::mt19937_64 rng(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1);
  nlohmann::json cases = nlohmann::json::array();
  for (int i = 0; i < 8; ++i) cases.push_back(skep::netindex::Case(rng));
  fmt::print("{}\n", cases.dump());
  return 0;
}
