// How many items a scan copies at once (scan_meter.h).
#include "btree/scan_meter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace skep::btree {
namespace {

constexpr uint32_t kKeyBytes = 8;
constexpr uint32_t kItems = 4000;

std::string Key(uint32_t i) { return "key" + std::to_string(10000 + i); }

// The items of one leaf, which has as many as are asked for; it notes how many that were.
class CountedCursor {
 public:
  explicit CountedCursor(uint32_t value_bytes) : value_bytes_(value_bytes) {}

  uint32_t CopyPlain(uint32_t most, bool keys_only, char* to) {
    const uint32_t count = std::min(most, kItems - at_);
    const uint32_t stride = kKeyBytes + (keys_only ? 0 : value_bytes_);
    std::memset(to, 'v', size_t{count} * stride);
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(to + size_t{i} * stride, Key(at_ + i).data(), kKeyBytes);
    }
    copied.push_back(count);
    at_ += count;
    return count;
  }

  std::vector<uint32_t> copied;

 private:
  const uint32_t value_bytes_;
  uint32_t at_ = 0;
};

// Scans a range from the first item on; returns how many items each step has copied.
std::vector<uint32_t> Copies(const Range& range, const ScanOptions& options, uint32_t value_bytes,
                             size_t bytes_max = SIZE_MAX) {
  Batch batch;
  batch.Scan(range, options);
  BatchWriter out(batch);
  ScanMeter meter(batch.requests()[0], bytes_max, kNoLimit, out, 0);
  CountedCursor cursor(value_bytes);
  const PlainForm form = {.key_bytes = kKeyBytes, .value_bytes = value_bytes};
  while (meter.MayAdd() && meter.AddPlain(form, cursor) == ScanMeter::Added::kSome) {
  }
  return cursor.copied;
}

uint32_t SumOf(const std::vector<uint32_t>& copied) {
  uint32_t sum = 0;
  for (const uint32_t count : copied) sum += count;
  return sum;
}

// Goal: a scan of a range with an upper bound copies at most 32 items that are not in the range, or
// as many as are; one without copies kilobytes at once.
// Method: ranges of each length up to some hundred; what the leaf is asked for is counted.
TEST(ScanMeter, CopiesLittleBeyondARange) {
  for (uint32_t wanted = 1; wanted < 700; wanted += wanted < 100 ? 1 : 37) {
    const std::string end = Key(wanted);
    const auto copied = Copies(Range::Between(Key(0), end), {}, 1);
    EXPECT_GE(SumOf(copied), wanted);
    EXPECT_LE(SumOf(copied), std::max(wanted + 32, 2 * wanted)) << wanted;
    EXPECT_EQ(copied.front(), 32u);
    // Each step may copy what all before it have: their number grows with the logarithm.
    EXPECT_LE(copied.size(), 7u) << wanted;
  }
  EXPECT_EQ(Copies(Range::From(Key(0)), {}, 1).front(), 8192u / (kKeyBytes + 1));
}

// Goal: no step copies more than 8 KiB, nor many more items than may be returned.
TEST(ScanMeter, CopiesNoMoreThanIsWanted) {
  for (const uint32_t count : Copies(Range::From(Key(0)), {}, 100)) EXPECT_LE(count, 8192u / 108);
  EXPECT_EQ(Copies(Range::From(Key(0)), {}, 10'000).front(), 1u);
  EXPECT_EQ(Copies(Range::From(Key(0)), {.limit = 5}, 1), std::vector<uint32_t>{5});
  EXPECT_EQ(Copies(Range::From(Key(0)), {.keys_only = true}, 1'000).front(), 8192u / kKeyBytes);
  // Up to the item that exceeds the bytes.
  EXPECT_EQ(Copies(Range::From(Key(0)), {}, 2, 95), std::vector<uint32_t>{10});
}

}  // namespace
}  // namespace skep::btree
