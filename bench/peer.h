// peer.h: the indexes that `skep-bench compare` measures Skep against, from Debian packages.
//
// Each peer is set up to be fast: keys and values of fixed size inside its nodes where its types
// are fixed at compile time, huge pages, no log, no sync. Answers are read in place; a batch is a
// loop, or one transaction where the peer has transactions.
//
//   name      what                               order  threads  keys and values
//   absl      absl::btree_map                    yes    one      8, 16, 24, 32 bytes, a mixture, 4
//   absl-hash absl::flat_hash_map                no     one      as absl
//   rocksdb   RocksDB, all in one skip list      yes    any      any
//   lmdb      LMDB on tmpfs                      yes    any      any; keys up to 511 bytes
//   tbb-map   tbb::concurrent_map (skip list)    yes    one: its erase is not for more; as absl
//   tbb-hash  tbb::concurrent_hash_map           no     any      as absl
//   cuckoo    libcuckoo::cuckoohash_map          no     any      as absl
//   boost     boost::unordered_flat_map          no     one      as absl
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "bench/record_format.h"
#include "bench/ycsb_target.h"

namespace skep::bench {

struct PeerSetup {
  size_t key_bytes;         // of the largest, if sizes are mixed, as in `values`
  const ValuePool& values;  // must outlive the target
  uint64_t items_max;       // the most that will exist at a time
};

struct PeerInfo {
  std::string_view name;
  std::string_view package;  // the Debian package with its headers
  bool ordered;              // has scans
  bool threads;              // sessions may be used by several threads at a time
  // Null: this build lacks the peer.
  //   kNotSupported  not for these sizes
  //   kIo            no address space, or no file
  Result<std::unique_ptr<YcsbTarget>> (*open)(const PeerSetup& setup);
};

// Returns the peers of this and of other builds.
std::span<const PeerInfo> AllPeers();
// Returns null if there is no such peer.
const PeerInfo* FindPeer(std::string_view name);

// Each is defined in a file of its own, which says how the peer is set up; some builds lack some.
Result<std::unique_ptr<YcsbTarget>> OpenAbsl(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenAbslHash(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenBoost(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenCuckoo(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenLmdb(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenRocksdb(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenTbbHash(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenTbbMap(const PeerSetup& setup);

}  // namespace skep::bench
