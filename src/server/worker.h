// worker.h: one event loop. Every core has one; all serve one store.
//
// A turn
//   1. Wait for the network. If nothing comes, or after some turns, see to it that the tickets that
//      replies wait for are synced (reply_gates.h). Accept (acceptor.h); read once from every
//      connection that is ready (connections.h).
//   2. Decode (command_dispatch.h, packed_dispatch.h). Each command either waits among the pending
//      ones, its requests added to the one batch of its keyspace, or runs alone after a flush.
//   3. Flush (turn_batch.h): execute the batches, then encode the pending replies in order.
//   4. Each session with a task does one piece of it (task_queue.h), or sees that a thread beside
//      the worker has done it (side_thread.h). Those that have waited for a key long enough get
//      their replies (waiting_sessions.h); messages go to those that have subscribed
//      (message_delivery.h).
//   5. Send, one write a connection: the replies that the gates have released. Close connections.
//      Keys that datagrams ask for often are given to the driver's hook (hot_filler.h).
//
//   Worker --> CommandDispatch, PackedDispatch, Datagrams     decode requests
//                  |
//              TurnBatch --> PostponedTask --> MessageReplies execute and answer them
//                  |                                 |
//      TaskQueue, WaitingSessions    Connections, Acceptor   ReplyGates
//                  |               |                 |
//              TurnContext: the instant, the options, the work that the turn has had
//
// A room knows those to its right and below, never the worker. Sessions (session.h) go through all
// of them; each room keeps lists of sessions of its own, and forgets the closed ones before they
// are reaped.
//
// Back-pressure: a connection is not read, and none of its commands is executed, while it has more
// than kUnsentMax bytes of replies to take, while its task runs or while it waits for a gate. Its
// unread bytes stay in the kernel.
//
// Once a turn has had kWorkBytesMax of work, commands that cannot be divided wait for a later turn,
// first come, first served: a large reply is made, sent as far as its client takes it, and the
// largest clients are closed for it, before the next one is made. An atomic batch cannot be
// divided: it is refused beyond kAtomicWorkBytesMax.
//
// Thread safety: one thread turns it. Any thread may call Adopt() and Wake().
#pragma once

#include <cstdint>
#include <memory>

#include "base/network.h"
#include "server/acceptor.h"
#include "server/administration.h"
#include "server/command_dispatch.h"
#include "server/connections.h"
#include "server/datagrams.h"
#include "server/hot_filler.h"
#include "server/message_delivery.h"
#include "server/message_replies.h"
#include "server/packed_dispatch.h"
#include "server/reply_gates.h"
#include "server/server_call.h"
#include "server/server_state.h"
#include "server/session.h"
#include "server/side_thread.h"
#include "server/task_queue.h"
#include "server/turn_batch.h"
#include "server/turn_context.h"
#include "server/waiting_sessions.h"
#include "server/worker_pool.h"

namespace skep {

class Worker {
 public:
  // All arguments must outlive the worker.
  Worker(ServerState& state, Administration& administration, WorkerPool& pool);
  ~Worker();

  // Does one turn. Waits up to `timeout_ms` for something to do; -1: until it is time for upkeep.
  // Returns whether there was anything to do.
  bool Turn(int timeout_ms);

  // Serves the connection from the next turn on.
  void Adopt(std::unique_ptr<Stream> stream);
  void Wake() { poller_->Wake(); }
  // What would hold the worker for long may go to a thread of its own from now on, until it is
  // stopped. Both are called by the thread that turns the worker.
  void AllowSideThread() { side_thread_.Allow(); }
  void StopSideThread() { side_thread_.Stop(); }
  // Accepts the connections of this listener and spreads them over all workers.
  Status Listen(Listener& listener) { return acceptor_.Listen(listener); }
  // Serves the datagrams that come to the socket.
  Status Serve(std::unique_ptr<DatagramSocket> socket) {
    return datagrams_.Serve(std::move(socket));
  }

  size_t connections() const { return connections_.count(); }
  const WorkerStatistics& statistics() const { return turn_.statistics(); }
  // Of the commands that were run beside it, which themselves are counted with the worker's when
  // they have ended: their batches, their errors, and the commands of transactions.
  const WorkerStatistics& side_statistics() const { return side_turn_.statistics(); }

  // Ends all connections once their replies are sent, and serves no more.
  void Drain();
  bool drained() const { return connections_.drained(); }

 private:
  void PassGates();
  void ResumeSessions();
  void Handle(const ReadyEvent& event);
  void StepTasks();
  void FinishWaiting();
  void CountRunning(Session& session, Ending ending);
  void SampleRates();
  void Send();
  void ReapClosed();
  void Upkeep();

  ServerState& state_;
  const std::shared_ptr<Poller> poller_;
  TurnContext turn_;
  Acceptor acceptor_;
  Connections connections_;
  ReplyGates gates_;
  TaskQueue tasks_;
  WaitingSessions waiting_;
  MessageDelivery deliveries_;
  TurnContext side_turn_;
  ServerHost host_;
  MessageReplies messages_;
  TurnBatch batch_;
  PackedDispatch packed_;
  CommandDispatch commands_;
  HotFiller hot_filler_;
  Datagrams datagrams_;
  SideThread side_thread_;  // its thread ends first
  uint64_t next_upkeep_ms_ = 0;
  bool draining_ = false;
  bool upkeep_left_ = false;  // the engines have more to do
};

}  // namespace skep
