// What skep-pool ctl status prints.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/varint.h"
#include "pool/connected_pool.h"
#include "pool/map_watch.h"
#include "pool/messages.h"
#include "tools/pool/pool_commands.h"
#include "tools/pool/pool_probe.h"
#include "tools/pool/role_name.h"

namespace skep {
namespace {

constexpr int kAskMs = 1000;
constexpr uint32_t kSessionMs = 4000;

struct Row {
  std::string role;
  uint32_t id = 0;
  bool answers = false;
  std::optional<uint64_t> chunks;  // of a memory server
  Address address;
};

struct Findings {
  pool::MapWatch::View view;
  std::vector<Row> rows;
  std::optional<pool::PoolStatus> status;  // of the hash server; none: it does not answer
};

// A reply that says kOk, without that; nothing: it says something else.
std::optional<std::string_view> FieldsOf(const std::optional<std::string>& reply) {
  if (!reply || reply->empty() || (*reply)[0] != static_cast<char>(pool::ReplyCode::kOk)) {
    return std::nullopt;
  }
  return std::string_view(*reply).substr(1);
}

void AskIndexServers(PoolProbe& probe, Findings& findings) {
  const pool::PoolMap& map = findings.view.map;
  const char request = static_cast<char>(pool::MessageKind::kStatus);
  for (const auto& [id, address] : map.index_servers) {
    const auto reply = probe.Ask(address, {&request, 1}, kAskMs);
    findings.rows.push_back({.role = std::string(RoleName(map, id)),
                             .id = id,
                             .answers = reply.has_value(),
                             .chunks = {},
                             .address = address});
    pool::PoolStatus status;
    const auto fields = FieldsOf(reply);
    if (id == map.hash_server && fields && pool::DecodeStatus(*fields, &status)) {
      findings.status = status;
    }
  }
}

void AskMemoryServers(PoolProbe& probe, Findings& findings) {
  for (const auto& [id, address] : findings.view.map.memory_servers) {
    std::string request(1, static_cast<char>(pool::MessageKind::kHello));
    AppendVarint(request, 0);
    AppendVarint(request, id);
    const auto reply = probe.Ask(address, request, kAskMs);
    // Another server at its address is not this one.
    auto fields = FieldsOf(reply);
    Row row = {
        .role = "memory server", .id = id, .answers = fields.has_value(), .address = address};
    uint64_t chunks = 0;
    if (fields && TakeVarint(*fields, &chunks)) row.chunks = chunks;
    findings.rows.push_back(std::move(row));
  }
}

void PrintTable(const PoolLookOptions& options, const Findings& findings) {
  fmt::print("pool {}, epoch {}, over {}\n\n", options.pool.name, findings.view.map.epoch,
             options.pool.fabric);
  fmt::print("{:<16} {:>10}  {:<14} {:>8}  {}\n", "ROLE", "SERVER", "STATE", "MIB", "ADDRESS");
  for (const Row& row : findings.rows) {
    const std::string mib =
        row.chunks ? fmt::to_string(*row.chunks * (pool::kChunkBytes >> 20)) : "";
    fmt::print("{:<16} {:>10}  {:<14} {:>8}  {}\n", row.role, row.id,
               row.answers ? "answers" : "does not answer", mib, row.address);
  }
  if (!findings.status) {
    fmt::print("\nThe hash server does not serve: writes wait.\n");
    return;
  }
  const pool::PoolStatus& s = *findings.status;
  const double used =
      s.chunks == 0 ? 0 : 100.0 * double(s.chunks - s.free_chunks) / double(s.chunks);
  const double live =
      s.chunks == 0 ? 0
                    : 100.0 * double(s.live_units) / (double(s.chunks) * double(pool::kChunkUnits));
  fmt::print(
      "\n{} items, which fill {:.1f} %; {} of {} chunks of 2 MiB in use ({:.1f} %); {} clients\n",
      s.items, live, s.chunks - s.free_chunks, s.chunks, used, s.clients);
  const pool::CleanerFigures& c = s.cleaner;
  fmt::print("cleaned: {} chunks, of which {} items were moved, {} MiB\n", c.chunks_cleaned,
             c.items_moved, c.bytes_moved >> 20);
  if (c.chunks_evicted == 0) return;
  fmt::print("evicted: {} chunks with {} items\n", c.chunks_evicted, c.items_evicted);
}

void PrintJson(const PoolLookOptions& options, const Findings& findings) {
  nlohmann::ordered_json json = {{"pool", options.pool.name},
                                 {"fabric", options.pool.fabric},
                                 {"epoch", findings.view.map.epoch},
                                 {"servers", nlohmann::ordered_json::array()}};
  for (const Row& row : findings.rows) {
    nlohmann::ordered_json server = {
        {"role", row.role}, {"id", row.id}, {"answers", row.answers}, {"address", row.address}};
    if (row.chunks) server["bytes"] = *row.chunks * pool::kChunkBytes;
    json["servers"].push_back(std::move(server));
  }
  json["serves"] = findings.status.has_value();
  if (findings.status) {
    json["items"] = findings.status->items;
    json["chunks"] = findings.status->chunks;
    json["free_chunks"] = findings.status->free_chunks;
    json["chunk_bytes"] = pool::kChunkBytes;
    json["live_bytes"] = findings.status->live_units * pool::kUnitBytes;
    json["clients"] = findings.status->clients;
    const pool::CleanerFigures& c = findings.status->cleaner;
    json["items_moved"] = c.items_moved;
    json["bytes_moved"] = c.bytes_moved;
    json["chunks_cleaned"] = c.chunks_cleaned;
    json["items_evicted"] = c.items_evicted;
    json["chunks_evicted"] = c.chunks_evicted;
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Errors are for a person.
Result<Findings> Look(const PoolOptions& pool, std::string* problem) {
  const auto around = pool::ReachPool(pool, problem);
  if (!around) return Fail(around.error());
  pool::MapWatch watch(*around->coordinator, SystemClock(), pool.name, kSessionMs);
  if (!watch.AwaitRoles(pool.timeout_ms)) {
    *problem = watch.view().is_connected
                   ? fmt::format("the pool {} has no roles: it needs two index servers", pool.name)
                   : fmt::format("ZooKeeper does not answer at {}", pool.zookeeper);
    return Fail(Code::kUnavailable, "there are no roles");
  }
  auto probe = PoolProbe::Open(*around->fabric);
  if (!probe) return Fail(probe.error());
  Findings findings{.view = watch.view(), .rows = {}, .status = {}};
  AskIndexServers(**probe, findings);
  AskMemoryServers(**probe, findings);
  return findings;
}

}  // namespace

int PrintPoolStatus(const PoolLookOptions& options) {
  std::string problem;
  const auto findings = Look(options.pool, &problem);
  if (!findings) {
    fmt::print(stderr, "skep-pool: {}\n", problem.empty() ? findings.error().ToString() : problem);
    return 1;
  }
  options.as_json ? PrintJson(options, *findings) : PrintTable(options, *findings);
  return findings->status ? 0 : 1;
}

}  // namespace skep
