// worker.h: one event loop. Every core has one; all serve one store.
//
// A turn
//   1. Wait for the network. If nothing comes, or after some turns, see to it that what replies
//      wait for is synced. Accept; read once from every connection that is ready.
//   2. Decode. Each command either waits among the pending ones, its requests added to the one
//      batch of its keyspace, or runs alone after a flush.
//   3. Flush: execute the batches, then encode the pending replies in order.
//   4. Each session with a task does one piece of it.
//   5. Send, one write a connection: what the gates have released.
//
// How a connection's commands behave as if run one after another, though they share batches: the
// engine keeps the order of operations on one key, and a range read in a batch sees one state that
// may hold any of the batch's writes. So a range flushes first if the batch holds a point of its
// own connection, and a point flushes first if it holds such a range. Multi-key commands and
// transactions have an atomic batch of their own. A range or multi-key read, or a transaction, also
// waits until what the connection's earlier commands have written or seen is released, since it may
// read at the released version (engine.h).
//
// Messages of the packed protocol are batches already: those of points share the batch of the turn,
// the others have one of their own. They promise less order (wire/packed.h), so they never wait for
// a gate before they are executed, and their replies do not wait for each other. Datagrams are such
// messages too, each a session of its own; what all of a turn are answered leaves together.
//
// Back-pressure: a connection is not read, and none of its commands is executed, while it has more
// than kUnsentMax bytes of replies to take, while its task runs or while it waits for a gate. Its
// unread bytes stay in the kernel. Since a pipeline's replies can be large beyond measure, it is
// flushed piece by piece: the number of its commands in a flush begins small, doubles while their
// replies stay small, and falls to what fits in kUnsentMax when they do not.
//
// Work: a batch stops when its operations have looked at kWorkBytesMax; what it did not come to
// goes on in tasks of its connections (postponed_task.h). A connection whose commands were in a
// batch with so much work goes on in the next turn. An atomic batch cannot be divided: it is
// refused beyond kAtomicWorkBytesMax. Once a turn has had kWorkBytesMax, what cannot be divided
// waits for a later turn, first come, first served (PutsOff): a large reply is made, sent as far as
// its client takes it, and the largest clients are closed for it, before the next one is made.
//
// Strangers: a connection that must log in and has not is read and answered in pieces of
// kStrangerBytesMax. It is closed if a command is longer, or if it does not take its replies.
//
// Thread safety: one thread turns it. Adopt() and Wake() from any.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/network.h"
#include "server/acceptor.h"
#include "server/administration.h"
#include "server/command.h"
#include "server/connections.h"
#include "server/datagram_port.h"
#include "server/message_replies.h"
#include "server/reply_gates.h"
#include "server/server_call.h"
#include "server/server_state.h"
#include "server/session.h"
#include "server/task_queue.h"
#include "server/turn_context.h"
#include "server/worker_pool.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep {

class PostponedTask;

class Worker {
 public:
  Worker(ServerState& state, Administration& administration, WorkerPool& pool);
  ~Worker();

  // One turn. Waits up to `timeout_ms` for something to do; -1: until it is time for upkeep.
  // Returns whether there was anything to do.
  bool Turn(int timeout_ms);

  // Serves the connection from the next turn on.
  void Adopt(std::unique_ptr<Stream> stream);
  void Wake() { poller_->Wake(); }
  // Accepts the connections of this listener and spreads them over all workers.
  Status Listen(Listener& listener) { return acceptor_.Listen(listener); }
  // Serves what comes there.
  Status Serve(std::unique_ptr<DatagramSocket> socket);

  size_t connections() const { return connections_.count(); }
  const WorkerStatistics& statistics() const { return turn_.statistics(); }

  // Ends all connections once their replies are sent, and serves no more.
  void Drain();
  bool drained() const { return connections_.drained(); }

 private:
  // A command, or a message of the packed protocol, whose reply is not encoded yet.
  struct Pending {
    Session* session;
    const Command* command;  // null: `message`, or the reply is `error`
    uint32_t first_arg, arg_count;
    uint32_t keyspace;
    uint32_t first_slot;
    uint32_t slot_count;
    std::string_view error;
    std::optional<packed::Header> message;
  };
  struct KeyspaceBatch {
    Batch batch;
    Version ticket = 0;
    bool used = false;  // listed in used_keyspaces_
  };
  void PassGates();
  void ResumeSessions();
  void Handle(const ReadyEvent& event);
  void StepTasks();
  void Send();
  void ReapClosed();
  void Upkeep();

  // Step 1.
  void ReadFrom(Session& session);

  // Step 2.
  size_t Decode(Session& session, std::string_view input);
  void DecodeKept(Session& session);
  void LimitPipeline(Session& session);
  bool Dispatch(Session& session, std::span<const std::string_view> args);
  std::string_view Refusal(const Session& session, const Command* command,
                           std::span<const std::string_view> args);
  std::string_view RefusalToQueue(const Session& session, const Command& command,
                                  std::span<const std::string_view> args);
  void HangUpOnWebPage(Session& session);
  void PendRefusal(Session& session, const Command* command, std::string_view refusal);
  bool Run(Session& session, const Command& command, std::span<const std::string_view> args);
  bool RunPlanned(Session& session, const Command& command, std::span<const std::string_view> args);
  bool RunAtomic(Session& session, const Command& command, std::span<const std::string_view> args);
  bool RunAlone(Session& session, const Command& command, std::span<const std::string_view> args);
  void Pend(Pending pending, std::span<const std::string_view> args);
  KeyspaceBatch& SharedBatch(uint32_t keyspace);
  void PendError(Session& session, std::string_view text);

  // Step 2 and 3, of the packed protocol: worker_packed.cc.
  std::optional<size_t> DecodeHello(Session& session, std::string_view input);
  size_t DecodeMessages(Session& session, std::string_view input);
  bool DispatchMessage(Session& session, const packed::Header& header, std::string_view payload);
  bool RunBatchMessage(Session& session, const packed::Header& header, std::string_view payload);
  bool AddToShared(Session& session, const packed::Header& header, std::string_view payload);
  bool RunApart(Session& session, const packed::Header& header, std::string_view payload);
  Status SetUpApart(Session& session, const packed::Header& header, std::string_view payload,
                    Batch& batch);
  void HangUp(Session& session, const Status& why);
  void ReceiveDatagrams(DatagramPort& port);
  void DispatchDatagram(DatagramPort& port, const Datagram& datagram);

  // Step 3.
  void Flush();
  void FinishPending(const Pending& pending);
  void FinishCommand(const Pending& pending);
  void ForgetViewed();

  PostponedTask& TaskOf(Session& session);
  void LetOthersGoFirst(Session& session);
  void SendDatagrams();
  void DropOverdueDatagrams();

  ServerState& state_;
  const std::shared_ptr<Poller> poller_;
  TurnContext turn_;
  Acceptor acceptor_;
  Connections connections_;
  ReplyGates gates_;
  TaskQueue tasks_;
  ServerHost host_;
  MessageReplies messages_;
  uint64_t next_upkeep_ms_ = 0;
  bool draining_ = false;
  bool upkeep_left_ = false;  // the engines have more to do

  std::vector<std::unique_ptr<DatagramPort>> ports_;
  std::vector<Session*> kept_;  // input in `in` was dispatched this turn

  std::vector<char> read_buffer_;
  size_t read_used_ = 0;        // bytes that pending requests may view
  uint64_t flush_ = 1;          // number of the next flush
  uint64_t flushed_bytes_ = 0;  // that the last flush's batches took, and looked at
  std::vector<Pending> pending_;
  std::vector<std::string_view> args_;       // of one command
  std::vector<std::string_view> kept_args_;  // of the pending ones
  std::vector<KeyspaceBatch> batches_;       // by keyspace
  std::vector<uint32_t> used_keyspaces_;
  Batch apart_, apart_atomic_{Batch::Kind::kAtomic};  // of one message, one command
  Scratch scratch_;  // errors and unquoted arguments of the pending ones
};

}  // namespace skep
