// map_index.h: indexes on containers with the interface of std::map or std::unordered_map.
#pragma once

#include <memory>
#include <utility>

#include "bench/fixed_bytes.h"

namespace skep::bench {

// An Index of loop_target.h. `Map` is a container of WordKey and FixedValue.
template <typename Map>
class MapIndex {
  using Key = typename Map::key_type;
  using Value = typename Map::mapped_type;

 public:
  using Access = MapIndex&;

  static Result<std::unique_ptr<MapIndex>> Open(const PeerSetup&) {
    return std::make_unique<MapIndex>();
  }

  template <typename... Arguments>
  explicit MapIndex(Arguments&&... arguments) : map_(std::forward<Arguments>(arguments)...) {}

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
  bool Delete(std::string_view key) {
    if constexpr (requires { map_.erase(Key::Of(key)); }) {
      return map_.erase(Key::Of(key)) == 1;
    } else {
      return map_.unsafe_erase(Key::Of(key)) == 1;  // oneTBB's name for it
    }
  }
  template <typename Use>
  bool Scan(std::string_view key, uint32_t items, Use use) const
    requires requires(const Map& map, Key from) { map.lower_bound(from); }
  {
    for (auto at = map_.lower_bound(Key::Of(key)); items > 0 && at != map_.end(); ++at, --items) {
      const auto bytes = at->first.Bytes();
      use({bytes.data(), bytes.size()}, at->second.view());
    }
    return true;
  }

 private:
  Map map_;
};

}  // namespace skep::bench
