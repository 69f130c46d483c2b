// turn_batch.h: the requests of a turn: one batch a keyspace that all connections share, and the
// replies that are encoded when it is executed.
//
//   Shared + Add       a command's requests join the batch of its keyspace
//   AddReply, AddError a reply that needs no request, in its place among the others
//   AddMessage         a message of the packed protocol is a batch already: it joins, too
//   BeginExclusive     for a command that runs by itself: executes all pending requests first
//   Flush              executes the batches, then encodes the pending replies in order
//
// This class alone decides when to flush: when a batch is full, when a connection has as many
// commands in it as it may, when the read buffer is full, before a command that runs by itself, at
// the end of the turn, and when the order of a connection's commands requires it:
//
// Order: a connection's commands behave as if run one after another, though they share batches. The
// engine keeps the order of operations on one key, and a range read in a batch sees one state that
// may hold any of the batch's writes. So a range flushes first if the batch holds a point of its
// own connection (PrepareRange), and a point flushes first if it holds such a range (PreparePoint).
// Multi-key commands and transactions have an atomic batch of their own. A range or multi-key read,
// or a transaction, also waits until the versions that the connection's earlier commands have
// written or seen are released, since it may read at the released version (engine.h).
//
// Messages promise less order (wire/packed.h), so they never wait for a gate before they are
// executed, and their replies do not wait for each other.
//
// Back-pressure: a pipeline's replies can be large beyond measure, so it is flushed piece by piece:
// the number of a connection's commands in a flush begins small, doubles while their replies stay
// small, and falls to what fits in kUnsentMax when they do not.
//
// Work: a batch stops when its operations have looked at kWorkBytesMax; the requests that were not
// reached go on in tasks of their connections (postponed_task.h). A connection whose commands were
// in a batch with so much work goes on in the next turn.
//
// Views: keys and values of pending requests are views into the read buffer, into Session::in, or
// into scratch(). All of it stays as it is until the flush.
//
// Invariants. True between calls.
//   B1  Every slot of a shared batch belongs to one pending command or message.
//   B2  session.point_flush (range_flush) is the number of the next flush if and only if a shared
//       batch holds a point (a range) of the session.
//   B3  Bytes that pending requests view are not overwritten: read_used_ falls to 0, and
//       Session::in loses its dispatched bytes, only when nothing is pending.
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
  // All arguments must outlive the batch.
  TurnBatch(ServerHost& host, Connections& connections, TaskQueue& tasks, MessageReplies& messages);

  // ---- Input

  // The free part of the read buffer: at least Connections::kReadBytesMin.
  std::span<char> ReadRoom();
  // Pending requests may view the first `bytes` of the read room.
  void TakeRoom(size_t bytes) { read_used_ += bytes; }
  // Pending requests may view the session's `in`, up to in_used.
  void KeepInput(Session& session) { kept_.push_back(&session); }
  // Executes requests that view the session's `in`, and drops its dispatched bytes.
  void DropInput(Session& session);
  // Memory for texts that pending commands and errors view.
  Scratch& scratch() { return scratch_; }

  // ---- Adding

  // Called before the next command or message of the session: keeps the replies of its pipeline in
  // bounds, and notes whether it is stalled.
  void BoundPipeline(Session& session);
  // Called before a command about a single key, or before one about ranges or several keys at one
  // version. False: the session has to wait, for its task or for a gate, and the command must be
  // decoded again.
  bool PreparePoint(Session& session);
  bool PrepareRange(Session& session);
  // The batch to which requests are added; if any were, Add or AddMessage must follow.
  Batch& Shared(uint32_t keyspace);
  // Adds a command, whose requests are the slots of the session's shared batch from `first` on. The
  // words stay viewed until the flush.
  void Add(Session& session, const Command& command, std::span<const std::string_view> args,
           uint32_t first);
  // Adds a message, whose requests are the slots of its keyspace's shared batch from `first` on.
  void AddMessage(Session& session, const packed::Header& header, uint32_t first);
  // Whether a shared batch has points of the session.
  bool HasPoints(const Session& session) const { return session.point_flush == flush_; }
  // After work that took long the session goes on in the next turn.
  void LetOthersGoFirst(Session& session);
  // Adds a command without requests: its finish alone makes its reply.
  void AddReply(Session& session, const Command& command, std::span<const std::string_view> args);
  // `text` stays viewed until the flush.
  void AddError(Session& session, std::string_view text);

  // ---- Commands and messages that run by themselves

  // Executes all that is pending. Returns an empty batch of that kind, which EndExclusive and
  // RunApart clear; null: the session has to wait, as above. An atomic batch, or a command that
  // runs alone, cannot be divided and may also have to wait for a turn that has time for it.
  Batch* BeginExclusive(Session& session, Batch::Kind kind);
  // The same for a command whose keys are done one by one: an empty batch that is not atomic.
  Batch* BeginSplit(Session& session);
  // Called when the command has run, or has started a task.
  void EndExclusive(Session& session);
  // Executes a message's batch, and replies or postpones the requests that were not reached. False:
  // the engine has left the batch out (portions.h), and nothing was done.
  bool RunApart(Session& session, const packed::Header& header, Batch& batch);

  // ---- The end

  void Flush();
  // Flushes, and drops all viewed bytes.
  void EndTurn();
  // Forgets the sessions that are closed. Requires that nothing is pending.
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
    ErrorCounts errors;  // that were counted before it was finished
  };
  struct KeyspaceBatch {
    Batch batch;
    Version ticket = 0;
    bool used = false;  // it is listed in used_keyspaces_
  };

  Pending& Pend(Session& session, std::span<const std::string_view> args);
  PostponedTask::Slots SlotsOf(const Pending& pending) const;
  std::span<const PlannedCommand> CommandsOf(uint32_t keyspace);
  void FinishCommand(const Pending& pending);
  void CountCommands(uint64_t ns);
  void FinishMessage(Session& session, const packed::Header& header,
                     const PostponedTask::Slots& slots);
  PostponedTask& TaskOf(Session& session);
  void DropViewed();

  ServerHost& host_;
  Keyspaces& keyspaces_;
  TurnContext& turn_;
  Connections& connections_;
  TaskQueue& tasks_;
  MessageReplies& messages_;

  std::vector<char> read_buffer_;
  size_t read_used_ = 0;        // bytes that pending requests may view
  std::vector<Session*> kept_;  // sessions whose `in` may be viewed
  Scratch scratch_;

  uint64_t flush_ = 1;          // number of the next flush
  uint64_t flushed_bytes_ = 0;  // memory and work of the last flush's batches
  std::vector<Pending> pending_;
  std::vector<std::string_view> args_;  // words of the pending commands
  std::vector<KeyspaceBatch> batches_;  // by keyspace
  std::vector<PlannedCommand> commands_;
  std::vector<uint32_t> used_keyspaces_;
  Batch apart_, apart_atomic_{Batch::Kind::kAtomic};  // for commands that run by themselves
  uint64_t work_before_exclusive_ = 0;
};

}  // namespace skep
