// log.h: the write-ahead log of all keyspaces: what is appended, when it is written, synced, and
// what that tells the gates.
//
// Who                      does                                          holds
//   writer of a keyspace   Enter, executes its batch, Leave              mutex_, for a moment each
//   whoever wants replies  Publish: everything appended is written       writing_
//   whoever waits for      WantSync: everything appended is written and  syncing_, and writing_
//   the disk               synced                                        to write
//   the log's own thread   Step: the same, if asked or due; mends        the same
//
// Complete versions. A keyspace's version is complete once every write up to it has been appended.
//   Enter(k)   notes a floor: what the keyspace's Latest() is now. What the batch draws is above
//              it.
//   Leave      appends the batch's record, if it has changed something, and takes the floor away.
//   Publish    reads V = Latest() of each keyspace; then, under mutex_, takes all that was appended
//              and C = min(V, floors).
//   (C1) Every change of a version v <= C is in what was taken, or was taken before. Take the batch
//        that drew v. Latest() says that v was drawn before it answered V >= v, so the batch had
//        entered before that, with a floor below v. Suppose that it had not left at the time of the
//        taking: then its floor, and so C, would be below v. So it had left, and what it appended
//        was taken.
//   (C2) All gets complete: who leaves last has all others' floors gone, publishes afterwards, and
//        its keyspace's Latest() rises to what was drawn as the engine says (release_gate.h).
// Each write ends with a progress record that has C. Recovery applies what is complete by the last
// one; so it makes a state that there was, and has every reply that was ever sent: the gate of a
// keyspace is released to C after the write, or with `always` after the sync behind it.
//
// Versions that changed nothing make no record of progress, until they are kVersionsUntold: so no
// gate was ever released further than that beyond what the log says, and who goes on from there
// leaves out as many (recovery.h).
//
// Publish never waits: who finds somebody writing leaves it to them (wanted_ is looked at again
// after the lock is given back), and who has written for others for some rounds leaves it to the
// log's thread. With `always` it only wakes that thread.
//
// Who has nothing to do before a sync is done does it itself, so that no thread has to be woken for
// it, nor the caller after it. While somebody else does, it waits for syncing_, and then syncs for
// all who appended meanwhile: so a sync serves many. The log's thread is asked where the caller has
// better things to do, syncs take long, one has failed or goes on for more than a millisecond, or
// a batch has not left; it goes on until all is synced that was wanted: so (C2) holds here, too.
//
// Space. What was begun has to be logged, also on a full disk: a batch enters only if its record,
// and those of all that have entered before it, fit into what is taken from the disk already. Who
// does not fit takes more, if the log's thread has not done so in time; if there is none it is
// refused. What stores is refused earlier than what deletes, which has kForDeletesMax bytes, or a
// quarter of a segment, to itself. How long a record will be is an estimate (durable_engine.cc).
//
// Age. With kEverySecond a power loss costs what is not synced. If that gets too old (the disk does
// not answer a sync) writes are refused until it has, however long that takes; reads go on.
//
// Memory. Where there is none for a batch's record the batch is abandoned: it never leaves the log
// by itself, and so by (C1) nothing behind its floor is told, until a snapshot has what it did.
// Until then a start would find the state before it.
//
// Failures. What is not synced is kept in memory, and synced when it is much. If a write or sync
// fails, nothing more is written or acknowledged, and what was sent to be written may or may not be
// on the disk. Step() then begins a new segment from the last synced position on, writes there what
// was kept, and syncs it; once that has succeeded the log goes on, and only then. Meanwhile nobody
// enters, and what waits for the log goes on waiting.
//
// The chain of segments (TakeSuperseded() in log_format.h says which files a reader takes). At
// every instant, also between two system calls, and whatever has failed before:
//   (D1) The segments that a reader takes are of ascending positions, and each counts up to where
//        the next one begins: one chain without overlap.
//   (D2) In one epoch the records of a segment end where the next segment begins.
//   (D3) From the newest snapshot on the chain has all that was ever acknowledged; after a power
//        loss, all that was acknowledged as synced.
// (D1) is what TakeSuperseded() does with any names. For the others, LogFiles does the following.
//   (1) A name comes only by the renaming of log-next.tmp, a file that is empty and synced. A name
//       goes only by its removal. Each is one step.
//   (2) A rotation names the next segment in the epoch of the current one, by the position at which
//       the current one ends. That one is not written to any more: (D2). The name is the last of
//       the chain, as no name has a higher epoch.
//   (3) Begin() fills and syncs log-next.tmp before it gets a name, of a new epoch that is higher
//       than that of any name. Up to the renaming the old chain is taken; from then on the old
//       chain up to Begin()'s position, which was synced, and then all that is kept. Nothing is
//       acknowledged in between, so both have what was: (D3). A renaming that fails may have
//       happened: the log is then begun once more, under the same name or in a higher epoch.
//   (4) Superseded segments are removed only when the new name is synced. So a power loss leaves
//       that name, or all that it supersedes.
//   (5) What is dropped for a snapshot ends before the snapshot's position, and is never the last
//       segment of the chain: that is the one that is written to.
// log_check.h reads the chain and says where (D2) does not hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/timed_mutex.h"
#include "durable/log_files.h"
#include "durable/log_format.h"
#include "engine/engine.h"
#include "skep/options.h"

namespace skep::durable {

inline constexpr Version kVersionsUntold = Version{1} << 16;

struct LogStatistics {
  uint64_t position = 0;         // written
  uint64_t synced_position = 0;  // and synced
  uint64_t records = 0;          // appended since the start: batches
  uint64_t changes = 0;          // in them
  uint64_t writes = 0;
  uint64_t syncs = 0;
  uint64_t sync_ns_max = 0;  // the longest
  uint64_t unsynced_ms = 0;  // age of the oldest bytes that are written and not synced
};

// Whether it says that the disk is full.
bool IsLackOfSpace(const Status& status);

class Log {
 public:
  // Writes go to options.directory. Nothing is written before Begin(). `files` and `clock` must
  // outlive it.
  Log(FileSystem& files, Clock& clock, const Options& options);
  ~Log();

  // A keyspace whose engine, `inner`, is asked for its latest version, and whose `written` and
  // `synced` gates are released as it gets complete. They must outlive the log. Before its first
  // Enter. Thread-safe.
  void AddKeyspace(uint32_t keyspace, const Engine& inner, ReleaseGate& written,
                   ReleaseGate& synced);
  // Begins to write at this position, with these records, which the log may have already. If the
  // disk has no space (IsLackOfSpace) the log is in the state of one that has failed: it begins
  // when a step finds some.
  Status Begin(uint64_t position, std::string records);

  // Between the two calls a batch is executed that may write. Thread-safe.
  using Floor = size_t;
  struct Record {
    std::string_view payload;  // empty: nothing was changed
    uint64_t changes = 0;
    Version last = 0;  // the highest version of a change
  };
  // What a batch needs of the log.
  struct Need {
    uint64_t bytes = 0;   // of its record, about
    bool stores = false;  // it does not only delete
  };
  // An error if it may not be executed, as status() or
  //   kIo, ENOSPC  there is not the space for it
  // Cost: a system call or some if what is taken from the disk is used up.
  Result<Floor> Enter(uint32_t keyspace, const Need& need);
  // If it throws std::bad_alloc nothing was appended, and the batch has not left.
  void Leave(uint32_t keyspace, Floor floor, const Record& record);
  // Instead of Leave(), of a batch that may have changed something, up to the version `last`, if
  // there is no memory for its record. Its floor stays, so no version above it is told, until a
  // snapshot that was begun afterwards has what the batch did: the snapshot's writer asks which
  // these floors are, and lets them leave when the snapshot counts.
  void Abandon(Floor floor, Version last) noexcept;
  std::vector<Floor> Abandoned() const;
  void LeaveAbandoned(const std::vector<Floor>& floors);

  // Sees to it that what was appended before is written. Thread-safe; costs a system call if nobody
  // else is writing.
  void Publish();
  // As Engine::WantSync().
  void WantSync(uint32_t keyspace, Version ticket, bool here);

  // Why writes are refused; kOk if they are not. Thread-safe, as what follows.
  Status status() const;
  bool admits() const { return status().ok(); }
  // False: a write or sync has failed and is not mended yet, so no gate is released.
  bool writes() const;
  // False: there was no space when it was last looked for.
  bool has_space() const;
  // Bytes of the file system that the log leaves to others.
  void set_kept_free(uint64_t bytes) { segments_.set_kept_free(bytes); }
  // Called when the log has taken space from the disk or has found none, and when a batch was
  // abandoned, by the thread that has. To be set before the thread starts.
  void set_news_hook(std::function<void()> hook) { news_hook_ = std::move(hook); }
  // With kEverySecond, the age of what is not synced above which writes are refused; 0: any.
  void set_unsynced_ms_max(uint64_t ms) { unsynced_ms_max_.store(ms, std::memory_order_relaxed); }
  LogSync policy() const { return policy_.load(std::memory_order_relaxed); }
  void set_policy(LogSync policy);
  LogStatistics statistics() const;
  // Behind the records of all batches that have left.
  uint64_t End() const;
  // The highest version of a change of the keyspace that has been appended.
  Version LastAppended(uint32_t keyspace) const;

  // One round of the log's own work: what is due. Returns in how many milliseconds it wants to be
  // called again; Wake() calls for it sooner. One thread.
  int Step();
  // Whether somebody waits for a step.
  bool wants_step() const { return wants_sync_.load(std::memory_order_seq_cst); }
  // Calls Step() until it is stopped, on a thread of the log's own.
  void StartThread();
  void StopThread();
  // Segments without anything from the position on are not needed. Done by the next steps, a few
  // each.
  void DropBefore(uint64_t position);

  // Stops the thread, writes and syncs all, and says in the log that it has ended. Nobody may enter
  // any more. Without it, what is not written is lost, as if the process had been killed.
  Status Close();

 private:
  struct Keyspace {
    uint32_t index = 0;
    const Engine* inner = nullptr;
    ReleaseGate* written = nullptr;
    ReleaseGate* synced = nullptr;
    Version last_appended = 0;  // guarded by mutex_
    Version wanted = 0;         // to be synced; guarded by mutex_
    Version progress = 0;       // what the log says is complete; guarded by writing_, as the rest
    Version taken = 0;          // what was complete when something was last taken
    Version synced_to = 0;
  };
  struct Held {
    uint32_t keyspace = 0;
    Version floor = kNoFloor;
    uint64_t bytes = 0;  // that it may append
    bool is_abandoned = false;
  };
  // What was written, or is to be, from a position on.
  struct Chunk {
    uint64_t position = 0;
    std::string bytes;
    uint64_t since_ms = 0;
  };

  static constexpr uint64_t kForDeletesMax = uint64_t{4} << 20;
  static constexpr Version kNoFloor = UINT64_MAX;

  Status Refusal(const Need& need) const SKEP_REQUIRES(mutex_);
  uint64_t RoomFor(const Need& need) const SKEP_REQUIRES(mutex_);
  Floor EnterWith(uint32_t keyspace, uint64_t bytes) SKEP_REQUIRES(mutex_);
  Status TakeSpace(uint64_t bytes);
  void NoteRoom();
  bool IsTooOld() const;
  bool IsSlow() const;
  uint64_t UnsyncedMs() const;
  Keyspace& KeyspaceOf(uint32_t index) const SKEP_REQUIRES(mutex_);
  void TakeAway(Floor floor) SKEP_REQUIRES(mutex_);
  void AppendRecord(std::string_view payload, uint32_t payload_crc) SKEP_REQUIRES(mutex_);
  Chunk Take() SKEP_REQUIRES(writing_);
  void AppendProgress() SKEP_REQUIRES(writing_, mutex_);
  Status WriteTaken() SKEP_REQUIRES(writing_);
  Status WriteChunk(Chunk chunk) SKEP_REQUIRES(writing_);
  void Keep(Chunk chunk) SKEP_REQUIRES(writing_);
  void SetSynced(uint64_t position) SKEP_REQUIRES(writing_);
  void ReleaseWritten() SKEP_REQUIRES(writing_);
  void ReleaseSynced() SKEP_REQUIRES(writing_);
  bool SyncHere(const ReleaseGate& synced, Version ticket);
  Status Sync() SKEP_REQUIRES(syncing_);
  Status Mend() SKEP_REQUIRES(syncing_, writing_, preparing_);
  Status WriteEnd() SKEP_REQUIRES(syncing_, writing_);
  bool HasFailed();
  void AskSync();
  bool LacksWanted();
  bool SyncIfDue();
  Status SeeToSpace();
  bool GiveBackSpace() SKEP_REQUIRES(preparing_);
  void SetFailed(Status status) SKEP_REQUIRES(writing_);
  void Wake();
  void RunThread();

  Clock& clock_;
  LogFiles segments_;
  std::atomic<LogSync> policy_;

  mutable Mutex mutex_;
  std::string pending_ SKEP_GUARDED_BY(mutex_);  // records, ready to be written
  uint64_t end_ SKEP_GUARDED_BY(mutex_) = 0;     // behind them
  std::vector<Held> floors_ SKEP_GUARDED_BY(mutex_);
  std::vector<Floor> free_floors_ SKEP_GUARDED_BY(mutex_);
  // Changed under writing_ and mutex_, so either is enough to read it.
  std::vector<std::unique_ptr<Keyspace>> keyspaces_;
  Status failure_;                        // of a write or sync; likewise
  Status space_ SKEP_GUARDED_BY(mutex_);  // why there is no next segment
  uint64_t drop_before_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t entered_bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // that those who have not left may append
  LogFiles::Room room_ SKEP_GUARDED_BY(mutex_);

  // Taken before writing_. Who holds it syncs, or mends.
  TimedMutex syncing_;
  uint64_t recent_sync_ns_ SKEP_GUARDED_BY(syncing_) = 0;  // a moving average
  std::atomic<bool> sync_is_brief_{true};                  // relaxed: a hint

  // Taken before mutex_. Who holds it writes.
  Mutex writing_;
  std::vector<Chunk> kept_ SKEP_GUARDED_BY(writing_);  // not synced, or not even written
  size_t kept_bytes_ SKEP_GUARDED_BY(writing_) = 0;
  bool has_failed_ SKEP_GUARDED_BY(writing_) = false;
  bool has_ended_ SKEP_GUARDED_BY(writing_) = false;

  // Taken before mutex_, and after the two above. Who holds it takes space from the disk or
  // drops segments.
  TimedMutex preparing_;
  std::function<void()> news_hook_;

  // Set before what it asks for is looked at: Publish().
  std::atomic<bool> wanted_{false};
  std::atomic<bool> wants_sync_{false};

  // Relaxed: for people to read.
  std::atomic<uint64_t> written_position_{0}, synced_position_{0}, records_{0}, changes_{0},
      writes_{0}, syncs_{0}, sync_ns_max_{0};

  std::atomic<uint64_t> unsynced_since_ms_{0};    // relaxed; 0: all that is written is synced
  std::atomic<uint64_t> unsynced_ms_max_{2'000};  // relaxed: an option
  std::atomic<uint64_t> policy_since_ms_{0};      // relaxed: as these two are compared with now
  std::atomic<uint64_t> sync_since_ms_{0};        // relaxed; 0: none is under way
  bool drops_on_ = false;                         // Step's: it has left some to the next one
  uint64_t next_mend_ms_ = 0;                     // Step's
  uint64_t next_check_ms_ = 0;                    // Step's
  Status checked_;                                // Step's

  Mutex thread_mutex_;
  ConditionVariable wake_;
  bool is_woken_ SKEP_GUARDED_BY(thread_mutex_) = false;
  bool is_stopping_ SKEP_GUARDED_BY(thread_mutex_) = false;
  std::thread thread_;
};

}  // namespace skep::durable
