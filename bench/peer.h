// peer.h: what `skep-bench compare` measures Skep against: indexes that Debian packages.
//
// Each is given what helps it: keys and values of fixed size inside its nodes where its types are
// fixed when it is compiled, huge pages, no log, no sync. Answers are read where they lie, a batch
// is a loop, or one transaction where the peer has such.
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
  size_t key_bytes;         // of the largest, if sizes are mixed, as `values` are
  const ValuePool& values;  // must outlive the target
  uint64_t items_max;       // that will ever be there at a time
};

struct PeerInfo {
  std::string_view name;
  std::string_view package;  // Debian's, with the headers it is built from
  bool ordered;              // has scans
  bool threads;              // sessions may be used by several threads at a time
  // Null: this build has it not.
  //   kNotSupported  not for these sizes
  //   kIo            no address space, or no file
  Result<std::unique_ptr<YcsbTarget>> (*open)(const PeerSetup& setup);
};

// Of this build and of others.
std::span<const PeerInfo> AllPeers();
// Null if there is no such peer.
const PeerInfo* FindPeer(std::string_view name);

// Each in a file of its own, which says how it is set up; some builds have not all.
Result<std::unique_ptr<YcsbTarget>> OpenAbsl(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenAbslHash(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenBoost(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenCuckoo(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenLmdb(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenRocksdb(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenTbbHash(const PeerSetup& setup);
Result<std::unique_ptr<YcsbTarget>> OpenTbbMap(const PeerSetup& setup);

}  // namespace skep::bench
