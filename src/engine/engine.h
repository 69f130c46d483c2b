// engine.h: the interface of every index of Skep.
//
// An engine holds one keyspace. It knows no sockets, no clocks and no other engine.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/memory_budget.h"
#include "engine/bulk_load.h"
#include "engine/pair_iterator.h"
#include "engine/release_gate.h"
#include "engine/watches.h"
#include "skep/batch.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep {

// The features of an engine. A request beyond them is refused with kNotSupported, and changes
// nothing.
struct EngineTraits {
  std::string_view name;
  bool ordered = true;       // ranges; without, only the kCount of everything (CountsAll)
  bool atomic = true;        // atomic batches over any keys
  bool snapshots = true;     // OpenSnapshot
  bool functions = true;     // kApply
  bool range_writes = true;  // kDeleteAll, kDeleteRange, kExpireRange
  bool samples = true;       // kSample
  bool walks = false;        // kWalk, which an engine without order has instead of kScan
  // False: only the newest values are kept. There are no snapshots; tickets and versions are all 0.
  bool multi_version = true;
  // False only without versions: under concurrent writes a range is not one state (each key is as
  // it was at some instant of the call, and none is lost or repeated).
  bool whole_ranges = true;
  // False only without versions: an atomic batch that only reads is not one state either, and
  // points may see an atomic batch of which a part is applied so far.
  bool whole_batches = true;
  // False: a request that gives or changes a deadline is refused; kKeepDeadline is not.
  bool expiry = true;
  // False: all values are of kPlainType; a request that asks for or gives another one is refused.
  bool types = false;
  // False: the items of Statistics() are another process's, and 0 if that does not answer.
  bool counts_itself = true;
  // Longer keys or values are refused with kTooLarge.
  size_t key_bytes_max = 64 * 1024;
  size_t value_bytes_max = 64 * 1024 * 1024;
  // Shorter keys or values are refused with kInvalidArgument; bounds of ranges may have any length.
  size_t key_bytes_min = 0;
  size_t value_bytes_min = 0;
  // The longest operand of a kApply.
  size_t operand_bytes_max() const { return std::max(value_bytes_max, size_t{4096}); }
};

struct EngineStatistics {
  uint64_t items = 0;           // keys at the newest version, including those whose deadline has
                                // passed and that Maintain has not reclaimed yet
  uint64_t deadlines = 0;       // those of the items that have a deadline
  uint64_t expired_keys = 0;    // reclaimed since the start, because their deadline had passed
  uint64_t bytes = 0;           // memory charged to the budget
  uint64_t old_versions = 0;    // values or nodes kept only for snapshots
  uint64_t snapshots = 0;       // live snapshots
  Version oldest_snapshot = 0;  // 0: none
  Version version = 0;          // the newest version that `items` counts
};

struct EngineOptions {
  MemoryBudget* budget = nullptr;  // must outlive the engine
  uint64_t snapshot_age_ms_max = 5 * 60 * 1000;
  // How long after its deadline a key may be left before Maintain begins to reclaim it, so that
  // keys that expire about the same time are reclaimed together.
  uint64_t expiry_lag_ms = 0;
  // An engine without versions numbers its writes nevertheless, in an order that agrees with the
  // order of writes of each key: the numbers are the outcome.version of a write that is done, and
  // the tickets, which the gate does not know. For logs.
  bool numbers_writes = false;
  IndexOptions index;
};

// The latest "now" that any batch, snapshot or upkeep has brought: a key that has been seen as
// expired stays so, whatever the clocks do. Thread-safe.
class LatestNow {
 public:
  // A reader at a pinned version calls Advance after pinning, a writer of several keys after
  // locking: then its now agrees with whatever that state has made of an expired key. A writer of
  // one key looks at Latest() once it has locked, and decides again if the key has expired
  // meanwhile.
  //
  // Limit. A write that has looked at Latest() may not yet have reached its readers when another
  // batch brings a later now and sees its key as gone. So two batches that overlap may disagree on
  // a key that expires while both run.
  uint64_t Advance(uint64_t now_ms) {
    // Acquire here, and release by the thread that raises it: a thread that sees a write also sees
    // the now at which it was made.
    uint64_t latest = latest_.load(std::memory_order_acquire);
    while (latest < now_ms &&
           !latest_.compare_exchange_weak(latest, now_ms, std::memory_order_acq_rel)) {
    }
    return std::max(latest, now_ms);
  }
  uint64_t Latest() const { return latest_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<uint64_t> latest_{0};
};

// A batch that an engine has begun and that is executed elsewhere, for example by a server. Thread
// safety: one owner.
class BatchUnderWay {
 public:
  // Gives the batch up, if it was not finished; does not wait.
  virtual ~BatchUnderWay() = default;
  // Does the work of Engine::Finish. Called once.
  virtual Version Finish() = 0;
};

// The result of Engine::Begin.
struct BegunBatch {
  Version ticket = 0;                        // if it has been executed
  std::unique_ptr<BatchUnderWay> under_way;  // null: it has been executed
};

// It has 28 methods: all that stores, servers and logs ask of a keyspace, so that they need not
// know which engine it has. An engine has to write ten of them.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineTraits& traits() const = 0;
  // Names what a directory must agree on: data of one engine fit into another one if this is the
  // same. It is the engine's name, and those of its options that decide which keys and values it
  // takes. EngineInfo::read_option reads those.
  virtual std::string format() const { return std::string(traits().name); }

  // Runs the batch (batch.h says what that means), fills in an outcome for every slot and returns
  // the batch's ticket: the highest version it wrote or read. Replies may leave once the gate has
  // released the ticket. Never waits for a release. Reads wait for nobody; a write may wait for as
  // long as another thread takes to change the nodes it needs, microseconds while that thread runs.
  // Thread-safe.
  //
  // Writes that are executed but not released: points, deletes of ranges, and the conditions and
  // writes of atomic batches act on the newest value. Scans, counts, samples, and atomic batches
  // that only read, may read at the released version; a caller that wants them to see its own
  // earlier writes waits for the gate first.
  //   kNotSupported     traits() says no
  //   kInvalidArgument  a condition or kMove outside an atomic batch, or kWalk inside one; a write
  //                     in a batch at a snapshot; kSeekFloor with kReverse; a deadline above
  //                     kDeadlineMax; a watch that is not watched; a cursor that no walk gives; a
  //                     key or value that is too short
  //   kTooLarge         a key or value; a point when the values of the batch's answers, and those
  //                     it made on the way, take more than Batch::answer_bytes_max already; in an
  //                     atomic batch a scan, too, and also when it has looked at more than
  //                     Batch::work_bytes_max
  //   kSnapshotTooOld, and a function's own errors
  //   kOutOfMemory      it stores, and the budget is over its limit or would be. Memory is counted
  //                     as the engine takes it from the system: a value that fits into memory which
  //                     the engine holds already may be stored until the budget is over. The engine
  //                     first gives up what it can. Deletes are never refused. In `btree` neither
  //                     is a function that makes a value shorter, nor an atomic batch that stores
  //                     by functions alone and leaves fewer bytes than there were; of the parts of
  //                     another one only those that store something are.
  virtual Version Execute(Batch& batch) = 0;

  // Begin and Finish are Execute in two halves, so that a thread may have many batches under way.
  // An engine of this process executes the batch in Begin; an engine elsewhere is sent it.
  //
  // Lifetime. The batch, the bytes that its requests are views of, and the engine must stay as
  //   they are, and nobody may read the outcomes, until Finish has returned or the BegunBatch is
  //   destroyed.
  // Threads. Both are thread-safe. A batch may be finished by another thread than the one that
  //   began it, and batches may be finished in any order.
  // Order. Batches that are under way at the same time are independent of each other, as those
  //   of different threads are, except that operations on one key take effect in the order in
  //   which one thread has begun their batches, unless the engine's header says otherwise. (A
  //   range, or an atomic batch that only reads, may miss the writes of a batch that is not
  //   finished.) A batch that is begun once another one is finished, and its ticket released,
  //   sees its effects.
  // Never finished. A BegunBatch that is destroyed does not wait. Its requests are done, now or
  //   later, or not; each part of an atomic batch as a whole. The batch itself may be used for
  //   something else at once.
  // Memory. If Begin throws std::bad_alloc, nothing is under way, and the requests of the batch
  //   are done or not, as after an Execute that throws.
  virtual BegunBatch Begin(Batch& batch) {
    return {.ticket = Execute(batch), .under_way = nullptr};
  }
  // Returns when the batch has its outcomes; they and the ticket are as of Execute. Called once.
  static Version Finish(BegunBatch begun) {
    return begun.under_way != nullptr ? begun.under_way->Finish() : begun.ticket;
  }

  // Pins the newest released state. It is revoked `snapshot_age_ms_max` after `now_ms`, and earlier
  // if a write needs the memory it holds.
  //   kNotSupported  traits() says no
  virtual Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) = 0;
  // Drops the pin. Also right for a snapshot that was revoked meanwhile.
  virtual void CloseSnapshot(SnapshotRef snapshot) = 0;

  // Begins to watch a key: returns the number that kRequireUnchanged takes until Unwatch is called,
  // and only with this key, in this engine, in this process: any other one is refused. The
  // condition is exact: it fails if and only if since this call a write or a delete of the key has
  // taken effect (also one that stored the same bytes, or changed the deadline), or its deadline
  // has passed. A caller that reads the newest value after this call reads the value that the
  // condition speaks of; one that may read at the released version (see Execute) first waits for
  // the ticket of such a read. May wait as a write may. Thread-safe.
  // Cost: a point read; and as long as any key is watched, a hash of the key for each write. Memory
  // of about 500 bytes and the key, 100 bytes if it is watched already, which the budget counts.
  //   kNotSupported  traits().atomic is false
  //   kTooLarge      the key
  //   kOutOfMemory   the budget has no room for the watch
  virtual Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) = 0;
  // Ends a watch. A number that is not watched any more is allowed.
  virtual void Unwatch(uint64_t watch) { watches_.Remove(watch); }

  // Tells `observer` of every write before it can be seen (watches.h): of a key's that take effect
  // after a Watch of that key which is called after this. It must outlive the engine, which has no
  // other one. False: the engine cannot, since it has no watches, or others write its data.
  // Thread-safe. Cost: what the observer takes, for each write, under its locks.
  virtual bool Observe(WriteObserver* observer) {
    if (!traits().atomic || !traits().counts_itself) return false;
    watches_.Observe(observer);
    return true;
  }

  // Does a bounded piece (well under a millisecond) of the engine's background work: revoking
  // snapshots that are too old, freeing memory, and reclaiming keys whose deadline has passed, the
  // oldest first. Returns true if there is more to do now. Thread-safe; callers run it now and then
  // from any thread.
  virtual bool Maintain(uint64_t now_ms) = 0;

  virtual EngineStatistics Statistics() const = 0;

  using StatsVisitor = std::function<void(std::string_view name, uint64_t value)>;
  // Reports numbers that only this engine has, for people who monitor it: names are in snake_case,
  // and the same ones in every call; values may be estimates. Takes a millisecond or so.
  // Thread-safe.
  virtual void Describe(uint64_t now_ms, const StatsVisitor& visit) const;

  // Checks every invariant of the engine. Returns null, or a literal that names the broken one. For
  // tests; nothing else may run meanwhile.
  virtual const char* Verify() const = 0;

  // Returns a version, or number, such that all up to it are drawn and finished; those drawn after
  // this call are above it. Thread-safe.
  virtual Version Latest() const { return gate_.released(); }
  // Every version drawn from now on is above this one, and time is not before `now_ms`. Nothing
  // else may run meanwhile.
  virtual void StartAfter(Version version, uint64_t now_ms) = 0;
  // A faster way than batches to fill an ordered engine that has no keys yet (bulk_load.h). Null:
  // this engine has none. Nothing else may run meanwhile.
  virtual std::unique_ptr<BulkLoad> OpenBulkLoad() { return nullptr; }
  // Every pair as of one instant that lies within the call (pair_iterator.h).
  //   kUnavailable  the engine can have only one at a time, and it is open
  virtual Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) = 0;

  // Releases every version that is finished, also those of batches that are still executing.
  // Thread-safe. Cost: a load for each thread that ever executed a batch.
  virtual void Release() {}
  // Blocks until the ticket is released. Most often a batch of another thread holds it back that
  // has drawn an earlier version and finishes in a moment: so the call polls for some microseconds
  // before it sleeps, because waking a thread takes longer. Thread-safe.
  void AwaitRelease(Version ticket);

  // The gate that is released when a version survives a power loss, as far as somebody has asked
  // for that with WantSync(). Without a log it is gate().
  virtual ReleaseGate& synced_gate() { return gate_; }
  // Makes synced_gate() reach the ticket: by a sync on this thread if `here` (the caller has
  // nothing better to do) and the disk is quick; otherwise, or if that was not enough, by the log's
  // thread. Thread-safe. Cost: up to a millisecond of another thread's sync that is under way, and
  // one here; or to wake a thread.
  virtual void WantSync([[maybe_unused]] Version ticket, [[maybe_unused]] bool here) { Release(); }
  // Whether gate() waits for the disk.
  virtual bool syncs_to_release() const { return false; }

  // The gate that tickets are released by. An engine that adds nothing to the releases of another
  // one has the other's gate.
  virtual ReleaseGate& gate() { return gate_; }
  virtual const ReleaseGate& gate() const { return gate_; }
  // The version up to which either gate may have told clients of writes, for people to read.
  // Thread-safe.
  Version told() { return std::max(gate().released(), synced_gate().released()); }

 protected:
  // Returns an id that no other snapshot of the process has, so that an engine refuses the snapshot
  // of another one.
  static uint64_t NewSnapshotId();
  // The error of Watch if watches_.Add has no room.
  static std::unexpected<Status> NoRoomToWatch(const MemoryBudget& budget) {
    return Fail(Code::kOutOfMemory, "the memory limit is reached", budget.limit());
  }

  ReleaseGate gate_;
  LatestNow now_;
  Watches watches_;
};

}  // namespace skep
