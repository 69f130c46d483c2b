// absl::btree_map: nodes on huge pages, each on cache lines of its own; keys are machine words that
// compare in the order of their bytes.
#include <absl/container/btree_map.h>

#include <functional>
#include <utility>

#include "bench/fixed_bytes.h"
#include "bench/huge_page_heap.h"

namespace skep::bench {
namespace {

template <size_t kKeyWords, size_t kValueWords>
class AbslIndex {
 public:
  using Access = AbslIndex&;

  static Result<std::unique_ptr<AbslIndex>> Open(const PeerSetup& setup) {
    // Only address space: twice what a tree takes whose nodes were all left with the fewest items.
    const size_t capacity = setup.items_max * sizeof(std::pair<Key, Value>) * 8;
    auto heap = HugePageHeap::Open(capacity + PageRegion::kHugePageBytes);
    if (!heap) return Fail(heap.error());
    return std::unique_ptr<AbslIndex>(new AbslIndex(std::move(*heap)));
  }

  Access access() { return *this; }
  std::optional<uint64_t> HeldBytes() const { return heap_->held_bytes(); }
  uint64_t size() const { return map_.size(); }

  template <typename Use>
  bool Read(std::string_view key, Use use) const {
    const auto at = map_.find(Key::Of(key));
    if (at == map_.end()) return false;
    use(at->second.view());
    return true;
  }
  bool Insert(std::string_view key, std::string_view value) {
    return map_.emplace(Key::Of(key), Value::Of(value)).second;
  }
  bool Update(std::string_view key, std::string_view value) {
    const auto at = map_.find(Key::Of(key));
    if (at == map_.end()) return false;
    at->second = Value::Of(value);
    return true;
  }
  bool Delete(std::string_view key) { return map_.erase(Key::Of(key)) == 1; }
  template <typename Use>
  bool Scan(std::string_view key, uint32_t items, Use use) const {
    for (auto at = map_.lower_bound(Key::Of(key)); items > 0 && at != map_.end(); ++at, --items) {
      const auto bytes = at->first.Bytes();
      use({bytes.data(), bytes.size()}, at->second.view());
    }
    return true;
  }

 private:
  using Key = WordKey<kKeyWords>;
  using Value = FixedValue<kValueWords>;
  using Map =
      absl::btree_map<Key, Value, std::less<Key>, HugePageAllocator<std::pair<const Key, Value>>>;

  explicit AbslIndex(std::unique_ptr<HugePageHeap> heap)
      : heap_(std::move(heap)), map_(std::less<Key>(), typename Map::allocator_type(*heap_)) {}

  std::unique_ptr<HugePageHeap> heap_;
  Map map_;
};

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenAbsl(const PeerSetup& setup) {
  return OpenFixed<AbslIndex>(setup);
}

}  // namespace skep::bench
