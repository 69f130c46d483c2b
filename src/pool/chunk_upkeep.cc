#include "pool/chunk_upkeep.h"

#include <algorithm>

#include "pool/fields.h"

namespace skep::pool {

rma::PeerId ChunkUpkeep::MemoryPeer(uint32_t server) {
  const auto at = context_.map.memory_servers.find(server);
  if (at == context_.map.memory_servers.end()) return 0;
  return memory_servers_.Find(at->first, at->second, context_.now_ns());
}

// Returns its token.
uint64_t ChunkUpkeep::Call(rma::PeerId peer, std::string_view request) {
  context_.endpoint.Call(peer, next_token_, request);
  return next_token_++;
}

void ChunkUpkeep::GreetMemoryServers() {
  if (!entering_servers_.empty()) return;
  for (const auto& [server, address] : context_.map.memory_servers) {
    const auto& ranges = context_.state.chunks().ranges().all();
    if (std::ranges::find(ranges, server, &ChunkRange::server) != ranges.end()) continue;
    const rma::PeerId peer = MemoryPeer(server);
    if (peer == 0) continue;
    entering_servers_.insert(server);
    std::string request(1, static_cast<char>(MessageKind::kHello));
    AppendVarint(request, 0);
    AppendVarint(request, server);
    greetings_[Call(peer, request)] = server;
    return;
  }
}

void ChunkUpkeep::HandleHello(uint32_t server, std::string_view fields) {
  uint32_t count = 0;
  const uint32_t first = context_.state.chunks().ranges().end();
  if (TakeNumber(fields, &count) && count > 0 && count <= kChunksMax - first) {
    enter_(
        {.kind = LogEntry::Kind::kServer, .chunk = first, .chunk_count = count, .server = server});
  } else {
    entering_servers_.erase(server);
  }
}

bool ChunkUpkeep::HandleReply(uint64_t token, std::string_view fields) {
  if (const auto greeting = greetings_.extract(token)) {
    HandleHello(greeting.mapped(), fields);
    return true;
  }
  const auto fence = fences_.extract(token);
  if (!fence) return false;
  Recycling& recycling = recycling_[fence.mapped()];
  recycling.is_asked = false;
  recycling.is_fenced = fields == std::string_view("\1", 1);
  return true;
}

void ChunkUpkeep::HandleApplied(const LogEntry& entry) {
  if (entry.kind == LogEntry::Kind::kServer) entering_servers_.erase(entry.server);
  if (entry.kind == LogEntry::Kind::kRecycle) recycling_.erase(entry.chunk);
}

void ChunkUpkeep::LookForEmptyChunks() {
  const Chunks& chunks = context_.state.chunks();
  for (const uint32_t chunk : chunks.empty()) {
    const uint32_t client = chunks.all()[chunk].client;
    recycling_.try_emplace(chunk,
                           Recycling{.due_ns = context_.now_ns() + 2 * context_.times.read_ns_max,
                                     .is_fenced = context_.state.sessions().Knows(client)});
  }
}

bool ChunkUpkeep::Recycle() {
  const uint64_t now = context_.now_ns();
  bool did = false;
  for (auto& [chunk, recycling] : recycling_) {
    if (recycling.is_entered || now < recycling.due_ns) continue;
    if (!recycling.is_fenced) {
      if (!recycling.is_asked) AskForFence(chunk, recycling);
      continue;
    }
    recycling.is_entered = true;
    enter_({.kind = LogEntry::Kind::kRecycle, .chunk = chunk});
    did = true;
  }
  return did;
}

void ChunkUpkeep::AskForFence(uint32_t chunk, Recycling& recycling) {
  recycling.due_ns = context_.now_ns() + context_.times.read_ns_max;
  const auto place = context_.state.chunks().ranges().PlaceOf(chunk);
  const rma::PeerId peer = place ? MemoryPeer(place->server) : 0;
  if (peer == 0) return;
  recycling.is_asked = true;
  const uint32_t client = context_.state.chunks().all()[chunk].client;
  std::string request(1, static_cast<char>(MessageKind::kFence));
  AppendVarint(request, client);
  fences_[Call(peer, request)] = chunk;
}

}  // namespace skep::pool
