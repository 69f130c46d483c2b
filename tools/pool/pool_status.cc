// What skep-pool ctl status prints.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/pool/pool_commands.h"
#include "tools/pool/pool_look.h"

namespace skep {
namespace {

void PrintTable(const PoolLookOptions& options, const PoolFindings& findings) {
  fmt::print("pool {}, epoch {}, over {}\n\n", options.pool.name, findings.map.epoch,
             options.pool.fabric);
  fmt::print("{:<16} {:>10}  {:<25} {:>8}  {}\n", "ROLE", "SERVER", "STATE", "MIB", "ADDRESS");
  for (const PoolRow& row : findings.rows) {
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

void PrintJson(const PoolLookOptions& options, const PoolFindings& findings) {
  nlohmann::ordered_json json = {{"pool", options.pool.name},
                                 {"fabric", options.pool.fabric},
                                 {"epoch", findings.map.epoch},
                                 {"servers", nlohmann::ordered_json::array()}};
  for (const PoolRow& row : findings.rows) {
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

}  // namespace

int PrintPoolStatus(const PoolLookOptions& options) {
  std::string problem;
  const auto look = PoolLook::Open(options.pool, &problem);
  if (!look) {
    fmt::print(stderr, "skep-pool: {}\n", problem);
    return 1;
  }
  const PoolFindings findings = (*look)->Look();
  options.as_json ? PrintJson(options, findings) : PrintTable(options, findings);
  return findings.status ? 0 : 1;
}

}  // namespace skep
