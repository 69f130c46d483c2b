// oneTBB's containers: concurrent_hash_map, chains under a lock for each bucket and item, and
// concurrent_map, a skip list. Nodes come from malloc.
#include <tbb/concurrent_hash_map.h>
#include <tbb/concurrent_map.h>

#include <functional>
#include <utility>

#include "bench/fixed_bytes.h"

namespace skep::bench {
namespace {

template <size_t kKeyWords, size_t kValueWords>
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
  using Key = WordKey<kKeyWords>;
  using Value = FixedValue<kValueWords>;
  struct HashCompare {
    size_t hash(const Key& key) const { return WordKeyHash()(key); }
    bool equal(const Key& a, const Key& b) const { return a == b; }
  };
  using Map = tbb::concurrent_hash_map<Key, Value, HashCompare,
                                       std::allocator<std::pair<const Key, Value>>>;

  Map map_;
};

template <size_t kKeyWords, size_t kValueWords>
class SkipListIndex {
 public:
  using Access = SkipListIndex&;

  static Result<std::unique_ptr<SkipListIndex>> Open(const PeerSetup&) {
    return std::make_unique<SkipListIndex>();
  }

  Access access() { return *this; }
  std::optional<uint64_t> HeldBytes() const { return std::nullopt; }
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
  bool Delete(std::string_view key) { return map_.unsafe_erase(Key::Of(key)) == 1; }
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

  tbb::concurrent_map<Key, Value, std::less<Key>, std::allocator<std::pair<const Key, Value>>> map_;
};

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenTbbHash(const PeerSetup& setup) {
  return OpenFixed<HashIndex>(setup);
}

Result<std::unique_ptr<YcsbTarget>> OpenTbbMap(const PeerSetup& setup) {
  return OpenFixed<SkipListIndex>(setup);
}

}  // namespace skep::bench
