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

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/network.h"
#include "base/random.h"
#include "server/administration.h"
#include "server/command.h"
#include "server/datagram_port.h"
#include "server/options.h"
#include "server/server_state.h"
#include "server/session.h"
#include "server/worker_pool.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep {

class PostponedTask;

// Counts for INFO. Relaxed: sums that nothing else depends on.
struct WorkerStatistics {
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> connections{0};  // accepted since start
  std::atomic<uint64_t> rejected{0};     // over maxclients
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> batch_requests{0};
  std::atomic<uint64_t> input_bytes{0};
  std::atomic<uint64_t> output_bytes{0};
  std::atomic<uint64_t> errors{0};
};

// For those: one thread writes each.
inline void Bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

class Worker {
 public:
  static constexpr size_t kUnsentMax = 1 << 20;
  // What is kept of a connection's input, and of its replies, until it has logged in: each.
  static constexpr size_t kStrangerBytesMax = 4 << 10;
  // Of Batch::work_bytes: about half a millisecond's; a third of a second's.
  static constexpr size_t kWorkBytesMax = 4 << 20;
  static constexpr size_t kAtomicWorkBytesMax = kAnswerBytesMax;
  // What the answers of an atomic batch may have however small maxmemory-clients is: the largest
  // value. And however little memory is left.
  static constexpr size_t kAnswerBytesMin = 64 << 20;
  static constexpr size_t kAnswerBytesFree = 16 << 20;

  Worker(ServerState& state, Administration& administration, WorkerPool& pool);
  ~Worker();

  // One turn. Waits up to `timeout_ms` for something to do; -1: until it is time for upkeep.
  // Returns whether there was anything to do.
  bool Turn(int timeout_ms);

  // Serves the connection from the next turn on.
  void Adopt(std::unique_ptr<Stream> stream);
  void Wake() { poller_->Wake(); }
  // Accepts the connections of this listener and spreads them over all workers.
  Status Listen(Listener& listener);
  // Serves what comes there.
  Status Serve(std::unique_ptr<DatagramSocket> socket);

  size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  const WorkerStatistics& statistics() const { return statistics_; }

  // For commands. Options as of this turn; `now` as of this turn.
  const ServerOptions& options() const { return options_; }
  uint64_t monotonic_ms() const { return monotonic_ms_; }
  const StoreNow& now() const { return now_; }
  Random& random() { return random_; }
  Administration& administration() { return administration_; }
  // Executes `batch` as of this turn. Returns its ticket.
  Version ExecuteOn(Engine& engine, Batch& batch);
  // The same on the keyspace of the session, and marks the replies that follow. What the answers of
  // an atomic batch may take is bounded by AnswerBytesMax().
  void ExecuteFor(Session& session, Batch& batch);
  // What is encoded for the session from here on waits until the engine has released the ticket.
  void MarkTicket(Session& session, Engine& engine, Version ticket);
  // Where a message's reply goes, which waits until the engine has released the ticket, or synced
  // it: into what may be sent, or aside.
  std::string& ReplyTo(Session& session, Engine& engine, Version ticket, bool syncs);
  // Appends the reply to a message, from the outcomes of as many slots as it has operations, and
  // remembers it if that is wanted.
  void FinishMessage(Session& session, const packed::Header& header, const Batch& batch,
                     uint32_t first_slot, Engine& engine, Version ticket);
  // Whether the session may run commands: it has logged in, or needs not.
  bool IsAuthenticated(const Session& session) const {
    return session.authenticated || options_.requirepass.empty();
  }
  // Whether it has never logged in, though it must: such a connection gets kStrangerBytesMax.
  bool IsStranger(const Session& session) const {
    return !session.has_logged_in && !options_.requirepass.empty();
  }
  // What the answers of the session's next atomic batch may take: a reply for which its client
  // would be closed, or for which there is no memory, is better not made.
  size_t AnswerBytesMax(const Session& session) const;
  void CountError() { Bump(statistics_.errors); }
  // Ends all connections once their replies are sent, and serves no more.
  void Drain();
  bool drained() const { return draining_ && sessions_.empty(); }

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
  struct Awaited {
    ReleaseGate* gate;
    Version ticket;
    bool operator==(const Awaited&) const = default;
  };
  struct Unsynced {
    Engine* engine;
    ReleaseGate* gate;
    Version ticket;
  };

  // Step 1.
  void ReadClocksAndOptions();
  void RefreshOptions();
  bool AdoptWaiting();
  void Accept(Listener& listener);
  void RejectOrPlace(std::unique_ptr<Stream> stream);
  void ReadFrom(Session& session);
  void Received(Session& session, ssize_t bytes);
  size_t ReadBytes(const Session& session, size_t room) const;

  // Step 2.
  size_t Decode(Session& session, std::string_view input);
  void DecodeKept(Session& session);
  void FinishInput(Session& session);
  void LimitPipeline(Session& session);
  size_t UnsentMax(const Session& session) const;
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
  bool HasWorked() const { return executed_bytes_ - executed_before_turn_ > kWorkBytesMax; }
  bool PutsOff(Session& session);
  void ResumePutOff();

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

  // Step 4: worker_tasks.cc.
  void StepTasks();
  void AddTask(Session& session);
  PostponedTask& TaskOf(Session& session);
  void LetOthersGoFirst(Session& session);

  // Step 5.
  void PassGates();
  // Where a reply waits. If everything is synced before it is told, the other gate may have been
  // released further under another policy.
  static ReleaseGate& GateOf(Engine& engine, bool syncs) {
    return syncs || engine.syncs_to_release() ? engine.synced_gate() : engine.gate();
  }
  ReleaseGate* ClosedGate(Engine& engine, Version ticket, bool syncs);
  void AwaitGate(Session& session, ReleaseGate& gate, Version ticket);
  void NoteUnsynced(const Unsynced& unsynced);
  void Sync();
  bool StayAwake();
  void ArrangeWakes();
  void Send();
  void SendDatagrams();
  void DropOverdueDatagrams();
  void SendTo(Session& session);
  void UpdateInterest(Session& session);
  void UpdateAccount(Session& session);
  void ChargeBudget(Session& session, uint64_t bytes);
  void Queue(Session& session);
  void Kill(Session& session);
  void EndMarked();
  void EvictClients();
  void GiveUpStalledPins();
  bool KeepsOutputLimit(Session& session);
  void BuryDead();
  void Upkeep();
  bool IsOverdue(const Session& session) const;

  ServerState& state_;
  Administration& administration_;
  WorkerPool& pool_;
  std::shared_ptr<Poller> poller_;
  Random& random_;
  ServerOptions options_;
  uint64_t options_version_ = UINT64_MAX;
  uint64_t client_bytes_max_ = 0;  // ClientBytesMax()
  uint64_t ended_version_ = 0;     // of the server, when EndMarked() looked
  uint64_t next_eviction_ms_ = 0;
  uint64_t monotonic_ms_ = 0;
  StoreNow now_;
  uint64_t next_upkeep_ms_ = 0;
  bool draining_ = false;
  uint64_t drain_until_ms_ = 0;
  bool upkeep_left_ = false;  // the engines have more to do
  int task_patience_ms_ = 0;  // how long all of tasks_ can wait

  std::map<uint64_t, std::unique_ptr<Session>> sessions_;  // by id: a simulated run repeats exactly
  std::atomic<size_t> connections_{0};
  std::vector<Listener*> listeners_;
  std::vector<std::unique_ptr<DatagramPort>> ports_;
  std::vector<Listener*> exhausted_;  // not polled until the next upkeep: no descriptors were left
  std::vector<Session*> to_send_;     // queued
  std::vector<Session*> waiting_;     // have marks
  std::vector<Awaited> awaited_;      // by them, and nobody is asked yet to wake the worker
  std::vector<Unsynced> unsynced_;    // WantSync() is to be called
  uint32_t turns_unsynced_ = 0;       // it has waited for so many
  uint32_t in_vain_ = 0;              // times in a row that it stayed awake
  uint32_t sleeps_left_ = 0;          // before it does again
  std::vector<Session*> tasks_;       // can do a piece
  std::vector<Session*> stalled_tasks_;  // have a task that waits until the peer has read more
  std::vector<Session*> kept_;           // input in `in` was dispatched this turn
  std::vector<Session*> resumed_;        // may go on with the input they have
  std::deque<Session*> put_off_;         // wait until a turn has time for their next command
  std::vector<Session*> dead_;

  std::vector<char> read_buffer_;
  size_t read_used_ = 0;        // bytes that pending requests may view
  uint64_t flush_ = 1;          // number of the next flush
  uint64_t flushed_bytes_ = 0;  // that the last flush's batches took, and looked at
  // Batch::work_bytes() of all batches, and something for each request; replies of what runs alone.
  uint64_t executed_bytes_ = 0;
  uint64_t executed_before_turn_ = 0;
  std::vector<Pending> pending_;
  std::vector<std::string_view> args_;       // of one command
  std::vector<std::string_view> kept_args_;  // of the pending ones
  std::vector<KeyspaceBatch> batches_;       // by keyspace
  std::vector<uint32_t> used_keyspaces_;
  Batch apart_, apart_atomic_{Batch::Kind::kAtomic};  // of one message, one command
  Scratch scratch_;  // errors and unquoted arguments of the pending ones
  WorkerStatistics statistics_;

  std::mutex mailbox_mutex_;
  std::vector<std::unique_ptr<Stream>> mailbox_;  // guarded by mailbox_mutex_
};

}  // namespace skep
