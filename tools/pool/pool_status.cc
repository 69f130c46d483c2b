// What skep-pool ctl status prints.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
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
constexpr int kLookAgainMs = 500;
constexpr uint32_t kSessionMs = 4000;
constexpr std::string_view kMemoryServer = "memory server";

struct Row {
  std::string role;
  uint32_t id = 0;
  bool answers = false;
  std::optional<uint64_t> chunks;  // of a memory server
  Address address;
  std::string standing = {};            // of a memory server, in the pool
  std::optional<uint64_t> free_chunks;  // of a memory server
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

std::string_view StandingOf(pool::Chunks::ServerState state) {
  switch (state) {
    case pool::Chunks::ServerState::kOpen:
      return "open";
    case pool::Chunks::ServerState::kDraining:
      return "draining";
    case pool::Chunks::ServerState::kDrained:
      return "drained";
    case pool::Chunks::ServerState::kGone:
      return "gone";
  }
  return "";
}

// What the hash server knows of memory servers, into their rows; one that has no node any more has
// none yet.
void AskHashServer(PoolProbe& probe, Findings& findings) {
  const pool::PoolMap& map = findings.view.map;
  const auto address = map.index_servers.find(map.hash_server);
  if (address == map.index_servers.end()) return;
  const char request = static_cast<char>(pool::MessageKind::kServers);
  const auto reply = probe.Ask(address->second, {&request, 1}, kAskMs);
  std::vector<pool::ToldServer> servers;
  const auto fields = FieldsOf(reply);
  if (!fields || !pool::DecodeServers(*fields, &servers)) return;
  for (const pool::ToldServer& told : servers) {
    auto row = std::ranges::find_if(findings.rows, [&](const Row& at) {
      return at.id == told.server && at.role == kMemoryServer;
    });
    if (row == findings.rows.end()) {
      findings.rows.push_back({.role = std::string(kMemoryServer), .id = told.server});
      row = findings.rows.end() - 1;
    }
    row->standing = StandingOf(told.state);
    row->chunks = told.frames;
    row->free_chunks = told.free_frames;
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
    Row row = {.role = std::string(kMemoryServer),
               .id = id,
               .answers = fields.has_value(),
               .address = address};
    uint64_t chunks = 0;
    if (fields && TakeVarint(*fields, &chunks)) row.chunks = chunks;
    findings.rows.push_back(std::move(row));
  }
}

void PrintTable(const PoolLookOptions& options, const Findings& findings) {
  fmt::print("pool {}, epoch {}, over {}\n\n", options.pool.name, findings.view.map.epoch,
             options.pool.fabric);
  fmt::print("{:<16} {:>10}  {:<25} {:>8}  {}\n", "ROLE", "SERVER", "STATE", "MIB", "ADDRESS");
  for (const Row& row : findings.rows) {
    const std::string mib =
        row.chunks ? fmt::to_string(*row.chunks * (pool::kChunkBytes >> 20)) : "";
    const std::string state = fmt::format("{}{}{}", row.answers ? "answers" : "does not answer",
                                          row.standing.empty() ? "" : ", ", row.standing);
    fmt::print("{:<16} {:>10}  {:<25} {:>8}  {}\n", row.role, row.id, state, mib, row.address);
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
  if (s.under_replicated_chunks > 0) {
    fmt::print("{} chunks lie on too few memory servers, and are copied\n",
               s.under_replicated_chunks);
  }
  if (s.lost_chunks > 0) fmt::print("{} chunks are lost with their servers\n", s.lost_chunks);
  const pool::UpkeepFigures& c = s.cleaner;
  fmt::print("cleaned: {} chunks, of which {} items were moved, {} MiB\n", c.chunks_cleaned,
             c.items_moved, c.bytes_moved >> 20);
  if (c.chunks_evicted > 0) {
    fmt::print("evicted: {} chunks with {} items\n", c.chunks_evicted, c.items_evicted);
  }
  if (c.chunks_copied > 0) fmt::print("copied: {} chunks\n", c.chunks_copied);
  if (c.keys_removed > 0) fmt::print("removed: {} keys whose items were lost\n", c.keys_removed);
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
    if (row.free_chunks) server["free_bytes"] = *row.free_chunks * pool::kChunkBytes;
    if (!row.standing.empty()) server["standing"] = row.standing;
    json["servers"].push_back(std::move(server));
  }
  json["serves"] = findings.status.has_value();
  if (findings.status) {
    json["items"] = findings.status->items;
    json["chunks"] = findings.status->chunks;
    json["free_chunks"] = findings.status->free_chunks;
    json["under_replicated_chunks"] = findings.status->under_replicated_chunks;
    json["lost_chunks"] = findings.status->lost_chunks;
    json["chunk_bytes"] = pool::kChunkBytes;
    json["live_bytes"] = findings.status->live_units * pool::kUnitBytes;
    json["clients"] = findings.status->clients;
    const pool::UpkeepFigures& c = findings.status->cleaner;
    json["items_moved"] = c.items_moved;
    json["bytes_moved"] = c.bytes_moved;
    json["chunks_cleaned"] = c.chunks_cleaned;
    json["items_evicted"] = c.items_evicted;
    json["chunks_evicted"] = c.chunks_evicted;
    json["chunks_copied"] = c.chunks_copied;
    json["keys_removed"] = c.keys_removed;
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
  AskHashServer(**probe, findings);
  return findings;
}

int Complain(const PoolLookOptions&, uint32_t id, std::string_view why) {
  fmt::print(stderr, "skep-pool: memory server {} {}\n", id, why);
  return 1;
}

int TellDrained(const PoolLookOptions& options, uint32_t id) {
  fmt::print("{}", options.as_json
                       ? fmt::format("{{\"server\": {}, \"standing\": \"drained\"}}\n", id)
                       : fmt::format("memory server {} is drained\n", id));
  return 0;
}

void TellProgress(const PoolLookOptions& options, const Row& row) {
  if (options.as_json || !row.chunks || !row.free_chunks) return;
  fmt::print("memory server {}: {} MiB to be moved\n", row.id,
             (*row.chunks - *row.free_chunks) * (pool::kChunkBytes >> 20));
  std::fflush(stdout);
}

// False: the pool refuses it.
bool AskToDrain(const PoolOptions& pool, const Findings& findings, uint32_t id) {
  std::string problem;
  const auto around = pool::ReachPool(pool, &problem);
  if (!around) return false;
  auto probe = PoolProbe::Open(*around->fabric);
  if (!probe) return false;
  const pool::PoolMap& map = findings.view.map;
  std::string request(1, static_cast<char>(pool::MessageKind::kDrain));
  AppendVarint(request, id);
  const auto reply = (*probe)->Ask(map.index_servers.at(map.hash_server), request, kAskMs);
  return FieldsOf(reply).has_value();
}

}  // namespace

int DrainMemoryServer(const PoolLookOptions& options, uint32_t id) {
  std::string problem;
  const uint64_t until_ms = SystemClock().MonotonicMs() + options.pool.timeout_ms;
  bool is_asked = false;
  for (bool is_first = true; SystemClock().MonotonicMs() < until_ms; is_first = false) {
    if (!is_first) std::this_thread::sleep_for(std::chrono::milliseconds(kLookAgainMs));
    auto findings = Look(options.pool, &problem);
    if (!findings) {
      if (problem.empty()) problem = findings.error().ToString();
      continue;
    }
    const auto row = std::ranges::find_if(findings->rows, [&](const Row& at) {
      return at.id == id && at.role == kMemoryServer && !at.standing.empty();
    });
    if (!findings->status) continue;
    if (row == findings->rows.end()) return Complain(options, id, "is no server of the pool");
    if (row->standing == "gone") return Complain(options, id, "is gone");
    if (row->standing == "drained") return TellDrained(options, id);
    if (!is_asked && !AskToDrain(options.pool, *findings, id)) {
      return Complain(options, id, "cannot be drained: there is no other one");
    }
    if (!is_asked || !options.as_json) TellProgress(options, *row);
    is_asked = true;
  }
  return Complain(options, id, problem.empty() ? "is not drained yet: it goes on" : problem);
}

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
