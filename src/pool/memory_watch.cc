#include "pool/memory_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pool/fields.h"

namespace skep::pool {

void MemoryWatch::Turn() {
  const Chunks& chunks = context_.state.chunks();
  for (const auto& [server, address] : context_.map.memory_servers) {
    if (chunks.FindServer(server) != nullptr) continue;
    Watched& watched = watched_[server];
    if (watched.came_ns == 0) watched.came_ns = context_.now_ns();
    Greet(server);
  }
  for (const Chunks::Server& server : chunks.servers()) Look(server);
}

bool MemoryWatch::AwaitsNewcomer() const {
  return std::ranges::any_of(context_.map.live_memory_servers, [this](uint32_t server) {
    const auto at = watched_.find(server);
    return context_.state.chunks().FindServer(server) == nullptr && at != watched_.end() &&
           context_.now_ns() < at->second.came_ns + context_.times.memory_gone_ns;
  });
}

void MemoryWatch::Ask(uint32_t server, MessageKind kind,
                      std::function<void(std::string_view)> on_good) {
  Watched& watched = watched_[server];
  const uint64_t now = context_.now_ns();
  if (watched.is_asked || now < watched.ask_ns) return;
  std::string request(1, static_cast<char>(kind));
  if (kind == MessageKind::kHello) AppendVarint(request, 0);
  AppendVarint(request, server);
  if (kind == MessageKind::kRetire) {
    const bool is_drained =
        context_.state.chunks().FindServer(server)->state == Chunks::ServerState::kDrained;
    request.push_back(is_drained ? 1 : 0);
  }
  watched.is_asked =
      calls_.Call(server, request, [this, server, on_good](std::optional<std::string_view> fields) {
        watched_[server].is_asked = false;
        if (fields) on_good(*fields);
      });
  if (watched.is_asked) watched.ask_ns = now + kAskAgainNs;
}

void MemoryWatch::Enter(const LogEntry& entry) {
  is_entering_ = true;
  enter_(entry);
}

// One enters at a time, as a range begins where the one before ends. Another one's answer that
// comes meanwhile is forgotten, and asked for again.
void MemoryWatch::Greet(uint32_t server) {
  Ask(server, MessageKind::kHello, [this, server](std::string_view fields) {
    uint32_t count = 0;
    const Chunks& chunks = context_.state.chunks();
    const uint32_t first = chunks.ranges().end();
    if (is_entering_ || chunks.FindServer(server) != nullptr || !TakeNumber(fields, &count) ||
        count == 0 || count > kFramesMax - first) {
      return;
    }
    Enter({.kind = LogEntry::Kind::kServer,
           .range = {.server = server, .first = first, .count = count}});
  });
}

void MemoryWatch::Look(const Chunks::Server& server) {
  const uint32_t id = server.range.server;
  const bool is_live = context_.map.live_memory_servers.contains(id);
  if (!server.is_there()) {
    if (is_live) Ask(id, MessageKind::kRetire, [](std::string_view) {});
    return;
  }
  if (server.state == Chunks::ServerState::kDraining && server.free == server.range.count) {
    return Remove(id);
  }
  Watched& watched = watched_[id];
  const uint64_t now = context_.now_ns();
  const uint64_t step = std::min(now - watched.looked_ns, kAskAgainNs);
  watched.silent_ns = is_live || watched.looked_ns == 0 ? 0 : watched.silent_ns + step;
  watched.looked_ns = now;
  if (!is_live) LookAtSilent(server, watched);
}

void MemoryWatch::LookAtSilent(const Chunks::Server& server, const Watched& watched) {
  const uint32_t id = server.range.server;
  if (IsGone(server, watched.silent_ns)) return Remove(id);
  Ask(id, MessageKind::kHello, [this, id](std::string_view) { watched_[id].silent_ns = 0; });
}

bool MemoryWatch::IsGone(const Chunks::Server& server, uint64_t silent_ns) const {
  const PoolTimes& times = context_.times;
  if (silent_ns <= times.memory_gone_ns) return false;
  return silent_ns > times.only_copy_gone_ns || context_.removes_lost ||
         !context_.state.chunks().HasOnlyCopy(server);
}

void MemoryWatch::Remove(uint32_t server) {
  if (is_entering_) return;
  Enter({.kind = LogEntry::Kind::kGone, .range = {.server = server}});
}

void MemoryWatch::HandleApplied(const LogEntry& entry) {
  if (entry.kind == LogEntry::Kind::kServer || entry.kind == LogEntry::Kind::kGone) {
    is_entering_ = false;
  }
}

}  // namespace skep::pool
