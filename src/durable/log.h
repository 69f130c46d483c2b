// log.h: the write-ahead log of all keyspaces: what is appended, when it is written and synced, and
// up to which version the gates are released then.
//
// A thread that            calls                                         which holds
//   writes to a keyspace   Enter, executes its batch, Leave              mutex_, for a moment each
//   wants replies          Publish: everything appended is written       writing_
//   waits for the disk     WantSync: everything appended is written and  syncing_, and writing_
//                          synced                                        to write
//   is the log's own       Step: the same, if asked or due; mends        the same
//
// Complete versions. A keyspace's version is complete once every write up to it has been appended.
//   Enter(k)   notes a floor: what the keyspace's Latest() is now. The versions that the batch
//              draws are above it.
//   Leave      appends the batch's record, if it has changed something, and takes the floor away.
//   Publish    reads V = Latest() of each keyspace; then, under mutex_, takes all that was appended
//              and C = min(V, floors).
//   (C1) Every change of a version v <= C is in what was taken, or was taken before. Take the batch
//        that drew v. Latest() says that v was drawn before it answered V >= v, so the batch had
//        entered before that, with a floor below v. Suppose that it had not left at the time of the
//        taking: then its floor, and so C, would be below v. So it had left, and what it appended
//        was taken.
//   (C2) Every version becomes complete: when the last batch leaves, no floor is left; its thread
//        publishes afterwards, and its keyspace's Latest() rises to what was drawn as the engine
//        says (release_gate.h).
// Each write ends with a progress record that has C. Recovery applies the changes that are complete
// by the last such record. So it makes a state that there was, which has every reply that was ever
// sent: the gate of a keyspace is released to C after the write, or with `always` after the sync
// behind it.
//
// Versions that changed nothing make no progress record until they are kVersionsUntold. So no gate
// was ever released by more than that beyond what the log says, and a recovery leaves out as many
// versions (recovery.h).
//
// Publish never waits: a thread that finds another one writing leaves its records to that one,
// which looks at wanted_ again after it has given the lock back. A thread that has written for
// others for some rounds leaves the rest to the log's thread. With `always` Publish only wakes that
// thread.
//
// A thread that has nothing to do before a sync is done does the sync itself, so that no thread has
// to be woken for it, nor the caller after it. While another thread syncs, it waits for syncing_,
// and then syncs for all that was appended meanwhile: so one sync serves many. The log's thread is
// asked where the caller has better things to do, syncs take long, one has failed or goes on for
// more than a millisecond, or a batch has not left; that thread goes on until all is synced that
// was wanted. So (C2) holds for syncs, too.
//
// Space. A batch that has begun must be logged, also on a full disk. So a batch enters only if its
// record, and those of all batches that have entered before it, fit into the space that is taken
// from the disk already. A batch that does not fit takes more, if the log's thread has not done so
// in time; if the disk has none the batch is refused. Writes that store are refused earlier than
// deletes, which have kForDeletesMax bytes, or a quarter of a segment, to themselves. How long a
// record will be is an estimate (durable_engine.cc).
//
// Age. With kEverySecond a power loss costs the bytes that are not synced. If they get too old (the
// disk does not answer a sync) writes are refused until they are synced, however long that takes;
// reads go on.
//
// Memory. A batch for whose record there is no memory is abandoned: it never leaves the log by
// itself, and so by (C1) no version above its floor is complete until a snapshot has the batch's
// changes. Until then a start would find the state before the batch.
//
// Failures. Bytes that are not synced are kept in memory, and synced when they are many. If a write
// or sync fails, nothing more is written or acknowledged, and the bytes of that write may or may
// not be on the disk. Step() then begins a new segment from the last synced position on, writes the
// kept bytes there, and syncs it; only when that has succeeded does the log go on. Meanwhile no
// batch enters, and replies that wait for the log go on waiting.
//
// The chain of segments (TakeSuperseded() in log_format.h says which files a reader takes). At
// every instant, also between two system calls, and whatever has failed before:
//   (D1) The segments that a reader takes are of ascending positions, and each counts up to where
//        the next one begins: one chain without overlap.
//   (D2) In one epoch the records of a segment end where the next segment begins.
//   (D3) From the newest snapshot on the chain has all that was ever acknowledged; after a power
//        loss, all that was acknowledged as synced.
// TakeSuperseded() makes (D1) of any names. For (D2) and (D3), LogFiles does the following.
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
//   (5) A segment that is dropped for a snapshot ends before the snapshot's position, and is never
//       the last of the chain: that is the one that is written to.
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
#include "engine/release_gate.h"
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
  uint64_t sync_ns_max = 0;  // of the longest sync
  uint64_t unsynced_ms = 0;  // age of the oldest bytes that are written and not synced
};

// Whether the status says that the disk is full.
bool IsLackOfSpace(const Status& status);

// It has some 60 methods: batches that enter and leave, writing, syncing and mending decide
// together, under the same locks, up to where the log is complete.
class Log {
 public:
  // Writes go to options.directory. Nothing is written before Begin(). `files` and `clock` must
  // outlive it.
  Log(FileSystem& files, Clock& clock, const Options& options);
  ~Log();

  // Adds a keyspace, before its first Enter. `latest` returns the latest version that was drawn, as
  // Engine::Latest() does, and may be called by any thread; the gates `written` and `synced` are
  // released as versions become complete. All must outlive the log. Thread-safe.
  void AddKeyspace(uint32_t keyspace, std::function<Version()> latest, ReleaseGate& written,
                   ReleaseGate& synced);
  // Begins to write at this position, with these records, which the log may have already. If the
  // disk has no space (IsLackOfSpace) the log is as after a failure: it begins when a step finds
  // space.
  Status Begin(uint64_t position, std::string records);

  // A batch that may write is executed between Enter() and Leave(). Both are thread-safe.
  using Floor = size_t;
  struct Record {
    std::string_view payload;  // empty: nothing was changed
    uint64_t changes = 0;
    Version last = 0;  // the highest version of a change
  };
  // The room that a batch needs in the log.
  struct Need {
    uint64_t bytes = 0;   // of its record, estimated
    bool stores = false;  // some of its writes store
  };
  // Lets a batch in. An error says why it may not be executed: that of status(), or
  //   kIo, ENOSPC  there is no space for its record
  // Cost: some system calls if the space that is taken from the disk is used up.
  Result<Floor> Enter(uint32_t keyspace, const Need& need);
  // Appends the record of a batch and lets the batch out. If it throws std::bad_alloc nothing was
  // appended, and the batch has not left.
  void Leave(uint32_t keyspace, Floor floor, const Record& record);
  // Is called instead of Leave() if there is no memory for the record of a batch that may have
  // changed something, up to the version `last`. Its floor stays, so no version above it becomes
  // complete, until a snapshot that was begun afterwards has the batch's changes: the snapshot's
  // writer asks which floors these are, and lets them leave when the snapshot is complete.
  void Abandon(Floor floor, Version last) noexcept;
  std::vector<Floor> Abandoned() const;
  void LeaveAbandoned(const std::vector<Floor>& floors);

  // Makes sure that all records appended before are written soon, by this thread or by the one that
  // is writing. Thread-safe; costs a system call if no other thread is writing.
  void Publish();
  // As Engine::WantSync().
  void WantSync(uint32_t keyspace, Version ticket, bool here);

  // Why writes are refused; kOk if they are not. This and the functions down to LastAppended() are
  // thread-safe.
  Status status() const;
  bool admits() const { return status().ok(); }
  // False if a write or sync has failed and is not mended yet, so that no gate is released.
  bool writes() const;
  // False if there was no space when the log last looked for some.
  bool has_space() const;
  // Bytes of the file system that the log leaves to others.
  void set_kept_free(uint64_t bytes) { segments_.set_kept_free(bytes); }
  // The hook is called when the log has taken space from the disk or has found none, and when a
  // batch was abandoned, by the thread that did it. To be set before the thread starts.
  void set_news_hook(std::function<void()> hook) { news_hook_ = std::move(hook); }
  // With kEverySecond, the age of bytes that are not synced above which writes are refused; 0: no
  // age is too high.
  void set_unsynced_ms_max(uint64_t ms) { unsynced_ms_max_.store(ms, std::memory_order_relaxed); }
  LogSync policy() const { return policy_.load(std::memory_order_relaxed); }
  void set_policy(LogSync policy);
  LogStatistics statistics() const;
  // The position behind the records of all batches that have left.
  uint64_t End() const;
  // The highest version of a change of the keyspace that has been appended.
  Version LastAppended(uint32_t keyspace) const;

  // Does what is due of the log's own work: writes, syncs, mends, takes space, drops segments.
  // Returns in how many milliseconds it wants to be called again; Wake() asks for a step sooner.
  // For one thread.
  int Step();
  // Whether a thread waits for the sync of a step.
  bool wants_step() const { return wants_sync_.load(std::memory_order_seq_cst); }
  // Calls Step() until it is stopped, on a thread of the log's own.
  void StartThread();
  void StopThread();
  // Says that the log before the position is not needed any more. The next steps remove the
  // segments that end there, a few each.
  void DropBefore(uint64_t position);

  // Stops the thread, writes and syncs all records, and ends the log with a record that says so. No
  // batch may enter any more. A log that is destroyed without it loses the records that are not
  // written, as if the process had been killed.
  Status Close();

 private:
  struct Keyspace {
    uint32_t index = 0;
    std::function<Version()> latest;
    ReleaseGate* written = nullptr;
    ReleaseGate* synced = nullptr;
    Version last_appended = 0;  // guarded by mutex_
    Version wanted = 0;         // to be synced; guarded by mutex_
    // These are guarded by writing_.
    Version progress = 0;   // complete, as the log says
    Version taken = 0;      // complete, when records were last taken
    Version synced_to = 0;  // complete, when the last sync began
  };
  struct Held {
    uint32_t keyspace = 0;
    Version floor = kNoFloor;
    uint64_t bytes = 0;  // that its batch may append
    bool is_abandoned = false;
  };
  // Bytes of the log, from a position on, that were written or are to be.
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
  uint64_t end_ SKEP_GUARDED_BY(mutex_) = 0;     // position behind them
  std::vector<Held> floors_ SKEP_GUARDED_BY(mutex_);
  std::vector<Floor> free_floors_ SKEP_GUARDED_BY(mutex_);
  // Changed under writing_ and mutex_, so either is enough to read it.
  std::vector<std::unique_ptr<Keyspace>> keyspaces_;
  Status failure_;                        // of a write or sync; likewise
  Status space_ SKEP_GUARDED_BY(mutex_);  // why there is no next segment
  uint64_t drop_before_ SKEP_GUARDED_BY(mutex_) = 0;
  uint64_t entered_bytes_ SKEP_GUARDED_BY(mutex_) = 0;  // by batches that have not left
  LogFiles::Room room_ SKEP_GUARDED_BY(mutex_);

  // Held by a thread that syncs or mends. Taken before writing_.
  TimedMutex syncing_;
  uint64_t recent_sync_ns_ SKEP_GUARDED_BY(syncing_) = 0;  // a moving average
  std::atomic<bool> sync_is_brief_{true};                  // relaxed: a hint

  // Held by a thread that writes. Taken before mutex_.
  Mutex writing_;
  std::vector<Chunk> kept_ SKEP_GUARDED_BY(writing_);  // not synced, or not even written
  size_t kept_bytes_ SKEP_GUARDED_BY(writing_) = 0;
  bool has_failed_ SKEP_GUARDED_BY(writing_) = false;
  bool has_ended_ SKEP_GUARDED_BY(writing_) = false;

  // Held by a thread that takes space from the disk or drops segments. Taken before mutex_, and
  // after syncing_ and writing_.
  TimedMutex preparing_;
  std::function<void()> news_hook_;

  // Records are to be written, or synced. A thread that works clears the flag before it looks for
  // the records.
  std::atomic<bool> wanted_{false};
  std::atomic<bool> wants_sync_{false};

  // Relaxed: for people to read.
  std::atomic<uint64_t> written_position_{0}, synced_position_{0}, records_{0}, changes_{0},
      writes_{0}, syncs_{0}, sync_ns_max_{0};

  std::atomic<uint64_t> unsynced_since_ms_{0};    // relaxed; 0: all that is written is synced
  std::atomic<uint64_t> unsynced_ms_max_{2'000};  // relaxed: an option
  std::atomic<uint64_t> policy_since_ms_{0};      // relaxed: as these two are compared with now
  std::atomic<uint64_t> sync_since_ms_{0};        // relaxed; 0: none is under way

  // Owner: the thread that calls Step().
  bool drops_on_ = false;  // the last step has left segments to the next one
  uint64_t next_mend_ms_ = 0;
  uint64_t next_check_ms_ = 0;
  Status checked_;

  Mutex thread_mutex_;
  ConditionVariable wake_;
  bool is_woken_ SKEP_GUARDED_BY(thread_mutex_) = false;
  bool is_stopping_ SKEP_GUARDED_BY(thread_mutex_) = false;
  std::thread thread_;
};

}  // namespace skep::durable
