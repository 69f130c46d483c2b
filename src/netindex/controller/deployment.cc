#include "netindex/controller/deployment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "netindex/switch/bank_writer.h"

namespace skep::netindex {
namespace {

struct NamedRole {
  std::string_view name;
  SwitchRole role;
};

const std::array<NamedRole, 4>& Roles() {
  static const std::array<NamedRole, 4> kRoles = {
      {{"core", {.has_root = true}},
       {"aggregation", {.layer = 0, .layers = 2}},
       {"edge", {.is_last = true, .layer = 2, .layers = 2}},
       {"only", {.has_root = true, .is_last = true, .layer = 0, .layers = SWITCH_LAYERS}}}};
  return kRoles;
}

// The server as a switch knows it; nothing: this is no address.
std::optional<SwitchServer> ServerOf(const std::string& address) {
  SwitchServer server{};
  const std::string host = address.substr(0, address.rfind(':'));
  if (inet_pton(AF_INET, host.c_str(), &server.address) != 1) return std::nullopt;
  return server;
}

Layer OfServers(const Tables& tables, const Layer& layer, const SwitchRole& role) {
  if (role.servers.empty()) return layer;
  Layer found;
  std::ranges::copy_if(layer, std::back_inserter(found), [&](uint32_t node) {
    const ServerRange& range = tables.ranges[tables.tree.nodes[node].server];
    return std::ranges::find(role.servers, range.address) != role.servers.end();
  });
  return found;
}

}  // namespace

std::optional<SwitchRole> ParseRole(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto named = std::ranges::find(Roles(), text.substr(0, colon), &NamedRole::name);
  if (named == Roles().end()) return std::nullopt;
  SwitchRole role = named->role;
  text.remove_prefix(colon + 1);
  const size_t equals = text.find('=');
  role.socket = text.substr(0, equals);
  if (equals != std::string_view::npos) {
    for (const auto server : std::views::split(text.substr(equals + 1), ',')) {
      role.servers.emplace_back(server.begin(), server.end());
    }
  }
  return role;
}

uint32_t LayersOf(const std::vector<SwitchRole>& roles) {
  uint32_t layers = 0;
  for (const SwitchRole& role : roles) layers = std::max(layers, role.layer + role.layers);
  return layers;
}

Tables MakeTables(const std::vector<ServerRange>& ranges, const std::vector<ServerLeaves>& leaves,
                  uint32_t layers, uint64_t first_address) {
  Tables tables{.ranges = ranges,
                .tree = MakeIndexTree(leaves, SWITCH_BRANCHES, first_address),
                .root = {},
                .layers = {}};
  tables.root = BuildFatRoot(tables.tree, SWITCH_RANGES_MAX);
  tables.layers = CacheLayers(tables.tree, tables.root, layers, SWITCH_NODES_MAX);
  uint64_t all = 0;
  for (const uint32_t node : tables.tree.roots) all += tables.tree.nodes[node].hits;
  const uint64_t covered = HitsCovered(tables.tree, tables.root, tables.layers);
  tables.covered = all == 0 ? 0 : static_cast<double>(covered) / static_cast<double>(all);
  return tables;
}

Status WriteBank(const Tables& tables, const SwitchRole& role, SwitchBank* bank) {
  if (tables.ranges.size() > SWITCH_SERVERS_MAX) {
    return {Code::kTooLarge, "too many ranges", SWITCH_SERVERS_MAX};
  }
  std::vector<SwitchServer> servers;
  for (const ServerRange& range : tables.ranges) {
    const auto server = ServerOf(range.address);
    if (!server) return {Code::kInvalidArgument, "a server's address is no IPv4 address"};
    servers.push_back(*server);
  }
  WriteServers(servers, bank);
  if (role.has_root) WriteRoot(tables.tree, tables.root, bank);
  for (uint32_t i = 0; i < role.layers; ++i) {
    WriteLayer(tables.tree, OfServers(tables, tables.layers[role.layer + i], role), i, bank);
  }
  return {};
}

}  // namespace skep::netindex
