// packed_session.h: the state that a session has only if it speaks the packed protocol.
//
// Replies leave in any order: a reply whose ticket is not released is held here, by itself, until
// it is; later replies do not wait for it.
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
#include "wire/packed_reply.h"

namespace skep {

class PackedSession {
 public:
  // The most snapshots, and the most watches, that a connection may have.
  static constexpr size_t kHandlesMax = 16 * 1024;
  // The bytes that each of them counts as: a node of a map here, and what the engine keeps for it.
  static constexpr size_t kHandleBytes = 128;

  explicit PackedSession(uint64_t client) : client_(client) {}
  ~PackedSession();
  PackedSession(const PackedSession&) = delete;
  PackedSession& operator=(const PackedSession&) = delete;

  // Names the client, so that it is known again on another connection; 0: it has no name.
  uint64_t client() const { return client_; }
  // For a session that is used again, which has none of the state below.
  void set_client(uint64_t client) { client_ = client; }
  // Called once the client has logged in. `replies`, which must outlive the session, does not
  // forget the client as long as the session exists.
  void EnterClient(ReplyMemory& replies);

  // How many more bytes are wanted of a message of which a part has come.
  size_t wanted = 0;

  // Returns where the bytes of a reply go that waits for this ticket; valid until the next call.
  std::string& Hold(ReleaseGate& gate, Version ticket);
  // Adds values to the reply that was held last.
  void HoldPins(std::vector<packed::PinnedPart> pins);
  // Appends the replies that need not wait any more, and their pins with their places in `out`.
  // Returns true if none is held then.
  bool PassGates(std::string& out, std::vector<packed::PinnedPart>& pins);
  // Drops the held replies.
  void DropHeld();
  // Bytes of the replies that wait: of their own, and of their pins.
  size_t held_bytes() const {
    return held_bytes_ + (held_.empty() ? 0 : held_.back().bytes.size());
  }
  size_t held_pinned_bytes() const { return held_pinned_bytes_; }

  // Messages that are left to batches, though they may be of gets alone (message_gets.h).
  uint32_t gets_left_out = 0;

  // Memory of its snapshots and watches, without the versions and keys, which the engines count.
  size_t handle_bytes() const { return (snapshots_.size() + watches_.size()) * kHandleBytes; }

  //   kUnavailable  the session has kHandlesMax snapshots already
  Result<uint64_t> Keep(uint32_t keyspace, Snapshot snapshot);
  // Null if there is no snapshot of that number in that keyspace.
  const Snapshot* Find(uint32_t keyspace, uint64_t number) const;
  void Drop(uint64_t number) { snapshots_.erase(number); }

  //   kUnavailable  the session has kHandlesMax watches, or their keys have kWatchedBytesMax
  //                 (transaction.h) already
  Status Keep(uint32_t keyspace, Watch watch, size_t key_bytes);
  void Unwatch(uint32_t keyspace, uint64_t number);

 private:
  struct Held {
    ReleaseGate* gate;
    Version ticket;
    std::string bytes;
    std::vector<packed::PinnedPart> pins = {};  // their places are in `bytes`
  };
  struct Pinned {
    uint32_t keyspace;
    Snapshot snapshot;
  };

  uint64_t client_;
  ReplyMemory* replies_ = nullptr;  // null until EnterClient
  std::vector<Held> held_;          // in the order in which they were encoded
  size_t held_bytes_ = 0;           // of all held replies but the last, which may still grow
  size_t held_pinned_bytes_ = 0;    // of the pins of all of them
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
