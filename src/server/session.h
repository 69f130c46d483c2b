// session.h: one connection, as its worker sees it.
//
//   in   received, not yet a whole command. Empty most of the time: whole commands are executed
//        from the read buffer of the turn (turn_batch.h) and never copied.
//   out  replies, encoded in request order.
//
//   sent          sendable                                end of out
//   |  (on the wire)  |  may leave     |  waits for the gate  |
//   +-----------------+----------------+----------------------+
//
// A reply may leave once the gate of its keyspace has released its ticket (release_gate.h). A mark
// says from which byte on `out` waits for a ticket; without marks everything may leave. Replies of
// the packed protocol do not wait for each other: packed_session.h.
//
// A message that came as a datagram has a session to itself, without a stream: datagram_port.h.
//
// Thread safety: the owning worker only, but for `info`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/network.h"
#include "engine/engine.h"
#include "server/client_registry.h"
#include "server/packed_session.h"
#include "server/transaction.h"
#include "wire/resp_decoder.h"

namespace skep {

class DatagramPort;
class ServerCall;
class ServerState;
struct Session;

// A command that takes many turns: it does a bounded piece each time, so that the worker's other
// connections go on. The session reads no further command until it is done.
class Task {
 public:
  virtual ~Task() = default;
  // Does a piece. False once the reply is complete.
  virtual bool Step(const ServerCall& call) = 0;
  // Memory that it holds beside the session's buffers.
  virtual uint64_t held_bytes() const { return 0; }
  // It is stalled for long, and memory is short: what it reads at need not be kept any more. Its
  // next piece is told that its snapshot is too old.
  virtual void GiveUpPin() {}
  // Its connection is gone: no piece follows.
  virtual void GiveUp([[maybe_unused]] ServerState& state, [[maybe_unused]] Session& session) {}
  // Whether it is what one command does; else it calls Session::CountSync itself.
  virtual bool is_of_one_command() const { return true; }
  // How long the next piece can wait.
  virtual int patience_ms() const { return 0; }
};

struct Session {
  struct Mark {
    uint64_t from;  // position in the stream of replies, counted from the connection's start
    ReleaseGate* gate;
    Version ticket;
  };

  std::unique_ptr<Stream> stream;
  std::shared_ptr<ClientInfo> info;
  RespDecoder decoder;
  std::string in;
  std::string out;
  size_t out_begin = 0;    // bytes of `out` that were sent
  uint64_t out_base = 0;   // position of out[0] in the stream of replies
  std::deque<Mark> marks;  // positions rise
  std::unique_ptr<Task> task;
  std::unique_ptr<Transaction> transaction;  // since MULTI
  std::unique_ptr<PackedSession> packed;     // it speaks the packed protocol
  WatchedKeys watched;                       // in `keyspace`
  DatagramPort* port = nullptr;              // of a datagram; else null
  size_t reply_bytes_max = SIZE_MAX;         // what its reply must fit in

  bool begun = false;  // its first bytes have told which protocol it speaks
  int protocol = 2;
  // Replies wait until what they stand for survives a power loss: all, or of so many commands.
  bool syncs_always = false;
  int syncs = 0;
  uint32_t keyspace = 0;
  bool authenticated = true;
  bool has_logged_in = true;  // once, or there was no password when it came

  // The flush (turn_batch.h) whose batch holds this connection's latest write and range read. Equal
  // to the number of the next flush: that request is not executed yet.
  uint64_t point_flush = 0;
  uint64_t range_flush = 0;
  // Of its commands in one flush: how many there are, how many there may be (turn_batch.h).
  uint64_t counted_flush = 0;
  uint32_t count = 0;
  uint32_t count_max = 16;

  bool wants_read = true;  // what the poller was told
  bool wants_write = false;
  bool write_blocked = false;  // the last write did not take everything
  size_t in_used = 0;          // bytes of `in` that were dispatched; pending requests may view them
  bool has_scans = false;      // SCAN or KSCAN gave it something to go on with
  bool queued = false;         // listed as such: connections.h
  bool waiting = false;        // listed as such: reply_gates.h
  bool blocked = false;        // the next command waits until there are no marks
  bool put_off = false;        // listed as such: task_queue.h
  bool stalled = false;        // the task or the next command waits until the peer has read more
  bool peer_finished = false;  // nothing more will come
  bool closing = false;        // close once `out` is sent
  bool closed = false;         // to be reaped at the end of the turn
  uint64_t charged_bytes = 0;  // of the memory budget: `in`, `out`, the transaction
  uint64_t counted_bytes = 0;  // of the memory of clients: that, and its task's
  // Of replies that the peer does not take: since when it has taken none; since when they are more
  // than the soft limit, 0: they are not.
  uint64_t taken_ms = 0;
  uint64_t over_soft_ms = 0;

  bool wants_sync() const { return syncs_always || syncs > 0; }
  // A command has its reply. MULTI and what it queues leave `syncs` to EXEC.
  void CountSync() {
    if (syncs > 0 && transaction == nullptr) --syncs;
  }
  // As EXEC and DISCARD do.
  void EndTransaction() {
    transaction.reset();
    watched.Clear();
  }
  // How many bytes it wants to go on with, if it knows.
  size_t wanted() const { return packed == nullptr ? decoder.wanted() : packed->wanted; }
  bool paused() const { return task != nullptr || blocked || put_off || stalled; }
  size_t unsent() const {
    return out.size() - out_begin + (packed == nullptr ? 0 : packed->held_bytes());
  }
  size_t sendable() const {
    return (marks.empty() ? out.size() : marks.front().from - out_base) - out_begin;
  }
  uint64_t out_end() const { return out_base + out.size(); }
};

}  // namespace skep
