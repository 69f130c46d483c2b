// memory_watch.h: the hash server's care for memory servers: lets new ones take part, and finds out
// which are gone.
//
// A server takes part when its node is there and it has told how many frames it has. It is gone
// when its session with the coordinator has ended and it has not answered for memory_gone_ns: what
// it had is lost. One that has the only copy of items is waited for longer, only_copy_gone_ns,
// unless the pool removes the keys of lost items. A server whose session has ended and that
// answers is not gone; nor is one that this hash server does not reach and whose session lasts,
// since its clients may reach it, and those that do not read the other replica.
// That a server is gone is for ever, though it may only have been stopped: its number is never used
// again, and if its node is there it is told to retire. Until it does, a client that has not heard
// of it may read in it the items of chunks that were sealed, which have not changed, and write to
// it: such an item counts by its other replica, or is not committed (chunks.h).
// A server that is drained leaves when no chunk has a frame of it.
//
// Progress. Nobody waits for a memory server here: at most one question to each is under way.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "pool/index_context.h"
#include "pool/memory_calls.h"

namespace skep::pool {

class MemoryWatch {
 public:
  // `enter` puts an entry into the log. All outlive it.
  MemoryWatch(IndexContext& context, MemoryCalls& calls, std::function<void(const LogEntry&)> enter)
      : context_(context), calls_(calls), enter_(std::move(enter)) {}

  // Does what is due; linear in servers.
  void Turn();
  // Whether a server whose session lasts is about to take part: chunks that are leased before would
  // have a replica fewer. One that does not answer is waited for no longer than for one that is
  // gone.
  bool AwaitsNewcomer() const;
  // The entry was just applied.
  void HandleApplied(const LogEntry& entry);

 private:
  static constexpr uint64_t kAskAgainNs = 100'000'000;

  struct Watched {
    // For how long it has not answered, as the turns of this server saw it: time in which this
    // server stood still counts for one step at most.
    uint64_t silent_ns = 0;
    uint64_t looked_ns = 0;  // when it was last looked at
    uint64_t came_ns = 0;    // when its node was first seen, if it takes no part yet
    uint64_t ask_ns = 0;     // it is not asked again before
    bool is_asked = false;   // a question is under way
  };

  // The answer comes to the watched server, if it is good.
  void Ask(uint32_t server, MessageKind kind, std::function<void(std::string_view)> on_good);
  void Greet(uint32_t server);
  void Look(const Chunks::Server& server);
  void LookAtSilent(const Chunks::Server& server, const Watched& watched);
  bool IsGone(const Chunks::Server& server, uint64_t silent_ns) const;
  void Remove(uint32_t server);
  void Enter(const LogEntry& entry);

  IndexContext& context_;
  MemoryCalls& calls_;
  const std::function<void(const LogEntry&)> enter_;
  std::map<uint32_t, Watched> watched_;  // by server
  bool is_entering_ = false;             // an entry of this is in the log, and not applied
};

}  // namespace skep::pool
