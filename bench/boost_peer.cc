// The peer boost::unordered_flat_map: open addressing in one array, which grows by itself.
#include <boost/unordered/unordered_flat_map.hpp>

#include "bench/map_index.h"

namespace skep::bench {
namespace {

template <size_t kKeyBytes, size_t kValueBytes>
using BoostIndex =
    MapIndex<boost::unordered_flat_map<WordKey<kKeyBytes>, FixedValue<kValueBytes>, WordKeyHash>>;

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenBoost(const PeerSetup& setup) {
  return OpenFixed<BoostIndex>(setup);
}

}  // namespace skep::bench
