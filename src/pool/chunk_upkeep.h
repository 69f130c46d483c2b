// chunk_upkeep.h: the hash server's care for chunks: learns how many each memory server has, and
// recycles those that are empty.
//
// A chunk that is sealed and empty is recycled two read_ns_max after that was seen: who has read
// one of its slots before discards what comes later (H2, H3). If its client has not sealed it
// itself the memory server fences the client first (H11), and the client writes nothing any more in
// that name.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "pool/dialer.h"
#include "pool/index_context.h"

namespace skep::pool {

class ChunkUpkeep {
 public:
  // `enter` puts an entry into the log.
  ChunkUpkeep(IndexContext& context, std::function<void(const LogEntry&)> enter)
      : context_(context), enter_(std::move(enter)), memory_servers_(context.endpoint) {}

  // Asks a memory server that has no range yet how many chunks it has; one at a time, as a range
  // begins where the one before ends.
  void GreetMemoryServers();
  void LookForEmptyChunks();
  // Recycles the chunks whose time has come. Returns whether there were any.
  bool Recycle();

  // The call of this token was answered; no fields: not well. False: it is none of these.
  bool HandleReply(uint64_t token, std::string_view fields);
  void HandlePeer(const rma::Event& event) { memory_servers_.Handle(event); }
  // The entry was just applied.
  void HandleApplied(const LogEntry& entry);

 private:
  // Tokens that nobody else uses.
  static constexpr uint64_t kFirstToken = uint64_t{1} << 61;

  // A chunk on its way to be free.
  struct Recycling {
    uint64_t due_ns = 0;
    bool is_fenced = false;   // nothing of its client can arrive any more
    bool is_asked = false;    // the memory server is asked for that now
    bool is_entered = false;  // in the log
  };

  rma::PeerId MemoryPeer(uint32_t server);
  uint64_t Call(rma::PeerId peer, std::string_view request);
  void HandleHello(uint32_t server, std::string_view fields);
  void AskForFence(uint32_t chunk, Recycling& recycling);

  IndexContext& context_;
  const std::function<void(const LogEntry&)> enter_;
  Dialer memory_servers_;
  uint64_t next_token_ = kFirstToken;
  std::map<uint64_t, uint32_t> greetings_;  // the server, by token
  std::set<uint32_t> entering_servers_;
  std::map<uint64_t, uint32_t> fences_;      // the chunk, by token
  std::map<uint32_t, Recycling> recycling_;  // by chunk
};

}  // namespace skep::pool
