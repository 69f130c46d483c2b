// store.h: Skep as a library. Open a store, or connect to a server's (client.h), then read and
// write it from any number of threads.
//
//   auto store = skep::Store::Open({});
//   if (!store) return Complain(store.error());
//   (*store)->Put("user:7", "Ada");
//   for (auto scan = (*store)->Scan(skep::Range::From("user:")); scan.Next();)
//     std::cout << scan.key() << " = " << scan.value() << "\n";
//
// Every call is linearizable: it takes effect at one instant between its call and its return, scans
// and atomic batches included. Any byte is legal in keys and values.
//
// Every call may also return, beside what it lists:
//   kTooLarge       a key over EngineTraits' key limit (64 KiB) or value over its limit (64 MiB)
//   kNotSupported   the engine of that keyspace cannot do it (no order, no snapshots, ...)
//   kOutOfMemory    calls that store: Options::memory_bytes_max is reached
//   kIo             calls that write, of a store with a directory: the log cannot be written (the
//                   disk is full, or failed); reads go on, and writes when it can be written again
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skep/batch.h"
#include "skep/client.h"
#include "skep/options.h"
#include "skep/scan.h"
#include "skep/status.h"

namespace skep {

class BatchUnderWay;
class Keyspaces;
class Store;
namespace durable {
class Persistence;
}
namespace client {
class Remote;
}

// One state of one keyspace, pinned. Reading at it costs nothing extra; keeping it makes the store
// keep old values of what changes meanwhile. Dropping it (destruction) frees them. Movable.
// Must not outlive its store. Thread safety: any thread may read at it; moving and dropping need
// one owner.
class Snapshot {
 public:
  Snapshot() = default;
  // Takes over what Engine::OpenSnapshot gave. Users of a Store call TakeSnapshot().
  Snapshot(Engine& engine, SnapshotRef ref) : engine_(&engine), ref_(ref) {}
  Snapshot(Snapshot&& other) noexcept;
  Snapshot& operator=(Snapshot&& other) noexcept;
  ~Snapshot();

  bool valid() const { return engine_ != nullptr; }
  // The version it reads: it sees every write up to and including it, and no later one.
  Version version() const { return ref_.version; }
  SnapshotRef ref() const { return ref_; }

 private:
  friend class Store;

  Engine* engine_ = nullptr;
  SnapshotRef ref_;
};

// A key that is watched: Batch::RequireUnchanged(key, watch.id()) holds until somebody writes or
// deletes the key, or it expires. Watch first, then read, then execute the batch that depends on
// what was read. Dropping it (destruction) ends it. Movable. Must not outlive its store. Costs all
// writers of the keyspace a little as long as it lives. Thread safety: one owner.
class Watch {
 public:
  Watch() = default;
  // Takes over what Engine::Watch gave. Users of a Store call WatchKey().
  Watch(Engine& engine, uint64_t id) : engine_(&engine), id_(id) {}
  Watch(Watch&& other) noexcept;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();

  bool valid() const { return engine_ != nullptr; }
  uint64_t id() const { return id_; }

 private:
  Engine* engine_ = nullptr;
  uint64_t id_ = 0;
};

// When a key expires: from this millisecond of the system's clock on it is gone.
using Deadline = std::chrono::sys_time<std::chrono::milliseconds>;
// Never. Later than any other.
inline constexpr Deadline kNever = Deadline::max();
// So long from now.
Deadline DeadlineAfter(std::chrono::milliseconds lifetime);

// A pass over a range at one version, or where a keyspace has no snapshots each chunk of an instant
// of its own; in bounded memory. Views are valid until the next Next(). Thread safety: one owner.
class Scanner {
 public:
  // Moves to the next item; false at the end of the range or on an error, then status() tells.
  //   kSnapshotTooOld  the pass took longer than Options::snapshot_age_ms_max
  bool Next();
  std::string_view key() const { return item_.key; }
  std::string_view value() const { return item_.value; }
  Status status() const { return status_; }
  // The next item is there, and Next() leaves the views of those before it valid.
  bool next_is_at_hand() const { return next_ != end_; }

 private:
  friend class Store;
  Scanner() = default;
  Status Fetch();

  Store* store_ = nullptr;
  uint32_t keyspace_ = 0;
  Snapshot own_;  // unless the caller gave one
  SnapshotRef at_;
  std::string lo_, hi_;  // what is left of the range
  bool unbounded_ = true;
  ScanOptions options_;
  uint64_t left_ = 0;  // items still wanted
  Batch batch_;
  ItemRange::Iterator next_, end_;  // of the current chunk
  bool more_ = true;
  Item item_;
  Status status_;
};

// A batch that was begun (Store::Begin). The batch must stay as it is, and the store be there,
// until Wait() has returned or this is destroyed. Movable. Thread safety: one owner.
class BatchFuture {
 public:
  BatchFuture(BatchFuture&&) noexcept;
  BatchFuture& operator=(BatchFuture&&) noexcept;
  // Does not wait: what the batch asked for may be done, or not.
  ~BatchFuture();

  // Returns when the batch has its outcomes, and every write in it is visible to every reader. What
  // it returns, and what slots say, is as of Store::Execute. Once.
  Status Wait();

 private:
  friend class Store;
  BatchFuture();

  Engine* engine_ = nullptr;                  // null: there is no such keyspace
  Version ticket_ = 0;                        // of a store in this process: it is executed
  std::unique_ptr<BatchUnderWay> under_way_;  // of a server's
};

struct StoreStatistics {
  struct Keyspace {
    uint32_t index = 0;
    std::string engine;
    uint64_t items = 0;            // live keys
    uint64_t bytes = 0;            // everything the engine holds
    uint64_t old_versions = 0;     // values or nodes kept for snapshots
    uint64_t snapshots = 0;        // live
    uint64_t oldest_snapshot = 0;  // its version; 0 if there is none
    Version released = 0;          // the newest version readers can see
    // What its engine in particular tells, by name: docs/commands.md, "What INFO tells of engines".
    std::vector<std::pair<std::string, uint64_t>> details;
  };
  std::vector<Keyspace> keyspaces;  // those in use
  uint64_t memory_bytes = 0;
  uint64_t memory_bytes_max = 0;  // 0: no limit
};

// The names Options::engine accepts.
std::vector<std::string> EngineNames();

class Store {
 public:
  // Opens a store in this process's memory: empty, or with what is in options.directory.
  //   kInvalidArgument  no such engine, no keyspaces, or a number that options.h does not allow; a
  //                     keyspace has another engine in the directory, or a function is not
  //                     registered that its log has
  //   kUnavailable      another store, of this process or another, has the directory
  //   kCorrupt, kIo     a file of the directory is damaged, or cannot be read or written
  // *problem, if given, is then a line for a person, with the file and where it is damaged.
  static Result<std::unique_ptr<Store>> Open(const Options& options,
                                             std::string* problem = nullptr);
  // Opens a store that is a server's. Calls wait for the network; who has much to do at once
  // begins batches (Begin), or uses many threads.
  //   kUnavailable      there is no server, or it does not speak Skep's packed protocol
  //   kInvalidArgument  the address, the password, or a number that client.h does not allow
  //   kNotSupported     the server speaks other versions of the protocol only
  static Result<std::unique_ptr<Store>> Connect(const ConnectOptions& options);
  // What is in the directory is then complete and synced. Nothing else of the store may run.
  ~Store();

  // The calls below act on this keyspace. Thread-safe; the default is 0.
  //   kInvalidArgument  index >= Options::keyspaces: every call on it is refused with this
  // Points. One index descent each. The bool says whether it happened: false from Get, Update and
  // Delete if the key is absent, from Insert if it is present, from CompareAndSet if the value
  // differs or is absent.
  Result<std::optional<std::string>> Get(std::string_view key, uint32_t keyspace = 0);
  Status Put(std::string_view key, std::string_view value, uint32_t keyspace = 0);
  Result<bool> Insert(std::string_view key, std::string_view value, uint32_t keyspace = 0);
  Result<bool> Update(std::string_view key, std::string_view value, uint32_t keyspace = 0);
  Result<bool> Delete(std::string_view key, uint32_t keyspace = 0);
  Result<bool> CompareAndSet(std::string_view key, std::string_view expected,
                             std::string_view value, uint32_t keyspace = 0);

  // Keys that expire. A deadline that is not after now makes the key gone at once. Their memory
  // comes back in Maintain().
  //   kInvalidArgument  a deadline after kDeadlineMax (batch.h), some two million years from now
  Status PutUntil(std::string_view key, std::string_view value, Deadline deadline,
                  uint32_t keyspace = 0);
  // Gives a key another deadline, or none with kNever. False if the key is absent.
  Result<bool> Expire(std::string_view key, Deadline deadline, uint32_t keyspace = 0);
  // kNever if the key has none; nothing if it is absent.
  Result<std::optional<Deadline>> DeadlineOf(std::string_view key, uint32_t keyspace = 0);

  // Begins to watch a key, for a transaction that is judged by what became of it: see Watch.
  Result<Watch> WatchKey(std::string_view key, uint32_t keyspace = 0);

  // Runs a batch and returns when every write in it is visible to every reader. Slots report their
  // own refusals; the Status is that of the batch:
  //   kInvalidArgument  no such keyspace
  // That an atomic batch was not applied is no error: Batch::applied() tells.
  Status Execute(Batch& batch, uint32_t keyspace = 0);

  // Begins to run a batch. In a store of this process it is executed when this returns; of a
  // server's it is on its way, and many can be: they are independent of each other, as threads'
  // batches are, but for one thing: operations on one key take effect in the order of the calls.
  BatchFuture Begin(Batch& batch, uint32_t keyspace = 0);

  // A pass over the range at one version: `at`, or now. Takes no time until the first Next().
  // `at` must be a snapshot of the same keyspace; another is answered with kInvalidArgument.
  Scanner Scan(const Range& range, const ScanOptions& options = {}, uint32_t keyspace = 0,
               const Snapshot* at = nullptr);
  // How many keys the range has, at one version (Scanner); takes time with their number.
  Result<uint64_t> Count(const Range& range, uint32_t keyspace = 0, const Snapshot* at = nullptr);
  // Deletes the first `limit` keys of the range, at one instant. Returns how many there were.
  Result<uint64_t> DeleteRange(const Range& range, uint32_t limit = kNoLimit,
                               uint32_t keyspace = 0);

  // Pins the state of now.
  Result<Snapshot> TakeSnapshot(uint32_t keyspace = 0);

  // Writes a snapshot of all keyspaces to the directory, from which the next start is faster, and
  // drops the log before it. Takes as long as it takes; other calls go on. The store does it by
  // itself when the log has become long.
  //   kNotSupported    the store has no directory
  //   kUnavailable     a snapshot is being written
  //   kIo              the disk; what was there before is still there
  //   kSnapshotTooOld  there was no memory for what changed meanwhile
  Status SaveSnapshot();

  // A bounded piece, well under a millisecond for each keyspace, of what can be done beside the
  // calls: freeing keys that expired half a second ago or more, the oldest first, and memory;
  // revoking old snapshots. True if there is more to do now. Nobody else does it: a program whose
  // keys expire calls this now and then, on any thread.
  bool Maintain();

  // Takes a millisecond or so for each large keyspace.
  StoreStatistics Statistics() const;

 private:
  friend class Scanner;
  friend class StoreForTests;  // leads to the engines; defined by whoever needs it
  Store();
  bool IsOf(const Snapshot& snapshot, uint32_t keyspace) const;

  std::unique_ptr<client::Remote> remote_;             // null: in this process
  std::unique_ptr<durable::Persistence> persistence_;  // null: in memory only, or a server's
  std::unique_ptr<Keyspaces> keyspaces_;
};

}  // namespace skep
