#include "pool/messages.h"

#include "pool/fields.h"

namespace skep::pool {
namespace {

enum ScanFlag : uint8_t { kHasUpper = 1, kReverse = 2, kFloor = 4, kCounts = 8, kScanFlags = 15 };

uint8_t FlagsOf(const ScanRequest& scan) {
  return static_cast<uint8_t>((scan.has_upper ? kHasUpper : 0) | (scan.is_reverse ? kReverse : 0) |
                              (scan.seeks_floor ? kFloor : 0) | (scan.counts_only ? kCounts : 0));
}

}  // namespace

void EncodeServers(const Chunks& chunks, std::string& to) {
  for (const Chunks::Server& server : chunks.servers()) {
    AppendVarint(to, server.range.server);
    to.push_back(static_cast<char>(server.state));
    AppendVarint(to, server.range.count);
    AppendVarint(to, server.free);
  }
}

bool DecodeServers(std::string_view from, std::vector<ToldServer>* servers) {
  constexpr auto kLastState = static_cast<uint8_t>(Chunks::ServerState::kGone);
  servers->clear();
  while (!from.empty()) {
    ToldServer told;
    if (!TakeNumber(from, &told.server) || from.empty() ||
        static_cast<uint8_t>(from[0]) > kLastState) {
      return false;
    }
    told.state = static_cast<Chunks::ServerState>(from[0]);
    from.remove_prefix(1);
    if (!TakeNumber(from, &told.frames) || !TakeNumber(from, &told.free_frames)) return false;
    servers->push_back(told);
  }
  return true;
}

void EncodeStatus(const PoolStatus& status, std::string& to) {
  for (const uint64_t number :
       {status.items, status.chunks, status.free_chunks, status.clients, status.live_units,
        status.under_replicated_chunks, status.lost_chunks}) {
    AppendVarint(to, number);
  }
  AppendFigures(to, status.cleaner);
}

bool DecodeStatus(std::string_view from, PoolStatus* status) {
  return TakeVarint(from, &status->items) && TakeVarint(from, &status->chunks) &&
         TakeVarint(from, &status->free_chunks) && TakeVarint(from, &status->clients) &&
         TakeVarint(from, &status->live_units) &&
         TakeVarint(from, &status->under_replicated_chunks) &&
         TakeVarint(from, &status->lost_chunks) && TakeFigures(from, &status->cleaner) &&
         from.empty();
}

void EncodeScan(const ScanRequest& scan, std::string& to) {
  AppendVarint(to, scan.epoch);
  to.push_back(static_cast<char>(FlagsOf(scan)));
  AppendVarint(to, scan.limit);
  AppendBytes(to, scan.lower);
  AppendBytes(to, scan.upper);
}

bool DecodeScan(std::string_view& from, ScanRequest* scan) {
  *scan = {};
  if (!TakeVarint(from, &scan->epoch) || from.empty()) return false;
  const auto flags = static_cast<uint8_t>(from[0]);
  from.remove_prefix(1);
  scan->has_upper = (flags & kHasUpper) != 0;
  scan->is_reverse = (flags & kReverse) != 0;
  scan->seeks_floor = (flags & kFloor) != 0;
  scan->counts_only = (flags & kCounts) != 0;
  // A scan from the floor goes forward.
  if ((flags & ~kScanFlags) != 0 || (scan->is_reverse && scan->seeks_floor)) return false;
  return TakeNumber(from, &scan->limit) && TakeBytes(from, &scan->lower) &&
         TakeBytes(from, &scan->upper);
}

void EncodeScanReply(const ScanReply& reply, std::string& to) {
  AppendVarint(to, reply.applied);
  AppendVarint(to, reply.count);
  to.push_back(reply.more ? 1 : 0);
  AppendBytes(to, reply.next);
  to.append(reply.slots);
}

bool DecodeScanReply(std::string_view& from, ScanReply* reply) {
  *reply = {};
  if (!TakeVarint(from, &reply->applied) || !TakeVarint(from, &reply->count) || from.empty()) {
    return false;
  }
  reply->more = from[0] != 0;
  from.remove_prefix(1);
  if (!TakeBytes(from, &reply->next)) return false;
  reply->slots = from;
  from = {};
  return reply->slots.size() % sizeof(uint64_t) == 0;
}

void AppendVerdict(std::string& to, const CommitVerdict& verdict) {
  to.push_back(static_cast<char>(verdict.kind));
  AppendSlot(to, verdict.before);
  AppendVarint(to, verdict.version);
}

bool TakeVerdict(std::string_view& from, CommitVerdict* verdict) {
  if (from.empty() ||
      static_cast<uint8_t>(from[0]) > static_cast<uint8_t>(CommitVerdict::Kind::kUnknown)) {
    return false;
  }
  verdict->kind = static_cast<CommitVerdict::Kind>(from[0]);
  from.remove_prefix(1);
  return TakeSlot(from, &verdict->before) && TakeVarint(from, &verdict->version);
}

}  // namespace skep::pool
