// Fuzzes a bucket of any bytes, and changes to it.
//
//   bytes 0..63   the bucket
//   then          operations, two bytes each: which operation, and which item or length
//
// If Verify() finds nothing wrong, then every item can be read, found and copied, and whatever is
// done to the bucket leaves it as sound.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "hash/bucket.h"

namespace skep::hash {
namespace {

constexpr size_t kBucketBytes = sizeof(Bucket);

std::vector<BucketItem> ItemsOf(const Bucket& bucket) {
  std::vector<BucketItem> items;
  bucket.ForEach([&](BucketItem item) { items.push_back(item); });
  return items;
}

void CheckItems(const Bucket& bucket) {
  Bucket copy = {};
  for (const BucketItem item : ItemsOf(bucket)) {
    copy.Add(bucket, item);
    if (!bucket.IsPair(item)) {
      const Bucket::Pointer pointer = bucket.PointerAt(item.slot);
      SKEP_CHECK(bucket.Match(pointer.secondary) & 1u << item.slot);
      continue;
    }
    const Bucket::Pair pair = bucket.PairOf(item);
    std::string_view value;
    SKEP_CHECK(bucket.FindValue(KeyOf(pair.key), &value));
    SKEP_CHECK(bucket.Find(KeyOf(pair.key)).slot <= item.slot);  // the first of equal keys is found
  }
  copy.set_chain(bucket.chain());
  SKEP_CHECK(std::memcmp(&copy, &bucket, kBucketBytes) == 0);
}

void Change(Bucket& bucket, uint8_t what, uint8_t number) {
  const std::vector<BucketItem> items = ItemsOf(bucket);
  const std::string bytes(number % (Bucket::kInlineBytesMax + 1), static_cast<char>(what));
  const std::string_view key = std::string_view(bytes).substr(0, what / 4 % (bytes.size() + 1));
  const std::string_view value = std::string_view(bytes).substr(key.size());
  if (what % 4 == 0) {
    if (Bucket::SlotsFor(bytes.size()) <= bucket.room()) bucket.AddPair(key, value);
  } else if (what % 4 == 1) {
    if (bucket.room() == 0) return;
    bucket.AddPointer({.size_class = static_cast<uint8_t>(number % 5),
                       .secondary = uint32_t{what} * 2,
                       .address = number});
  } else if (!items.empty()) {
    const BucketItem item = items[number % items.size()];
    if (what % 4 == 2) return bucket.Remove(item);
    if (!bucket.IsPair(item)) return;
    const std::string own(bucket.PairOf(item).key);
    if (bucket.Find(KeyOf(own)).slot != item.slot) return;  // an equal key lies before it
    const std::string other(bucket.PairOf(item).value.size(), static_cast<char>(what));
    // As the table writes a value in place.
    std::string_view value_now;
    SKEP_CHECK(bucket.FindValue(KeyOf(own), &value_now) && value_now.size() == other.size());
    CopyBytes(const_cast<char*>(value_now.data()), other.data(), other.size());
  }
}

}  // namespace
}  // namespace skep::hash

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::hash;
  if (size < kBucketBytes) return 0;
  // The bucket is allocated alone, so that AddressSanitizer sees its end.
  const auto bucket = std::make_unique<Bucket>();
  std::memcpy(static_cast<void*>(bucket.get()), data, kBucketBytes);
  if (bucket->Verify() != nullptr) return 0;
  CheckItems(*bucket);
  for (size_t i = kBucketBytes; i + 1 < size; i += 2) {
    Change(*bucket, data[i], data[i + 1]);
    SKEP_CHECK(bucket->Verify() == nullptr);
    CheckItems(*bucket);
  }
  return 0;
}
