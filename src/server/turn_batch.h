// turn_batch.h: what the connections of a turn have asked for: one batch a keyspace that all of
// them share, and the replies that are encoded when it is executed.
//
//   Shared + Add       a command's requests join the batch of its keyspace
//   AddReply, AddError a reply that needs no request, in its place among the others
//   AddMessage         a message of the packed protocol is a batch already: it joins, too
//   BeginExclusive     something that runs by itself: all that is pending is executed first
//   Flush              executes the batches, then encodes the pending replies in order
//
// It alone decides when to flush: when a batch is full, when a connection has as many commands in
// it as it may, when the read buffer is, before what runs by itself, at the end of the turn, and as
// the order of a connection's commands asks:
//
// How a connection's commands behave as if run one after another, though they share batches: the
// engine keeps the order of operations on one key, and a range read in a batch sees one state that
// may hold any of the batch's writes. So a range flushes first if the batch holds a point of its
// own connection (PrepareRange), and a point flushes first if it holds such a range (PreparePoint).
// Multi-key commands and transactions have an atomic batch of their own. A range or multi-key read,
// or a transaction, also waits until what the connection's earlier commands have written or seen is
// released, since it may read at the released version (engine.h).
//
// Messages promise less order (wire/packed.h), so they never wait for a gate before they are
// executed, and their replies do not wait for each other.
//
// Back-pressure: a pipeline's replies can be large beyond measure, so it is flushed piece by piece:
// the number of a connection's commands in a flush begins small, doubles while their replies stay
// small, and falls to what fits in kUnsentMax when they do not.
//
// Work: a batch stops when its operations have looked at kWorkBytesMax; what it did not come to
// goes on in tasks of its connections (postponed_task.h). A connection whose commands were in a
// batch with so much work goes on in the next turn.
//
// Views: keys and values of pending requests are views into the read buffer, into Session::in, or
// into scratch(). All of it stays as it is until the flush.
//
// Invariants. True between calls.
//   B1  Every slot of a shared batch belongs to one pending command or message.
//   B2  session.point_flush (range_flush) is the number of the next flush if and only if a shared
//       batch holds a point (a range) of the session.
//   B3  What pending requests view is not overwritten: read_used_ falls to 0, and Session::in
//       loses what was dispatched, only when nothing is pending.
//
// Callers: the dispatchers (command_dispatch.h, packed_dispatch.h) add, the worker ends the turn.
// It has 27 methods: ways to add, and the one decision that all of them share.
// Thread safety: the owning worker only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "server/command.h"
#include "server/connections.h"
#include "server/message_replies.h"
#include "server/postponed_task.h"
#include "server/server_call.h"
#include "server/session.h"
#include "server/task_queue.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep {

class TurnBatch {
 public:
  // All must outlive it.
  TurnBatch(ServerHost& host, Connections& connections, TaskQueue& tasks, MessageReplies& messages);

  // ---- Where input goes

  // Where to read into: at least Connections::kReadBytesMin.
  std::span<char> ReadRoom();
  // So many bytes of the room may be viewed by what is pending.
  void TakeRoom(size_t bytes) { read_used_ += bytes; }
  // The session's `in` may be viewed, up to in_used.
  void KeepInput(Session& session) { kept_.push_back(&session); }
  // Executes what views the session's `in`, and drops what was dispatched of it.
  void DropInput(Session& session);
  // For texts that pending commands and errors view.
  Scratch& scratch() { return scratch_; }

  // ---- Adding

  // Before the next command or message of the session: keeps the replies of its pipeline in bounds,
  // and notes whether it is stalled.
  void BoundPipeline(Session& session);
  // Before a command about a single key, or about ranges or several keys at one version. False: the
  // session has to wait, for its task or for a gate, and the command must be decoded again.
  bool PreparePoint(Session& session);
  bool PrepareRange(Session& session);
  // The batch to which requests are added; Add or AddMessage must follow if any were.
  Batch& Shared(uint32_t keyspace);
  // The command, whose requests are the slots of the session's shared batch from `first` on. The
  // words stay viewed until the flush.
  void Add(Session& session, const Command& command, std::span<const std::string_view> args,
           uint32_t first);
  // The message, whose requests are the slots of its keyspace's shared batch from `first` on.
  void AddMessage(Session& session, const packed::Header& header, uint32_t first);
  // A command without requests: its finish alone makes its reply.
  void AddReply(Session& session, const Command& command, std::span<const std::string_view> args);
  // `text` stays viewed until the flush.
  void AddError(Session& session, std::string_view text);

  // ---- What runs by itself

  // Executes all that is pending. Returns an empty batch of that kind, which EndExclusive and
  // RunApart clear; null: the session has to wait, as above. What cannot be divided, an atomic
  // batch or a command that runs alone, may also have to wait for a turn that has time for it.
  Batch* BeginExclusive(Session& session, Batch::Kind kind);
  // A command has run so, or has started a task.
  void EndExclusive(Session& session);
  // Executes a message's batch, and replies or postpones what it did not come to.
  void RunApart(Session& session, const packed::Header& header, Batch& batch);

  // ---- The end

  void Flush();
  // Flushes, and drops all that was viewed.
  void EndTurn();
  // Forgets the sessions that are closed. Nothing is pending.
  void DropClosed();

 private:
  // A command, or a message, whose reply is not encoded yet.
  struct Pending {
    Session* session;
    uint32_t first_arg, arg_count;
    const Command* command = nullptr;  // null: `message`, or the reply is `error`
    uint32_t keyspace = 0;
    uint32_t first_slot = 0;
    uint32_t slot_count = 0;
    std::string_view error;
    std::optional<packed::Header> message;
  };
  struct KeyspaceBatch {
    Batch batch;
    Version ticket = 0;
    bool used = false;  // listed in used_keyspaces_
  };

  Pending& Pend(Session& session, std::span<const std::string_view> args);
  PostponedTask::Slots SlotsOf(const Pending& pending) const;
  void FinishCommand(const Pending& pending);
  void FinishMessage(Session& session, const packed::Header& header,
                     const PostponedTask::Slots& slots);
  PostponedTask& TaskOf(Session& session);
  void LetOthersGoFirst(Session& session);
  void DropViewed();

  ServerHost& host_;
  Keyspaces& keyspaces_;
  TurnContext& turn_;
  Connections& connections_;
  TaskQueue& tasks_;
  MessageReplies& messages_;

  std::vector<char> read_buffer_;
  size_t read_used_ = 0;        // bytes that pending requests may view
  std::vector<Session*> kept_;  // their `in` may be viewed
  Scratch scratch_;

  uint64_t flush_ = 1;          // number of the next flush
  uint64_t flushed_bytes_ = 0;  // that the last flush's batches took, and looked at
  std::vector<Pending> pending_;
  std::vector<std::string_view> args_;  // of the pending ones
  std::vector<KeyspaceBatch> batches_;  // by keyspace
  std::vector<uint32_t> used_keyspaces_;
  Batch apart_, apart_atomic_{Batch::Kind::kAtomic};  // of what runs by itself
  uint64_t work_before_exclusive_ = 0;
};

}  // namespace skep
