#include "tools/pool/pool_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/varint.h"
#include "tools/pool/role_name.h"

namespace skep {
namespace {

constexpr int kAskMs = 1000;
constexpr uint32_t kSessionMs = 4000;
constexpr std::string_view kMemoryServer = "memory server";

// The fields of a reply that says kOk; nothing: it says something else.
std::optional<std::string_view> FieldsOf(const std::optional<std::string>& reply) {
  if (!reply || reply->empty() || (*reply)[0] != static_cast<char>(pool::ReplyCode::kOk)) {
    return std::nullopt;
  }
  return std::string_view(*reply).substr(1);
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

std::string RequestOf(pool::MessageKind kind) { return std::string(1, static_cast<char>(kind)); }

}  // namespace

const PoolRow* PoolFindings::FindMemoryServer(uint32_t id) const {
  const auto row = std::ranges::find_if(rows, [&](const PoolRow& at) {
    return at.id == id && at.role == kMemoryServer && !at.standing.empty();
  });
  return row == rows.end() ? nullptr : &*row;
}

PoolLook::PoolLook(const PoolOptions& pool, pool::PoolSurroundings around)
    : around_(std::move(around)),
      watch_(*around_.coordinator, SystemClock(), pool.name, kSessionMs) {}

Result<std::unique_ptr<PoolLook>> PoolLook::Open(const PoolOptions& pool, std::string* problem) {
  auto around = pool::ReachPool(pool, problem);
  if (!around) return Fail(around.error());
  std::unique_ptr<PoolLook> look(new PoolLook(pool, std::move(*around)));
  if (!look->watch_.AwaitRoles(pool.timeout_ms)) {
    *problem = look->watch_.view().is_connected
                   ? fmt::format("the pool {} has no roles: it needs two index servers", pool.name)
                   : fmt::format("ZooKeeper does not answer at {}", pool.zookeeper);
    return Fail(Code::kUnavailable, "there are no roles");
  }
  auto probe = PoolProbe::Open(*look->around_.fabric);
  if (!probe) {
    *problem = probe.error().ToString();
    return Fail(probe.error());
  }
  look->probe_ = std::move(*probe);
  return look;
}

PoolFindings PoolLook::Look() {
  PoolFindings findings = {.map = watch_.map(), .rows = {}, .status = {}};
  AskMemoryServers(findings);
  const bool has_told = AskHashServer(findings);
  AskIndexServers(findings);
  if (!has_told) findings.status.reset();
  return findings;
}

std::optional<std::string> PoolLook::AskHashServer(const pool::PoolMap& map,
                                                   std::string_view request) {
  const auto address = map.index_servers.find(map.hash_server);
  if (address == map.index_servers.end()) return std::nullopt;
  return probe_->Ask(address->second, request, kAskMs);
}

std::optional<bool> PoolLook::AskToDrain(uint32_t id) {
  std::string request = RequestOf(pool::MessageKind::kDrain);
  AppendVarint(request, id);
  const auto reply = AskHashServer(watch_.map(), request);
  if (FieldsOf(reply)) return true;
  const bool is_refused = reply && reply->starts_with(static_cast<char>(pool::ReplyCode::kRefused));
  return is_refused ? std::optional(false) : std::nullopt;
}

// Their rows come first, but they are asked last: chunks that the status counts as whole were so
// when the memory servers stood as they are told, or later.
void PoolLook::AskIndexServers(PoolFindings& findings) {
  std::vector<PoolRow> rows;
  const std::string request = RequestOf(pool::MessageKind::kStatus);
  for (const auto& [id, address] : findings.map.index_servers) {
    const auto reply = probe_->Ask(address, request, kAskMs);
    rows.push_back({.role = std::string(RoleName(findings.map, id)),
                    .id = id,
                    .answers = reply.has_value(),
                    .address = address});
    pool::PoolStatus status;
    const auto fields = FieldsOf(reply);
    if (id == findings.map.hash_server && fields && pool::DecodeStatus(*fields, &status)) {
      findings.status = status;
    }
  }
  findings.rows.insert(findings.rows.begin(), rows.begin(), rows.end());
}

// Another server at the address of one that is gone does not answer for it.
void PoolLook::AskMemoryServers(PoolFindings& findings) {
  for (const auto& [id, address] : findings.map.memory_servers) {
    std::string request = RequestOf(pool::MessageKind::kHello);
    AppendVarint(request, 0);
    AppendVarint(request, id);
    const auto reply = probe_->Ask(address, request, kAskMs);
    auto fields = FieldsOf(reply);
    PoolRow row = {.role = std::string(kMemoryServer),
                   .id = id,
                   .answers = fields.has_value(),
                   .address = address};
    uint64_t chunks = 0;
    if (fields && TakeVarint(*fields, &chunks)) row.chunks = chunks;
    findings.rows.push_back(std::move(row));
  }
}

// What the hash server knows of memory servers, into their rows; one that has no node any more has
// none yet. False: it does not tell.
bool PoolLook::AskHashServer(PoolFindings& findings) {
  const auto reply = AskHashServer(findings.map, RequestOf(pool::MessageKind::kServers));
  const auto fields = FieldsOf(reply);
  std::vector<pool::ToldServer> servers;
  if (!fields || !pool::DecodeServers(*fields, &servers)) return false;
  for (const pool::ToldServer& told : servers) {
    auto row = std::ranges::find_if(findings.rows, [&](const PoolRow& at) {
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
  return true;
}

}  // namespace skep
