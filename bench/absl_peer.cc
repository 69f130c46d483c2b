// The peer absl::btree_map: nodes on huge pages, each on cache lines of its own; keys are machine
// words that compare in the order of their bytes.
#include <absl/container/btree_map.h>

#include <functional>
#include <utility>

#include "bench/huge_page_heap.h"
#include "bench/map_index.h"

namespace skep::bench {
namespace {

template <size_t kKeyBytes, size_t kValueBytes>
using AbslMap = absl::btree_map<
    WordKey<kKeyBytes>, FixedValue<kValueBytes>, std::less<WordKey<kKeyBytes>>,
    HugePageAllocator<std::pair<const WordKey<kKeyBytes>, FixedValue<kValueBytes>>>>;

// The heap must outlive the map in it.
struct OwnsHeap {
  std::unique_ptr<HugePageHeap> heap;
};

template <size_t kKeyBytes, size_t kValueBytes>
class AbslIndex : OwnsHeap, public MapIndex<AbslMap<kKeyBytes, kValueBytes>> {
 public:
  static Result<std::unique_ptr<AbslIndex>> Open(const PeerSetup& setup) {
    // This reserves address space only: twice what a tree takes whose nodes all have the fewest
    // items.
    const size_t capacity = setup.items_max * sizeof(typename Map::value_type) * 8;
    auto opened = HugePageHeap::Open(capacity + PageRegion::kHugePageBytes);
    if (!opened) return Fail(opened.error());
    return std::unique_ptr<AbslIndex>(new AbslIndex(std::move(*opened)));
  }

  std::optional<uint64_t> HeldBytes() const { return heap->held_bytes(); }

 private:
  using Map = AbslMap<kKeyBytes, kValueBytes>;

  explicit AbslIndex(std::unique_ptr<HugePageHeap> opened)
      : OwnsHeap{std::move(opened)},
        MapIndex<Map>(std::less<typename Map::key_type>(), typename Map::allocator_type(*heap)) {}
};

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenAbsl(const PeerSetup& setup) {
  return OpenFixed<AbslIndex>(setup);
}

}  // namespace skep::bench
