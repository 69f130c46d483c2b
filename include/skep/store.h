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
// Every call may also return, beside the codes it lists:
//   kTooLarge       a key over EngineTraits' key limit (64 KiB) or value over its limit (64 MiB)
//   kNotSupported   the engine of that keyspace cannot do it (no order, no snapshots, ...)
//   kOutOfMemory    calls that store: Options::memory_bytes_max is reached
//   kIo             calls that write, with a directory: the log cannot be written (the disk is
//                   full, or failed); reads go on, and writes when the log can be written again
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skep/batch.h"
#include "skep/client.h"
#include "skep/get_answer.h"
#include "skep/options.h"
#include "skep/scan.h"
#include "skep/scratch.h"
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

// One state of one keyspace, pinned. Reading at it costs nothing extra; as long as it lives the
// store keeps old values of what changes. Its destruction frees them. Movable. Must not outlive its
// store. Thread safety: any thread may read at it; moving and dropping it need one owner.
class Snapshot {
 public:
  Snapshot() = default;
  // Takes over what Engine::OpenSnapshot returned. Users of a Store call TakeSnapshot().
  Snapshot(Engine& engine, SnapshotRef ref) : engine_(&engine), ref_(ref) {}
  Snapshot(Snapshot&& other) noexcept;
  Snapshot& operator=(Snapshot&& other) noexcept;
  ~Snapshot();

  bool valid() const { return engine_ != nullptr; }
  // The snapshot sees every write up to and including this version, and no later one.
  Version version() const { return ref_.version; }
  SnapshotRef ref() const { return ref_; }

 private:
  friend class Store;

  Engine* engine_ = nullptr;
  SnapshotRef ref_;
};

// A key that is watched: Batch::RequireUnchanged(key, watch.id()) holds until somebody writes or
// deletes the key, or it expires. Watch first, then read, then execute the batch that depends on
// what was read. Destruction ends the watch. Movable. Must not outlive its store. A watch costs all
// writers of the keyspace a little as long as it lives. Thread safety: one owner.
class Watch {
 public:
  Watch() = default;
  // Takes over what Engine::Watch returned. Users of a Store call WatchKey().
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

// When a key expires: it is gone from this millisecond of the system's clock on.
using Deadline = std::chrono::sys_time<std::chrono::milliseconds>;
// No deadline; later than any other.
inline constexpr Deadline kNever = Deadline::max();
// The deadline that is `lifetime` from now.
Deadline DeadlineAfter(std::chrono::milliseconds lifetime);

// A pass over a range at one version, in bounded memory; where a keyspace has no snapshots, each
// chunk is of an instant of its own. Views are valid until the next Next(). Thread safety: one
// owner.
class Scanner {
 public:
  // Moves to the next item; false at the end of the range or on an error: status() tells which.
  //   kSnapshotTooOld  the pass took longer than Options::snapshot_age_ms_max
  bool Next();
  std::string_view key() const { return item_.key; }
  std::string_view value() const { return item_.value; }
  Status status() const { return status_; }
  // True if the next item is in memory, so that Next() leaves the views of earlier items valid.
  bool next_is_at_hand() const { return next_ != end_; }

 private:
  friend class Store;
  Scanner() = default;
  Status Fetch();

  Store* store_ = nullptr;
  uint32_t keyspace_ = 0;
  Snapshot own_;  // the snapshot, unless the caller gave one
  SnapshotRef at_;
  std::string lo_, hi_;  // the rest of the range
  bool unbounded_ = true;
  ScanOptions options_;
  uint64_t left_ = 0;  // items still wanted
  Batch batch_;
  ItemRange::Iterator next_, end_;  // of the current chunk
  bool more_ = true;
  Item item_;
  Status status_;
};

// A batch that was begun (Store::Begin). The batch must stay unchanged, and the store must live,
// until Wait() has returned or the future is destroyed. Movable. Thread safety: one owner.
class BatchFuture {
 public:
  BatchFuture(BatchFuture&&) noexcept;
  BatchFuture& operator=(BatchFuture&&) noexcept;
  // Does not wait: the requests of the batch may be done, or not.
  ~BatchFuture();

  // Returns when the batch has its outcomes, and every write in it is visible to every reader. The
  // Status, and the outcomes, are as of Store::Execute. May be called once.
  Status Wait();

 private:
  friend class Store;
  BatchFuture();

  Engine* engine_ = nullptr;                  // null: there is no such keyspace
  Version ticket_ = 0;                        // of a batch executed in this process
  std::unique_ptr<BatchUnderWay> under_way_;  // of a batch sent to a server
};

struct StoreStatistics {
  struct Keyspace {
    uint32_t index = 0;
    std::string engine;
    uint64_t items = 0;            // live keys
    uint64_t bytes = 0;            // everything the engine holds
    uint64_t old_versions = 0;     // values or nodes kept for snapshots
    uint64_t snapshots = 0;        // live snapshots
    uint64_t oldest_snapshot = 0;  // version of the oldest snapshot; 0 if there is none
    Version released = 0;          // the newest version readers can see
    // Numbers of this engine only, by name: docs/commands.md, "What INFO tells of engines".
    std::vector<std::pair<std::string, uint64_t>> details;
  };
  std::vector<Keyspace> keyspaces;  // the keyspaces in use
  uint64_t memory_bytes = 0;
  uint64_t memory_bytes_max = 0;  // 0: no limit
};

// The names Options::engine accepts.
std::vector<std::string> EngineNames();

class Store {
 public:
  // Opens a store in this process's memory: empty, or with what is in options.directory.
  //   kInvalidArgument  no such engine, no keyspaces, or a number that options.h does not allow;
  //                     the directory has the keyspace with another engine, or its log names a
  //                     function that is not registered
  //   kUnavailable      another store, of this process or another, has the directory
  //   kCorrupt, kIo     a file of the directory is damaged, or cannot be read or written
  // If opening fails, *problem (if given) is a line for a person, with the file and where it is
  // damaged.
  static Result<std::unique_ptr<Store>> Open(const Options& options,
                                             std::string* problem = nullptr);
  // Opens a store that is a server's, or a pool of memory, which is one keyspace. Calls wait for
  // the network; a caller with much to do at once begins batches (Begin), or uses many threads.
  //   kUnavailable      there is no server, or it does not speak Skep's packed protocol; the pool's
  //                     servers, or ZooKeeper, do not answer in time
  //   kInvalidArgument  the address, the password, or a number that client.h does not allow
  //   kNotSupported     the server speaks other versions of the protocol only; the client of
  //                     ZooKeeper cannot be loaded
  static Result<std::unique_ptr<Store>> Connect(const ConnectOptions& options);
  // Closes the store. Its directory is then complete and synced. No call may be running.
  ~Store();

  // The calls below act on the given keyspace, by default 0. Thread-safe.
  //   kInvalidArgument  keyspace >= Options::keyspaces: every call on it is refused with this
  // Points. One index descent each. The bool says whether the operation was done: false from Update
  // and Delete if the key is absent, from Insert if it is present, from CompareAndSet if the value
  // differs or is absent. Get returns nullopt if the key is absent.
  Result<std::optional<std::string>> Get(std::string_view key, uint32_t keyspace = 0);
  // Gets many keys at once: the answer for keys[i] is answers[i], with a copy of the value in
  // `values`, whose bytes live until the caller clears it. Cache misses overlap as in a batch, but
  // a key takes 32 bytes here and more than 180 there. Each key is read at an instant of its own
  // between the call and its return, in no order. A key that cannot be answered is kRefused; the
  // Status says why the first of them was, and all others are answered. If there is no memory for
  // a value, std::bad_alloc is thrown and no key is answered. Values that lie outside a leaf or
  // have a deadline are fetched by batches of 4096 keys, which hold them meanwhile.
  //   kInvalidArgument  there are not as many answers as keys
  //   kTooLarge         also: `values` has kAnswerBytesMax bytes (batch.h), or would with this one
  //   kWrongType        the value of a key is not plain bytes
  Status GetMany(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                 Scratch& values, uint32_t keyspace = 0);
  Status Put(std::string_view key, std::string_view value, uint32_t keyspace = 0);
  Result<bool> Insert(std::string_view key, std::string_view value, uint32_t keyspace = 0);
  Result<bool> Update(std::string_view key, std::string_view value, uint32_t keyspace = 0);
  Result<bool> Delete(std::string_view key, uint32_t keyspace = 0);
  Result<bool> CompareAndSet(std::string_view key, std::string_view expected,
                             std::string_view value, uint32_t keyspace = 0);

  // Keys that expire. A deadline that is not after now makes the key gone at once. The memory of
  // expired keys comes back in Maintain().
  //   kInvalidArgument  a deadline after kDeadlineMax (batch.h), some two million years from now
  Status PutUntil(std::string_view key, std::string_view value, Deadline deadline,
                  uint32_t keyspace = 0);
  // Gives a key another deadline, or none with kNever. False if the key is absent.
  Result<bool> Expire(std::string_view key, Deadline deadline, uint32_t keyspace = 0);
  // The deadline of a key: kNever if it has none; nullopt if the key is absent.
  Result<std::optional<Deadline>> DeadlineOf(std::string_view key, uint32_t keyspace = 0);

  // Begins to watch a key, for a transaction that depends on its value: see Watch.
  Result<Watch> WatchKey(std::string_view key, uint32_t keyspace = 0);

  // Runs a batch and returns when every write in it is visible to every reader. Slots report their
  // own refusals; the Status is that of the batch:
  //   kInvalidArgument  no such keyspace
  // An atomic batch that was not applied is no error: Batch::applied() tells.
  Status Execute(Batch& batch, uint32_t keyspace = 0);

  // Begins to run a batch. In a store of this process it has been executed when Begin returns; with
  // a server's store it is on its way, and many batches can be: they are independent of each other,
  // as the batches of threads are, except that operations on one key take effect in the order of
  // the calls.
  BatchFuture Begin(Batch& batch, uint32_t keyspace = 0);

  // A pass over the range at one version: `at`, or now. Takes no time until the first Next(). `at`
  // must be a snapshot of the same keyspace, else the scanner's status is kInvalidArgument.
  Scanner Scan(const Range& range, const ScanOptions& options = {}, uint32_t keyspace = 0,
               const Snapshot* at = nullptr);
  // How many keys the range has, at one version (Scanner); takes time with their number.
  Result<uint64_t> Count(const Range& range, uint32_t keyspace = 0, const Snapshot* at = nullptr);
  // Deletes the first `limit` keys of the range, at one instant. Returns how many there were.
  Result<uint64_t> DeleteRange(const Range& range, uint32_t limit = kNoLimit,
                               uint32_t keyspace = 0);

  // Pins the present state.
  Result<Snapshot> TakeSnapshot(uint32_t keyspace = 0);

  // Writes a snapshot of all keyspaces to the directory, from which the next start is faster, and
  // drops the log before it. Takes time with the number of keys; other calls go on. The store does
  // this by itself when the log has become long.
  //   kNotSupported    the store has no directory
  //   kUnavailable     a snapshot is being written
  //   kIo              the disk failed; the snapshot before is still there
  //   kSnapshotTooOld  there was no memory for what changed meanwhile
  Status SaveSnapshot();

  // Does a bounded piece, well under a millisecond for each keyspace, of the work that can be done
  // beside the calls: freeing keys that expired half a second ago or more, the oldest first, and
  // memory; revoking old snapshots. True if there is more to do now. Nothing else does it: a
  // program whose keys expire must call this now and then, on any thread.
  bool Maintain();

  // Numbers of the store and of its keyspaces. Takes a millisecond or so for each large keyspace.
  StoreStatistics Statistics() const;

 private:
  friend class Scanner;
  friend class StoreForTests;  // gives tests the engines; defined by the test that needs it
  Store();
  bool IsOf(const Snapshot& snapshot, uint32_t keyspace) const;

  std::unique_ptr<client::Remote> remote_;             // null: in this process
  std::unique_ptr<durable::Persistence> persistence_;  // null: in memory only, or a server's
  std::unique_ptr<Keyspaces> keyspaces_;
};

}  // namespace skep
