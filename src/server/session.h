// session.h: one connection, as its worker sees it.
//
//   in   received, not yet a whole command. Empty most of the time: whole commands are executed
//        from the read buffer of the turn (turn_batch.h) and never copied.
//   out  replies, encoded in request order, without the long values that are pinned in the engine
//        until they are sent (reply_pins.h).
//
//   sent          sendable                                end of out
//   |  (on the wire)  |  may leave     |  waits for the gate  |
//   +-----------------+----------------+----------------------+
//
// A reply may leave once the gate of its keyspace has released its ticket (release_gate.h). A mark
// says from which byte on `out` waits for a ticket; without marks all of `out` may leave. Replies
// of the packed protocol do not wait for each other: packed_session.h.
//
// A message that came as a datagram has a session to itself, without a stream: datagram_port.h.
//
// Thread safety: the owning worker only, but for `info`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory_budget.h"
#include "base/network.h"
#include "engine/engine.h"
#include "server/client_registry.h"
#include "server/packed_session.h"
#include "server/reply_pins.h"
#include "server/transaction.h"
#include "wire/resp_decoder.h"

namespace skep {

class DatagramPort;
class ServerCall;
class ServerState;
struct Command;
struct KeyWaiter;
struct Subscriber;
struct Session;
enum class Ending : uint8_t;  // command_statistics.h

// The bytes of input that are read and kept while a command waits for a key.
inline constexpr size_t kReadAheadMax = size_t{1} << 20;

// A command that takes many turns: it does a bounded piece each time, so that the worker's other
// connections go on. The session reads no further command until it is done.
class Task {
 public:
  virtual ~Task() = default;
  // Does a piece. False once the reply is complete.
  virtual bool Step(const ServerCall& call) = 0;
  // Memory of the task beside the session's buffers.
  virtual uint64_t held_bytes() const { return 0; }
  // Called when the task is stalled for long, and memory is short: the version that it reads need
  // not be kept any more. Its next piece finds that its snapshot is too old.
  virtual void GiveUpPin() {}
  // The connection is gone: no piece follows.
  virtual void GiveUp([[maybe_unused]] ServerState& state, [[maybe_unused]] Session& session) {}
  // Whether the task belongs to one command; else it calls Session::CountSync itself.
  virtual bool is_of_one_command() const { return true; }
  // How long the next piece can wait.
  virtual int patience_ms() const { return 0; }
  // Whether the next piece waits until the peer has read what it was sent. One that does not has a
  // reply which takes memory already, and is to be counted as the session's.
  virtual bool waits_for_reader() const { return true; }
  // Whether the task tells monitors of its command when that has run.
  virtual bool tells_monitors() const { return false; }
};

// A command whose task runs, and what it has had of the worker's time.
struct RunningCommand {
  size_t counted_place;            // command_statistics.h
  std::vector<std::string> words;  // as SLOWLOG tells them (slow_log.h)
  uint64_t ns = 0;
  std::optional<Ending> ending = {};  // of one that has run on another thread
};

// CLIENT REPLY: which replies are not sent.
struct Silence {
  static constexpr int kThisAndNext = 2;

  bool is_on = false;  // none is
  int skips = 0;       // commands until replies are sent again, this one among them
  // The reply of this command is sent all the same: it confirms subscriptions.
  bool is_confirmed = false;

  bool holds() const { return (is_on || skips > 0) && !is_confirmed; }
  // Called when a command has its reply.
  void CountCommand() {
    is_confirmed = false;
    if (skips > 0) --skips;
  }
};

// Memory of a string whose pages were given back, because its first bytes are not needed any more.
// A string that has moved has none.
class SentPages {
 public:
  // Gives the pages of the first `sent` bytes back.
  void Release(std::string& of, size_t sent);
  size_t BytesOf(const std::string& of) const {
    return of.data() == data_ && of.capacity() == capacity_ ? bytes_ : 0;
  }

 private:
  const char* data_ = nullptr;
  size_t capacity_ = 0;
  size_t sent_ = 0;   // bytes that were looked at
  size_t bytes_ = 0;  // of the pages among them
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
  SentPages sent_pages;    // memory of those that was given back
  uint64_t out_base = 0;   // position of out[0] in the stream of replies
  ReplyPins pins;          // long values of the replies in `out`
  std::deque<Mark> marks;  // positions rise
  std::unique_ptr<Task> task;
  std::unique_ptr<RunningCommand> running;   // with a task of one command
  std::shared_ptr<KeyWaiter> waiter;         // while a command waits for a key; key_waiters.h
  std::shared_ptr<Subscriber> subscriber;    // once it has subscribed; message_delivery.h
  std::unique_ptr<Transaction> transaction;  // since MULTI
  std::unique_ptr<PackedSession> packed;     // null unless it speaks the packed protocol
  WatchedKeys watched;                       // keys of `keyspace`
  DatagramPort* port = nullptr;              // of a datagram's session; else null
  size_t reply_bytes_max = SIZE_MAX;         // limit of the reply to a datagram

  Silence silence;
  bool begun = false;  // the protocol is known from its first bytes
  int protocol = 2;
  // Replies wait for a sync (CLIENT DURABILITY): all of them, or those of the next `syncs`
  // commands.
  bool syncs_always = false;
  int syncs = 0;
  uint32_t keyspace = 0;
  bool authenticated = true;
  bool has_logged_in = true;  // at least once, or there was no password when it came

  // The flush (turn_batch.h) whose batch holds this connection's latest write and range read. The
  // number of the next flush: the request is not executed yet.
  uint64_t point_flush = 0;
  uint64_t range_flush = 0;
  // The number of its commands in the flush `counted_flush`, and the limit of it (turn_batch.h).
  uint64_t counted_flush = 0;
  uint32_t count = 0;
  uint32_t count_max = 16;

  bool wants_read = true;  // what the poller was told
  bool wants_write = false;
  bool write_blocked = false;  // the last write did not take everything
  size_t in_used = 0;          // bytes of `in` that were dispatched; pending requests may view them
  bool has_scans = false;      // SCAN or KSCAN has left state for it
  bool queued = false;         // it is listed in connections.h
  bool waiting = false;        // it is listed in reply_gates.h
  bool blocked = false;        // the next command waits until there are no marks
  bool put_off = false;        // it is listed in task_queue.h
  bool held = false;           // CLIENT PAUSE: it is listed in command_dispatch.h
  bool stalled = false;        // the task or the next command waits until the peer has read more
  bool peer_finished = false;  // the peer sends nothing more
  bool closing = false;        // close once `out` is sent
  bool closed = false;         // to be reaped at the end of the turn
  bool in_is_taken = false;    // by TakeInput
  uint64_t charged_bytes = 0;  // in the memory budget: `in`, `out`, the transaction
  uint64_t counted_bytes = 0;  // in the memory of clients: the same, and its task
  // While the peer does not take all replies: since when it has taken none; since when they exceed
  // the soft limit (0: they do not).
  uint64_t taken_ms = 0;
  uint64_t over_soft_ms = 0;

  // Whether the bytes are a part of `in`.
  bool IsInput(std::string_view bytes) const {
    return std::greater_equal<>()(bytes.data(), in.data()) &&
           std::less_equal<>()(bytes.data() + bytes.size(), in.data() + in.size());
  }
  // Takes all of `in`, which whoever has it keeps until the command that is dispatched now is, and
  // charges to the budget: the session's charge for it ends. The dispatcher puts the bytes that
  // follow the command back.
  std::string TakeInput(MemoryBudget& budget) {
    const uint64_t charged = std::min<uint64_t>(charged_bytes, in.capacity());
    budget.Release(charged);
    charged_bytes -= charged;
    in_is_taken = true;
    in_used = 0;
    return std::exchange(in, {});
  }
  bool wants_sync() const { return syncs_always || syncs > 0; }
  // Called when a command has its reply. MULTI and queued commands leave `syncs` to EXEC.
  void CountSync() {
    if (syncs > 0 && transaction == nullptr) --syncs;
  }
  // Appends a value to the replies; or values at their places in `out`.
  void Refer(ReplyPins::Value value) { pins.Add(out_end(), std::move(value)); }
  void Refer(std::vector<packed::PinnedPart> values) {
    for (packed::PinnedPart& part : values) pins.Add(out_base + part.at, std::move(part.value));
  }
  // Takes back what was encoded from byte `begin` of `out` on.
  void TakeBack(size_t begin) {
    out.resize(begin);
    pins.DropBehind(out_end());
  }
  // Likewise, and returns it: the values in it that were pinned are copied.
  std::string Cut(size_t begin) {
    std::string reply = pins.Whole(std::string_view(out).substr(begin), out_base + begin);
    TakeBack(begin);
    return reply;
  }
  // Called when a reply is encoded, or a part of one that goes on, from byte `begin` of `out` on:
  // takes it back if it is not to be sent.
  void EndReply(size_t begin) {
    if (silence.holds()) [[unlikely]]
      TakeBack(begin);
    if (task == nullptr && waiter == nullptr) silence.CountCommand();
  }
  // Called by EXEC and DISCARD.
  void EndTransaction() {
    transaction.reset();
    watched.Clear();
  }
  // How many bytes of input are needed to go on, if that is known.
  size_t wanted() const { return packed == nullptr ? decoder.wanted() : packed->wanted; }
  bool paused() const {
    return task != nullptr || waiter != nullptr || blocked || put_off || held || stalled;
  }
  // Whether input is read though no command is executed.
  bool reads_ahead() const { return waiter != nullptr && !stalled && in.size() < kReadAheadMax; }
  size_t unsent() const {
    const size_t unreleased =
        packed == nullptr ? 0 : packed->held_bytes() + packed->held_pinned_bytes();
    return out.size() - out_begin + pins.bytes() + unreleased;
  }
  // Bytes of `out` that may leave, with the pins among them and behind them.
  size_t sendable() const {
    return (marks.empty() ? out.size() : marks.front().from - out_base) - out_begin;
  }
  bool has_sendable() const {
    const size_t bytes = sendable();
    return bytes > 0 || pins.HasAt(out_base + out_begin);
  }
  uint64_t out_end() const { return out_base + out.size(); }
};

}  // namespace skep
