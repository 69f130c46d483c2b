// packed_session.h: what a session that speaks the packed protocol has besides.
//
// Replies leave in any order: one whose ticket is not released is held here, by itself, until it
// is; what comes after it does not wait.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/reply_memory.h"
#include "skep/status.h"
#include "skep/store.h"

namespace skep {

class PackedSession {
 public:
  // Snapshots and watches a connection may have, each.
  static constexpr size_t kHandlesMax = 16 * 1024;
  // What each of them is counted as: a node of a map here, and what the engine keeps of it.
  static constexpr size_t kHandleBytes = 128;

  explicit PackedSession(uint64_t client) : client_(client) {}
  ~PackedSession();
  PackedSession(const PackedSession&) = delete;
  PackedSession& operator=(const PackedSession&) = delete;

  // By which a client is known again on another connection; 0: it is not.
  uint64_t client() const { return client_; }
  // Of a session that is used again, which has none of what follows.
  void set_client(uint64_t client) { client_ = client; }
  // The memory, which must outlive the session, does not forget its client as long as the session
  // is there. Once the client has logged in.
  void EnterClient(ReplyMemory& replies);

  // How many bytes the message still wants of which a part has come.
  size_t wanted = 0;

  // Where the bytes of a reply go that waits for this ticket; valid until the next call.
  std::string& Hold(ReleaseGate& gate, Version ticket);
  // Appends what need not wait any more. True if nothing is held then.
  bool PassGates(std::string& out);
  // What is held never leaves.
  void DropHeld();
  // Of replies that wait.
  size_t held_bytes() const {
    return held_bytes_ + (held_.empty() ? 0 : held_.back().bytes.size());
  }

  // Of its snapshots and watches, without the versions and keys, which the engines count.
  size_t handle_bytes() const { return (snapshots_.size() + watches_.size()) * kHandleBytes; }

  //   kUnavailable  it has kHandlesMax already
  Result<uint64_t> Keep(uint32_t keyspace, Snapshot snapshot);
  // Null: there is none of that number in that keyspace.
  const Snapshot* Find(uint32_t keyspace, uint64_t number) const;
  void Drop(uint64_t number) { snapshots_.erase(number); }

  //   kUnavailable  as above, or their keys have kWatchedBytesMax (transaction.h) already
  Status Keep(uint32_t keyspace, Watch watch, size_t key_bytes);
  void Unwatch(uint32_t keyspace, uint64_t number);

 private:
  struct Held {
    ReleaseGate* gate;
    Version ticket;
    std::string bytes;
  };
  struct Pinned {
    uint32_t keyspace;
    Snapshot snapshot;
  };

  uint64_t client_;
  ReplyMemory* replies_ = nullptr;  // that the client has entered
  std::vector<Held> held_;          // in the order in which they were encoded
  size_t held_bytes_ = 0;           // of all but the last one, which may still grow
  uint64_t last_number_ = 0;
  std::map<uint64_t, Pinned> snapshots_;
  struct Watched {
    Watch watch;
    size_t key_bytes;
  };
  std::map<std::pair<uint32_t, uint64_t>, Watched> watches_;  // by keyspace and number
  size_t watched_bytes_ = 0;                                  // of their keys
};

}  // namespace skep
