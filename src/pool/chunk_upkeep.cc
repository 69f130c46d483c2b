#include "pool/chunk_upkeep.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "pool/fields.h"

namespace skep::pool {

void ChunkUpkeep::LookForEmptyChunks() {
  const uint64_t due_ns = context_.now_ns() + 2 * context_.times.read_ns_max;
  for (const uint32_t chunk : context_.state.chunks().empty()) {
    const auto [recycling, is_new] = recycling_.try_emplace(chunk);
    if (!is_new) continue;
    recycling->second.due_ns = due_ns;
    recycling->second.is_sealed_by_client =
        context_.state.sessions().Knows(context_.state.chunks().all()[chunk].client);
  }
}

bool ChunkUpkeep::Recycle() {
  const uint64_t now = context_.now_ns();
  bool did = false;
  for (auto& [chunk, recycling] : recycling_) {
    if (recycling.is_entered || now < recycling.due_ns || !IsFenced(chunk, recycling)) continue;
    recycling.is_entered = true;
    enter_({.kind = LogEntry::Kind::kRecycle, .chunk = chunk});
    did = true;
  }
  return did;
}

bool ChunkUpkeep::IsFenced(uint32_t chunk, Recycling& recycling) {
  if (recycling.is_sealed_by_client) return true;
  const Chunks& chunks = context_.state.chunks();
  bool is_fenced = true;
  for (const uint32_t frame : chunks.all()[chunk].frames) {
    if (frame == kNoFrame) break;
    const uint32_t server = chunks.ServerOf(frame).range.server;
    if (recycling.fenced.contains(server)) continue;
    is_fenced = false;
    if (!recycling.asked.contains(server)) AskForFence(chunk, server);
  }
  if (!is_fenced) recycling.due_ns = context_.now_ns() + context_.times.read_ns_max;
  return is_fenced;
}

void ChunkUpkeep::AskForFence(uint32_t chunk, uint32_t server) {
  std::string request(1, static_cast<char>(MessageKind::kFence));
  AppendVarint(request, context_.state.chunks().all()[chunk].client);
  const auto on_answer = [this, chunk, server](std::optional<std::string_view> fields) {
    const auto recycling = recycling_.find(chunk);
    if (recycling == recycling_.end()) return;
    recycling->second.asked.erase(server);
    if (fields == std::string_view("\1", 1)) recycling->second.fenced.insert(server);
  };
  if (calls_.Call(server, request, on_answer)) recycling_[chunk].asked.insert(server);
}

void ChunkUpkeep::HandleApplied(const LogEntry& entry) {
  if (entry.kind == LogEntry::Kind::kRecycle) recycling_.erase(entry.chunk);
}

}  // namespace skep::pool
