// The peer absl::flat_hash_map: open addressing in one array with a byte of hash for each slot
// (Swiss table).
#include <absl/container/flat_hash_map.h>

#include "bench/map_index.h"

namespace skep::bench {
namespace {

template <size_t kKeyBytes, size_t kValueBytes>
using AbslHashIndex =
    MapIndex<absl::flat_hash_map<WordKey<kKeyBytes>, FixedValue<kValueBytes>, WordKeyHash>>;

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenAbslHash(const PeerSetup& setup) {
  return OpenFixed<AbslHashIndex>(setup);
}

}  // namespace skep::bench
