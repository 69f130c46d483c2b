// The peer libcuckoo: buckets of four under striped locks; the table grows by itself.
#include <libcuckoo/cuckoohash_map.hh>

#include "bench/fixed_bytes.h"

namespace skep::bench {
namespace {

template <size_t kKeyBytes, size_t kValueBytes>
class CuckooIndex {
 public:
  using Access = CuckooIndex&;

  static Result<std::unique_ptr<CuckooIndex>> Open(const PeerSetup&) {
    return std::make_unique<CuckooIndex>();
  }

  Access access() { return *this; }
  std::optional<uint64_t> HeldBytes() const { return std::nullopt; }
  uint64_t size() const { return map_.size(); }

  template <typename Use>
  bool Read(std::string_view key, Use use) const {
    return map_.find_fn(Key::Of(key), [&](const Value& value) { use(value.view()); });
  }
  bool Insert(std::string_view key, std::string_view value) {
    return map_.insert(Key::Of(key), Value::Of(value));
  }
  bool Update(std::string_view key, std::string_view value) {
    return map_.update(Key::Of(key), Value::Of(value));
  }
  bool Delete(std::string_view key) { return map_.erase(Key::Of(key)); }

 private:
  using Key = WordKey<kKeyBytes>;
  using Value = FixedValue<kValueBytes>;

  libcuckoo::cuckoohash_map<Key, Value, WordKeyHash> map_;
};

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenCuckoo(const PeerSetup& setup) {
  return OpenFixed<CuckooIndex>(setup);
}

}  // namespace skep::bench
