// How many items a scan copies at once (scan_meter.h).
#include "btree/scan_meter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <span>
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

// Items of which each has another size than the one before.
class VariedCursor {
 public:
  uint32_t TakeWhole(std::span<Item> items, bool keys_only, size_t bytes_max) {
    uint32_t taken = 0;
    for (size_t bytes = 0; taken < items.size() && bytes <= bytes_max; ++taken, ++at_) {
      kept_.push_back(Key(at_));
      items[taken].key = kept_.back();
      kept_.push_back(ValueOf(at_));
      if (!keys_only) items[taken].value = kept_.back();
      bytes += items[taken].key.size() + items[taken].value.size();
    }
    return taken;
  }
  static std::string ValueOf(uint32_t item) { return std::string(item % 7, 'v'); }

 private:
  std::deque<std::string> kept_;
  uint32_t at_ = 0;
};

// Goal: a scan of items of any size gives each, up to its limit of items or bytes or its upper
// bound, and says where it goes on.
// Method: ranges, limits and sizes of each kind, compared with the items' own keys and values.
TEST(ScanMeter, AddsItemsOfAnySize) {
  using Added = ScanMeter::Added;
  struct Case {
    Range range;
    ScanOptions options;
    size_t bytes_max;
    uint32_t expected;
    bool more;
  };
  const std::string keys[] = {Key(0), Key(1), Key(32), Key(45)};
  for (const bool keys_only : {false, true}) {
    const auto options = [&](uint32_t limit) {
      return ScanOptions{.limit = limit, .keys_only = keys_only};
    };
    const Case cases[] = {
        {Range::From(keys[0]), options(5), SIZE_MAX, 5, true},
        {Range::From(keys[0]), options(100), SIZE_MAX, 100, true},
        {Range::Between(keys[0], keys[0]), options(100), SIZE_MAX, 0, false},
        {Range::Between(keys[0], keys[1]), options(100), SIZE_MAX, 1, false},
        {Range::Between(keys[0], keys[2]), options(100), SIZE_MAX, 32, false},
        {Range::Between(keys[0], keys[3]), options(100), SIZE_MAX, 45, false},
        {Range::From(keys[0]), options(100), 0, 1, true},
        // Keys of 8 bytes, values of 0 to 6: three items have 27 bytes or 24.
        {Range::From(keys[0]), options(100), keys_only ? 23u : 26u, 3, true},
    };
    for (const Case& one : cases) {
      SCOPED_TRACE(testing::Message() << keys_only << " " << (&one - cases));
      Batch batch;
      batch.Scan(one.range, one.options);
      BatchWriter out(batch);
      ScanMeter meter(batch.requests()[0], one.bytes_max, kNoLimit, out, 0);
      VariedCursor cursor;
      Added added = Added::kSome;
      while (meter.MayAdd() && added == Added::kSome) added = meter.AddWhole(cursor);
      EXPECT_EQ(added == Added::kLast, !one.more);
      if (added == Added::kSome) meter.StopBefore("unused");
      uint32_t seen = 0;
      for (const Item& item : batch.items(0)) {
        EXPECT_EQ(item.key, Key(seen));
        EXPECT_EQ(item.value, keys_only ? "" : VariedCursor::ValueOf(seen));
        ++seen;
      }
      EXPECT_EQ(seen, one.expected);
      EXPECT_EQ(batch.outcome(0).more, one.more);
      if (one.more) EXPECT_EQ(batch.outcome(0).value, Key(seen - 1) + std::string(1, '\0'));
    }
  }
}

}  // namespace
}  // namespace skep::btree
