// options.h: how a store is opened.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace skep {

// How the tree arranges the bytes of a node.
//   kHeads  made for the CPU: a search compares 16-bit heads of keys, side by side
//   kPaper  Honeycomb's layout, which a device can read
enum class NodeLayout : uint8_t { kHeads, kPaper };

// Options of the engine "btree"; the others ignore them.
struct BtreeOptions {
  // Size of a full node: a power of two, 2048 to 32768.
  uint32_t node_bytes = 8192;
  // Size of the log of changes that a leaf collects before they are merged into its sorted items; 0
  // merges each change at once. At most a quarter of node_bytes counts, and with kHeads at most
  // 2048, or 24 changes.
  uint32_t log_bytes = 1024;
  NodeLayout layout = NodeLayout::kHeads;
  // False: old values are not kept. Then ranges, and atomic batches that only read, are not one
  // state under concurrent writes, and there are no snapshots: calls that need one (Store::Count,
  // Store::Scan) are refused with kNotSupported.
  bool multi_version = true;
  // True: the tree of keyspace 0 lies in memory that other processes may map, so that they can read
  // its leaves. Its pages have 2 MiB only where the kernel gives these to files of memory.
  bool shared = false;

  friend bool operator==(const BtreeOptions&, const BtreeOptions&) = default;
};

// Options of the engine "hash"; the others ignore them.
struct HashOptions {
  // A key and value of at most this many bytes together lie in a bucket, if it has room: 0 to 50.
  uint32_t inline_bytes_max = 25;
  // Slots of 5 bytes wanted in use in each bucket, which has ten: 1 to 40. A smaller number costs
  // memory, a larger one time.
  uint32_t fill_slots = 6;

  friend bool operator==(const HashOptions&, const HashOptions&) = default;
};

// Options of the engine "hashleaf"; the others ignore them.
struct HashleafOptions {
  // Size of every key, and of every value: 4, 8 or 16. Other sizes are refused.
  uint32_t key_bytes = 8;
  uint32_t value_bytes = 8;
  // Size of the hash table of a full leaf, which should fit into the second-level cache: a power of
  // two, 32 KiB to 4 MiB.
  uint32_t leaf_bytes = 256 * 1024;
  // Number of threads that share one batch of thousands of points: the calling thread, and helpers
  // that belong to the keyspace and sleep between batches. 1 (the calling thread alone) to 256.
  uint32_t threads = 1;

  friend bool operator==(const HashleafOptions&, const HashleafOptions&) = default;
};

// Options of the engine "pool", whose keys and values lie in the memory of other processes
// (docs/pool.md); the others ignore them. They follow the engine's name:
// "pool,zk=10.0.0.1:2181,zk=10.0.0.2:2181,name=cache,fabric=tcp,timeout=2000".
struct PoolOptions {
  // The servers of ZooKeeper, "host:port,host:port"; zk= adds one, whose port is 2181 if none is
  // given.
  std::string zookeeper;
  // The name that the pool's servers were started with.
  std::string name;
  // How the pool's memory is reached, as its servers have it: "mem" (this machine's shared memory),
  // "tcp", or "ofi:PROVIDER" of libfabric.
  std::string fabric = "mem";
  // How long a request may take, retries included.
  uint32_t timeout_ms = 10'000;
  // The requirepass of the servers that ranges are at; a pool itself has none.
  std::string password;
};

// The options of every engine; each engine reads its own and ignores the others.
struct IndexOptions {
  BtreeOptions btree;
  HashOptions hash;
  HashleafOptions hashleaf;
  PoolOptions pool;
};

// When the log of a store that is kept in a directory is synced. A write that was answered survives
// the end of the process in any case.
//   kNo           only when much was written since: a power loss may cost seconds
//   kEverySecond  a power loss costs at most the last second
//   kAlways       before a write is answered, or a read of it: a power loss costs nothing
enum class LogSync : uint8_t { kNo, kEverySecond, kAlways };

struct Options {
  // The index of every keyspace; EngineNames() (store.h) lists those of this build. "hashleaf" may
  // be followed by values that replace those of `hashleaf` below:
  // "hashleaf,key=4,value=16,leaf=262144"; "pool" is followed by the values of PoolOptions.
  std::string engine = "btree";
  // Keyspaces are numbered 0 .. keyspaces-1; one that was never used costs nothing.
  uint32_t keyspaces = 16;
  // The index of single keyspaces, by their number, instead of `engine`.
  std::map<uint32_t, std::string> keyspace_engines;
  // Bytes the store may hold, its indexes included; 0 is no limit. Above the limit, writes that
  // store are refused with kOutOfMemory; reads and deletes go on.
  uint64_t memory_bytes_max = 0;
  // A snapshot older than this is revoked: reads at it answer kSnapshotTooOld.
  uint64_t snapshot_age_ms_max = 5 * 60 * 1000;
  // Bytes from which a hash, set, list or sorted set no longer lies in one value but in segments of
  // its own (src/collections); in an engine with types and order. 0: never; a collection then has
  // at most 1 MiB.
  size_t collection_value_bytes = size_t{8} << 10;
  // The directory that keeps the data: a log of all writes, and snapshots. Made if it does not
  // exist. Empty: the data are in memory only.
  std::string directory;
  LogSync log_sync = LogSync::kEverySecond;
  // Size of one file of the log; two are taken from the disk at once.
  uint64_t log_segment_bytes = uint64_t{64} << 20;
  // Number of threads that read the directory when the store is opened; 0: one a core.
  uint32_t recovery_threads = 0;
  BtreeOptions btree;
  HashOptions hash;
  HashleafOptions hashleaf;
};

}  // namespace skep
