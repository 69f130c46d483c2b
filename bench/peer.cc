#include "bench/peer.h"

#include <algorithm>
#include <iterator>

namespace skep::bench {
namespace {

// SKEP_OPEN_... come from CMakeLists.txt: the function, or nullptr.
constexpr PeerInfo kPeers[] = {
    {"absl", "libabsl-dev", /*ordered=*/true, /*threads=*/false, OpenAbsl},
    {"absl-hash", "libabsl-dev", /*ordered=*/false, /*threads=*/false, OpenAbslHash},
    {"rocksdb", "librocksdb-dev", /*ordered=*/true, /*threads=*/true, SKEP_OPEN_ROCKSDB},
    {"lmdb", "liblmdb-dev", /*ordered=*/true, /*threads=*/true, SKEP_OPEN_LMDB},
    {"tbb-map", "libtbb-dev", /*ordered=*/true, /*threads=*/false, SKEP_OPEN_TBB_MAP},
    {"tbb-hash", "libtbb-dev", /*ordered=*/false, /*threads=*/true, SKEP_OPEN_TBB_HASH},
    {"cuckoo", "libcuckoo-dev", /*ordered=*/false, /*threads=*/true, SKEP_OPEN_CUCKOO},
    {"boost", "libboost1.81-dev", /*ordered=*/false, /*threads=*/false, SKEP_OPEN_BOOST},
};

}  // namespace

std::span<const PeerInfo> AllPeers() { return kPeers; }

const PeerInfo* FindPeer(std::string_view name) {
  const auto found = std::ranges::find(kPeers, name, &PeerInfo::name);
  return found == std::end(kPeers) ? nullptr : found;
}

}  // namespace skep::bench
