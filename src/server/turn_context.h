// turn_context.h: the state of one turn of a worker: its instant, the options, limits for sessions,
// and the work that was done so far.
//
// Work is the bytes that batches look at (Batch::work_bytes), those that they pin for replies, a
// constant for each request, and the replies of commands that run alone. Once a turn has had
// kWorkBytesMax (HasWorked), commands that cannot be divided wait for a later turn: task_queue.h.
//
// Callers: every room of the worker (worker.h) reads it; the worker begins the turns.
// Thread safety: the owning worker only, but for the statistics, which any thread reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/store_now.h"
#include "engine/engine.h"
#include "server/options.h"
#include "server/planned_command.h"
#include "server/session.h"
#include "server/worker_statistics.h"
#include "skep/batch.h"

namespace skep {

class ServerState;

// The bytes of replies that a connection may leave unread before it is not read any more.
inline constexpr size_t kUnsentMax = 1 << 20;
// The bytes of a connection's input that are kept, and as many of its replies, until it has logged
// in.
inline constexpr size_t kStrangerBytesMax = 4 << 10;
// Limits in Batch::work_bytes: about half a millisecond's work; a third of a second's.
inline constexpr size_t kWorkBytesMax = 4 << 20;
inline constexpr size_t kAtomicWorkBytesMax = kAnswerBytesMax;
// The bytes that the answers of an atomic batch may take however small maxmemory-clients is: the
// largest value.
inline constexpr size_t kAnswerBytesMin = 64 << 20;

class TurnContext {
 public:
  explicit TurnContext(ServerState& state) : state_(state) {}

  // Begins a turn: reads the clocks and the options; no work was done yet.
  void Begin();
  // Begins a command that is run beside the worker (aside_task.h): likewise, but it is no turn.
  void BeginBeside();
  // Reads the options again, which a command of this turn may have changed.
  void RefreshOptions();

  uint64_t monotonic_ms() const { return monotonic_ms_; }
  const StoreNow& now() const { return now_; }
  const ServerOptions& options() const { return options_; }
  // Limit of all clients together; 0: there is no limit.
  uint64_t client_bytes_max() const { return client_bytes_max_; }

  // Whether the session may run commands: it has logged in, or needs not.
  bool IsAuthenticated(const Session& session) const {
    return session.authenticated || options_.requirepass.empty();
  }
  // Whether the session has never logged in, though it must: such a connection gets
  // kStrangerBytesMax.
  bool IsStranger(const Session& session) const {
    return !session.has_logged_in && !options_.requirepass.empty();
  }
  // The bytes of replies that the session may leave unread before it is not read any more.
  size_t UnsentMax(const Session& session) const {
    return IsStranger(session) ? kStrangerBytesMax : kUnsentMax;
  }
  // The bytes that its next atomic batch may return, so that no reply is made for which the client
  // would be closed; and those that its answers may take, so that there is memory for them.
  size_t ReturnedBytesMax(const Session& session) const;
  size_t AnswerBytesMax(const Session& session) const;

  // Executes the batch as of this turn, tells its events, under the names that the commands give
  // them (key_events.h), and then pops for the clients that wait for what it has written
  // (key_waiters.h). Returns its ticket.
  Version Execute(Engine& engine, Batch& batch, std::span<const PlannedCommand> commands = {});
  // Pops for more of them, if there are too many for the turn in which it was written.
  void ServeWaiters();
  // Executes the batch and tells its events.
  Version ExecuteAlone(Engine& engine, Batch& batch, std::span<const PlannedCommand> commands = {});
  void CountWork(uint64_t bytes) { work_bytes_ += bytes; }
  // Counts gets that were done without a batch, whose values have so many bytes.
  void CountGets(uint64_t hits, uint64_t misses, size_t bytes);
  // The work of all turns so far.
  uint64_t work_bytes() const { return work_bytes_; }
  bool HasWorked() const { return work_bytes_ - work_before_turn_ > kWorkBytesMax; }

  WorkerStatistics& statistics() { return statistics_; }
  const WorkerStatistics& statistics() const { return statistics_; }
  void CountError(std::string_view error = {}) {
    Bump(statistics_.errors);
    statistics_.by_command.CountError(error);
    if (IsRefusal(error)) ++refusals_;
  }
  // Counts a command that has run for so long, notes it if that was long, and tells those who
  // monitor, unless they were told when it began.
  void CountCommand(const Session& session, const Command& command,
                    std::span<const std::string_view> args, uint64_t ns, Ending ending,
                    bool was_told = false);
  // Tells those who monitor of a command that has run, or that begins to (monitor.h).
  void TellMonitors(const Session& session, const Command& command,
                    std::span<const std::string_view> args);
  uint64_t error_count() const { return statistics_.errors.load(std::memory_order_relaxed); }
  ErrorCounts error_counts() const { return {.all = error_count(), .refusals = refusals_}; }
  // Whether a command that has taken so long is to be noted (NoteSlow).
  bool IsSlow(uint64_t ns) const {
    return ns >= slow_ns_ || (options_.latency_monitor_threshold != 0 && ns >= latency_ns_);
  }
  // Notes a command that took long for SLOWLOG and LATENCY, as far as the options want it.
  void NoteSlow(const Session& session, std::vector<std::string> words, uint64_t ns);
  // The time of the monotonic clock, now.
  uint64_t MonotonicNs() const;

 private:
  void CountLookups(const Batch& batch);

  ServerState& state_;
  uint64_t monotonic_ms_ = 0;
  StoreNow now_;
  ServerOptions options_;
  uint64_t options_version_ = UINT64_MAX;
  uint64_t client_bytes_max_ = 0;
  uint64_t slow_ns_ = UINT64_MAX;  // of slowlog-log-slower-than
  uint64_t latency_ns_ = 0;        // of latency-monitor-threshold
  uint64_t work_bytes_ = 0;
  uint64_t work_before_turn_ = 0;
  uint64_t refusals_ = 0;  // errors that IsRefusal() names
  WorkerStatistics statistics_;
};

}  // namespace skep
