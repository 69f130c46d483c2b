// The peers of oneTBB: concurrent_hash_map, chains under a lock for each bucket and item, and
// concurrent_map, a skip list. Nodes come from malloc.
#include <tbb/concurrent_hash_map.h>
#include <tbb/concurrent_map.h>

#include <functional>
#include <utility>

#include "bench/map_index.h"

namespace skep::bench {
namespace {

template <size_t kKeyBytes, size_t kValueBytes>
class HashIndex {
 public:
  using Access = HashIndex&;

  static Result<std::unique_ptr<HashIndex>> Open(const PeerSetup&) {
    return std::make_unique<HashIndex>();
  }

  Access access() { return *this; }
  std::optional<uint64_t> HeldBytes() const { return std::nullopt; }
  uint64_t size() const { return map_.size(); }

  template <typename Use>
  bool Read(std::string_view key, Use use) const {
    typename Map::const_accessor at;
    if (!map_.find(at, Key::Of(key))) return false;
    use(at->second.view());
    return true;
  }
  bool Insert(std::string_view key, std::string_view value) {
    return map_.insert({Key::Of(key), Value::Of(value)});
  }
  bool Update(std::string_view key, std::string_view value) {
    typename Map::accessor at;
    if (!map_.find(at, Key::Of(key))) return false;
    at->second = Value::Of(value);
    return true;
  }
  bool Delete(std::string_view key) { return map_.erase(Key::Of(key)); }

 private:
  using Key = WordKey<kKeyBytes>;
  using Value = FixedValue<kValueBytes>;
  struct HashCompare {
    size_t hash(const Key& key) const { return WordKeyHash()(key); }
    bool equal(const Key& a, const Key& b) const { return a == b; }
  };
  using Map = tbb::concurrent_hash_map<Key, Value, HashCompare,
                                       std::allocator<std::pair<const Key, Value>>>;

  Map map_;
};

template <size_t kKeyBytes, size_t kValueBytes>
using SkipListIndex = MapIndex<tbb::concurrent_map<
    WordKey<kKeyBytes>, FixedValue<kValueBytes>, std::less<WordKey<kKeyBytes>>,
    std::allocator<std::pair<const WordKey<kKeyBytes>, FixedValue<kValueBytes>>>>>;

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenTbbHash(const PeerSetup& setup) {
  return OpenFixed<HashIndex>(setup);
}

Result<std::unique_ptr<YcsbTarget>> OpenTbbMap(const PeerSetup& setup) {
  return OpenFixed<SkipListIndex>(setup);
}

}  // namespace skep::bench
