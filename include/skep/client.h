// client.h: Skep on another machine, or in another process. Store::Connect (store.h) opens a store
// that is a server's: the same calls, sent over the packed protocol.
//
//   auto store = skep::Store::Connect({.address = "127.0.0.1:6379"});
//   if (!store) return Complain(store.error());
//   (*store)->Put("user:7", "Ada");
//
// A server's store differs from a store in this process:
//   - Every call may also be refused with kUnavailable: there is no connection, or no answer in
//     time. A write therefore has three answers, and each is true: it was done (the call says
//     so); it was not done (refused with any other code; or with kUnavailable and
//     kNothingSent as the detail); it is not known (kUnavailable).
//   - A broken connection is made again, with pauses that grow, and requests without an answer are
//     sent again: reads always, writes if `remembers_writes` (the server then does not do them
//     twice). Whether a write was done is not known if the server was restarted meanwhile, or has
//     forgotten it. A server that refuses the client (its password, its version) refuses calls for
//     as long as it does, and a second longer at most.
//   - Snapshots and watches end with their connection: kSnapshotTooOld, or a condition that is
//     refused.
//   - A key's deadline is a time of the server's clock.
//   - Functions are known to the server by their names: kNotSupported if it has none of that name.
//   - Statistics() has the numbers that the server reports for each keyspace that was used through
//     this store.
#pragma once

#include <cstdint>
#include <string>

namespace skep {

// The detail of a kUnavailable: no server can have done anything, as nothing was sent.
inline constexpr uint64_t kNothingSent = 1;

struct ConnectOptions {
  // "localhost:6379", "127.0.0.1:6379", "[::1]:6379" or "unix:/run/skep.sock". A name is looked up
  // once. Or "pool://HOST:PORT,HOST:PORT/NAME": a pool of memory (docs/pool.md) that the servers of
  // ZooKeeper know by this name; of the options below only `fabric` and `timeout_ms` are for it. Or
  // "ranges://HOST:PORT,HOST:PORT/NAME": ranges at several servers and pools (docs/ranges.md), for
  // which are these two and `password`, which has no comma then.
  std::string address = "127.0.0.1:6379";
  // How a pool's memory is reached: "mem" (this machine's shared memory), "tcp", or "ofi:PROVIDER"
  // of libfabric (docs/pool.md).
  std::string fabric = "mem";
  std::string password;  // the requirepass of the server, or of the servers of ranges
  // The number of connections, over which threads are spread; one of the server's workers serves
  // each.
  uint32_t connections = 1;
  // The time that a call may take, retries included, and even if a part of its answer has come. For
  // a range that the server answers in pieces: the time of each piece; for Store::Connect: the time
  // of each address that the name stands for.
  uint32_t timeout_ms = 10'000;
  // The server keeps replies to writes for a while, so that writes can be sent again.
  bool remembers_writes = true;
  // Small batches are sent as datagrams (UDP), if the server takes them (its option udp) and, for
  // writes, remembers_writes: no connection is read in order, so a lost packet delays one batch
  // only. A lost datagram is sent again, a batch that is too large goes over the connection.
  // Batches that are under way at the same time (Store::Begin) are then in no order, not even on
  // one key.
  bool datagrams = false;
  // The client keeps the links of the leaves of the server's trees, 16 bytes each (about 0.1 bytes
  // a key), and sends each point and scan of an unordered batch with the hint of its leaf, which
  // saves the server the way down the tree. For many keys, and 16 operations a batch and more. The
  // links are learnt and renewed while batches are executed; Statistics() tells of them. Without an
  // effect on keyspaces of other engines than "btree".
  bool fat_root = false;
  // Where the server shares the leaves of keyspace 0 (its option share-leaves): "mem:unix:PATH" on
  // the same machine, or "tcp:HOST:PORT"; empty: nowhere. The client then answers GETs of unordered
  // batches itself, by reading the server's memory, and scans that lie within a leaf. It asks the
  // server for what it cannot answer for certain, and for everything if the memory cannot be
  // reached any more. The answers are the server's: linearizable, and after this store's earlier
  // writes. Implies fat_root for keyspace 0. Store::Connect is refused if nobody shares leaves
  // there. Each of the connections has a reader of its own, which one thread uses at a time.
  // docs/one-sided.md tells more.
  std::string one_sided;
  // Outcome::version is filled in; else it is 0, which saves bytes.
  bool wants_versions = false;
  // Writes return when they survive a power loss of the server, whatever its appendfsync.
  bool syncs_writes = false;
};

}  // namespace skep
