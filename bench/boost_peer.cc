// boost::unordered_flat_map: open addressing in one array, which grows as it does by itself.
#include <boost/unordered/unordered_flat_map.hpp>

#include "bench/fixed_bytes.h"

namespace skep::bench {
namespace {

template <size_t kKeyWords, size_t kValueWords>
class BoostIndex {
 public:
  using Access = BoostIndex&;

  static Result<std::unique_ptr<BoostIndex>> Open(const PeerSetup&) {
    return std::make_unique<BoostIndex>();
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
  bool Delete(std::string_view key) { return map_.erase(Key::Of(key)) == 1; }

 private:
  using Key = WordKey<kKeyWords>;
  using Value = FixedValue<kValueWords>;

  boost::unordered_flat_map<Key, Value, WordKeyHash> map_;
};

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenBoost(const PeerSetup& setup) {
  return OpenFixed<BoostIndex>(setup);
}

}  // namespace skep::bench
