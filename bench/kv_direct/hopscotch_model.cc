#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "bench/kv_direct/access_model_parts.h"
#include "bench/kv_direct/slab_heap.h"

namespace skep::bench {
namespace {

constexpr uint64_t kProbedMax = 64;  // buckets ahead that an insert looks at
constexpr uint32_t kLinkBytes = 4;   // the pointer of a bucket to its chain

class Hopscotch final : public AccessModel {
 public:
  explicit Hopscotch(const AccessModelOptions& options)
      : bucket_bytes_(KeyBucket::kSlots * (options.key_bytes + kValueAddressBytes) + kLinkBytes),
        seed_(options.seed),
        buckets_(BucketsIn(options, bucket_bytes_)),
        heap_(buckets_.size() * bucket_bytes_, options.memory_bytes, kValueSlabBytesMin) {}

  std::optional<Accesses> Insert(uint64_t key, PairBytes bytes) override {
    KeySlot item = {.key = key, .value_bytes = bytes.pair - bytes.key, .used = true};
    if (item.value_bytes > 0) {
      const auto at = heap_.Allocate(item.value_bytes);
      if (!at) return std::nullopt;
      item.value_at = *at;
    }
    const uint64_t home = HomeOf(key);
    Accesses total = item.ValueRequest() + Both(home);
    for (const Block& block : ChainOf(home)) total += Touch(block);
    for (const uint64_t index : {home, Ahead(home, 1)}) {
      if (KeySlot* const free = buckets_[index].Free()) {
        *free = item;
        return total + Touch(index);
      }
    }
    if (KeySlot* const free = MakeFree(home, total)) {
      *free = item;
      return total + Touch(Ahead(home, 1));
    }
    return Chain(home, item, total);
  }

  Accesses Get(uint64_t key) const override { return Find(key); }
  // The key is in the index: the old value need not be read.
  Accesses Replace(uint64_t key) const override { return Find(key); }

 private:
  struct Block {  // of a chain
    uint64_t at;
    KeyBucket bucket;
  };

  uint64_t HomeOf(uint64_t key) const { return SeededHash(key, seed_) % buckets_.size(); }
  uint64_t Ahead(uint64_t index, uint64_t distance) const {
    return (index + distance) % buckets_.size();
  }
  Accesses Touch(uint64_t index) const { return Request(index * bucket_bytes_, bucket_bytes_); }
  Accesses Touch(const Block& block) const { return Request(block.at, bucket_bytes_); }
  Accesses Both(uint64_t home) const { return Request(home * bucket_bytes_, 2 * bucket_bytes_); }
  const std::vector<Block>& ChainOf(uint64_t home) const {
    static const std::vector<Block> kNone;
    const auto at = chains_.find(home);
    return at == chains_.end() ? kNone : at->second;
  }

  // Frees a slot of the bucket after `home`: finds a free one further ahead, and moves it towards
  // home, one bucket at a time, by moving items that are in their own bucket and may be in the next
  // one.
  KeySlot* MakeFree(uint64_t home, Accesses& total) {
    uint64_t distance = 2;
    for (; distance <= kProbedMax; ++distance) {
      total += Touch(Ahead(home, distance));
      if (buckets_[Ahead(home, distance)].Free() != nullptr) break;
    }
    if (distance > kProbedMax) return nullptr;
    KeySlot* free = buckets_[Ahead(home, distance)].Free();
    for (; distance > 1; --distance) {
      const uint64_t before = Ahead(home, distance - 1);
      auto& slots = buckets_[before].slots;
      const auto moved = std::ranges::find_if(
          slots, [&](const KeySlot& slot) { return slot.used && HomeOf(slot.key) == before; });
      if (moved == slots.end()) return nullptr;
      *free = *moved;
      total += Touch(Ahead(home, distance));
      free = &*moved;
      free->used = false;
    }
    return free;
  }

  std::optional<Accesses> Chain(uint64_t home, const KeySlot& item, Accesses total) {
    std::vector<Block>& chain = chains_[home];
    for (Block& block : chain) {
      if (KeySlot* const free = block.bucket.Free()) {
        *free = item;
        return total + Touch(block);
      }
    }
    const auto at = heap_.Allocate(bucket_bytes_);
    if (!at) return std::nullopt;
    total += chain.empty() ? Touch(home) : Touch(chain.back());  // writes the link
    chain.push_back({.at = *at, .bucket = {}});
    *chain.back().bucket.Free() = item;
    return total + Touch(chain.back());
  }

  // Counts the buckets that are read, and the value, read or written.
  Accesses Find(uint64_t key) const {
    const uint64_t home = HomeOf(key);
    Accesses total = Both(home);
    for (const uint64_t index : {home, Ahead(home, 1)}) {
      if (const KeySlot* const slot = buckets_[index].Find(key))
        return total + slot->ValueRequest();
    }
    for (const Block& block : ChainOf(home)) {
      total += Touch(block);
      if (const KeySlot* const slot = block.bucket.Find(key)) return total + slot->ValueRequest();
    }
    SKEP_CHECK(false);  // every key that is looked for exists
    __builtin_unreachable();
  }

  const uint32_t bucket_bytes_;
  const uint64_t seed_;
  std::vector<KeyBucket> buckets_;
  std::unordered_map<uint64_t, std::vector<Block>> chains_;  // of the few buckets that have one
  SlabHeap heap_;
};

}  // namespace

std::unique_ptr<AccessModel> MakeHopscotch(const AccessModelOptions& options) {
  return std::make_unique<Hopscotch>(options);
}

}  // namespace skep::bench
