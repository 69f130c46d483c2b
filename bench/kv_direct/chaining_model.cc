#include <deque>
#include <vector>

#include "base/check.h"
#include "bench/kv_direct/access_model_parts.h"
#include "bench/kv_direct/slab_heap.h"

namespace skep::bench {
namespace {

constexpr uint32_t kSlots = 10;
constexpr uint32_t kSlotBytes = 5;
constexpr uint32_t kBucketBytes = 64;
constexpr uint32_t kSlabBytesMin = 32;
constexpr uint32_t kRecordHeaderBytes = 2;
constexpr uint64_t kSecondaryHashes = 512;

class Chaining final : public AccessModel {
 public:
  explicit Chaining(const AccessModelOptions& options)
      : options_(options),
        index_(BucketsIn(options, kBucketBytes)),
        heap_(index_.size() * kBucketBytes, options.memory_bytes, kSlabBytesMin) {
    for (size_t i = 0; i < index_.size(); ++i) index_[i].at = i * kBucketBytes;
  }

  std::optional<Accesses> Insert(uint64_t key, PairBytes bytes) override {
    const uint64_t hash = HashOf(key);
    Item item = {.key = key, .secondary = SecondaryOf(hash)};
    Accesses total;
    if (bytes.pair <= options_.inline_bytes_max) {
      item.slots = (bytes.pair + kSlotBytes - 1) / kSlotBytes;
    } else {
      item.record_bytes = bytes.pair + kRecordHeaderBytes;
      const auto at = heap_.Allocate(item.record_bytes);
      if (!at) return std::nullopt;
      item.record_at = *at;
      total += Request(item.record_at, item.record_bytes);
    }
    Bucket* room = nullptr;
    Bucket* last = nullptr;
    for (Bucket* bucket = &HeadOf(hash); bucket != nullptr; bucket = bucket->next) {
      total += Read(*bucket, key, item.secondary);
      if (room == nullptr && bucket->used + item.slots <= kSlots) room = bucket;
      last = bucket;
    }
    if (room == nullptr) {
      const auto at = heap_.Allocate(kBucketBytes);
      if (!at) return std::nullopt;
      room = last->next = &chained_.emplace_back(Bucket{.at = *at});
      total += Request(last->at, kBucketBytes);
    }
    room->items[room->count++] = item;
    room->used += item.slots;
    return total + Request(room->at, kBucketBytes);
  }

  Accesses Get(uint64_t key) const override { return Find(key).reads; }

  Accesses Replace(uint64_t key) const override {
    const Found found = Find(key);
    return found.reads + (found.item->record_bytes == 0
                              ? Request(found.bucket->at, kBucketBytes)
                              : Request(found.item->record_at, found.item->record_bytes));
  }

 private:
  struct Item {
    uint64_t key;
    uint64_t record_at = 0;
    uint32_t record_bytes = 0;  // 0: the pair is inline
    uint32_t secondary;
    uint32_t slots = 1;
  };
  struct Bucket {
    uint64_t at = 0;
    Bucket* next = nullptr;
    uint32_t count = 0;  // of items
    uint32_t used = 0;   // number of slots in use
    std::array<Item, kSlots> items{};
  };
  struct Found {
    const Bucket* bucket;
    const Item* item;
    Accesses reads;
  };

  uint64_t HashOf(uint64_t key) const { return SeededHash(key, options_.seed); }
  static uint32_t SecondaryOf(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 32) % kSecondaryHashes;
  }
  Bucket& HeadOf(uint64_t hash) { return index_[(hash & UINT32_MAX) % index_.size()]; }

  // Reads the bucket, and the records whose secondary hash is the key's: no record before the key's
  // own can be ruled out.
  static Accesses Read(const Bucket& bucket, uint64_t key, uint32_t secondary) {
    Accesses total = Request(bucket.at, kBucketBytes);
    for (uint32_t i = 0; i < bucket.count; ++i) {
      const Item& item = bucket.items[i];
      if (item.record_bytes > 0 && item.secondary == secondary) {
        total += Request(item.record_at, item.record_bytes);
      }
      if (item.key == key) break;
    }
    return total;
  }

  Found Find(uint64_t key) const {
    const uint64_t hash = HashOf(key);
    Accesses reads;
    const Bucket* bucket = &index_[(hash & UINT32_MAX) % index_.size()];
    for (; bucket != nullptr; bucket = bucket->next) {
      reads += Read(*bucket, key, SecondaryOf(hash));
      for (uint32_t i = 0; i < bucket->count; ++i) {
        if (bucket->items[i].key == key) return {bucket, &bucket->items[i], reads};
      }
    }
    SKEP_CHECK(bucket != nullptr);  // every key that is looked for exists
    __builtin_unreachable();
  }

  const AccessModelOptions options_;
  std::vector<Bucket> index_;
  std::deque<Bucket> chained_;
  SlabHeap heap_;
};

}  // namespace

std::unique_ptr<AccessModel> MakeChaining(const AccessModelOptions& options) {
  return std::make_unique<Chaining>(options);
}

}  // namespace skep::bench
