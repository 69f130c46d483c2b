#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/kv_direct/access_model_parts.h"
#include "bench/kv_direct/slab_heap.h"

namespace skep::bench {
namespace {

constexpr int kMovesMax = 500;

class Cuckoo final : public AccessModel {
 public:
  explicit Cuckoo(const AccessModelOptions& options)
      : bucket_bytes_(KeyBucket::kSlots * (options.key_bytes + kValueAddressBytes)),
        seed_(options.seed),
        buckets_(BucketsIn(options, bucket_bytes_)),
        heap_(buckets_.size() * bucket_bytes_, options.memory_bytes, kValueSlabBytesMin),
        random_(options.seed) {}

  std::optional<Accesses> Insert(uint64_t key, PairBytes bytes) override {
    KeySlot item = {.key = key, .value_bytes = bytes.pair - bytes.key, .used = true};
    if (item.value_bytes > 0) {
      const auto at = heap_.Allocate(item.value_bytes);
      if (!at) return std::nullopt;
      item.value_at = *at;
    }
    const auto [first, second] = BucketsOf(key);
    Accesses total = item.ValueRequest() + Touch(first) + Touch(second);
    for (const uint64_t index : {first, second}) {
      if (KeySlot* const free = buckets_[index].Free()) {
        *free = item;
        return total + Touch(index);
      }
    }
    uint64_t index = random_.Chance(1, 2) ? first : second;
    for (int moves = 0; moves < kMovesMax; ++moves) {
      // Takes a slot; its old item goes on to its other bucket.
      std::swap(item, buckets_[index].slots[random_.Below(KeyBucket::kSlots)]);
      total += Touch(index);
      const auto [one, other] = BucketsOf(item.key);
      index = one == index ? other : one;
      total += Touch(index);
      if (KeySlot* const free = buckets_[index].Free()) {
        *free = item;
        return total + Touch(index);
      }
    }
    return std::nullopt;
  }

  Accesses Get(uint64_t key) const override { return Find(key); }
  // The key is in the index: the old value need not be read.
  Accesses Replace(uint64_t key) const override { return Find(key); }

 private:
  std::pair<uint64_t, uint64_t> BucketsOf(uint64_t key) const {
    return {SeededHash(key, seed_) % buckets_.size(), SeededHash(key, ~seed_) % buckets_.size()};
  }
  Accesses Touch(uint64_t index) const { return Request(index * bucket_bytes_, bucket_bytes_); }

  // Counts the buckets that are read, and the value, read or written.
  Accesses Find(uint64_t key) const {
    const auto [first, second] = BucketsOf(key);
    Accesses total = Touch(first);
    const KeySlot* slot = buckets_[first].Find(key);
    if (slot == nullptr) {
      total += Touch(second);
      slot = buckets_[second].Find(key);
    }
    SKEP_CHECK(slot != nullptr);  // every key that is looked for exists
    return total + slot->ValueRequest();
  }

  const uint32_t bucket_bytes_;
  const uint64_t seed_;
  std::vector<KeyBucket> buckets_;
  SlabHeap heap_;
  SeededRandom random_;
};

}  // namespace

std::unique_ptr<AccessModel> MakeCuckoo(const AccessModelOptions& options) {
  return std::make_unique<Cuckoo>(options);
}

}  // namespace skep::bench
