// The items of scans: how they are added and how they are read.
#include "skep/items.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/batch_writer.h"
#include "skep/batch.h"

namespace skep {
namespace {

struct Owned {
  std::string key;
  std::string value;
  friend bool operator==(const Owned&, const Owned&) = default;
};

std::vector<Owned> Read(const ItemRange& items) {
  std::vector<Owned> read;
  for (const Item& item : items) {
    read.push_back({.key = std::string(item.key), .value = std::string(item.value)});
  }
  return read;
}

std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

// Adds `count` items of these sizes at once, like an engine that finds them side by side.
void AddSpan(Random& random, uint32_t slot, ItemSpan span, BatchWriter& out,
             std::vector<Owned>* model) {
  // Asks for more room than it uses in the end.
  char* const at = out.scratch().Room((span.count + 3) * span.stride());
  std::ranges::generate_n(at, static_cast<ptrdiff_t>(span.count * span.stride()),
                          [&] { return static_cast<char>(random.Next()); });
  span.at = at;
  for (uint32_t i = 0; i < span.count; ++i) {
    model->push_back({.key = std::string(span[i].key), .value = std::string(span[i].value)});
  }
  out.AddItems(slot, span);
}

// Goal: each scan of a batch is read as it was added, from its first item on or from any other.
// Method: scans of random items, added one by one or many at once, of few sizes, the empty ones
// among them, so that some continue the span before them and some do not; between them the scratch
// is used for other things.
TEST(Items, AreReadAsTheyWereAdded) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  Batch batch;
  for (int round = 0; round < 200; ++round) {
    batch.Clear();
    const auto scans = static_cast<uint32_t>(1 + random.Below(8));
    for (uint32_t slot = 0; slot < scans; ++slot) batch.Scan(Range::All());
    BatchWriter out(batch);
    std::vector<std::vector<Owned>> model(scans);
    for (uint32_t slot = 0; slot < scans; ++slot) {
      out.BeginItems(slot);
      for (uint64_t steps = random.Below(30); steps > 0; --steps) {
        const size_t key_bytes = 8 * random.Below(3);
        const size_t value_bytes = random.Chance(1, 50) ? 5000 : random.Below(2);
        if (random.Chance(1, 10)) out.scratch().Allocate(random.Below(3));
        if (random.Chance(1, 3)) {
          AddSpan(random, slot,
                  {.count = static_cast<uint32_t>(1 + random.Below(20)),
                   .key_bytes = static_cast<uint32_t>(key_bytes),
                   .value_bytes = static_cast<uint32_t>(value_bytes)},
                  out, &model[slot]);
          continue;
        }
        model[slot].push_back(
            {.key = RandomBytes(random, key_bytes), .value = RandomBytes(random, value_bytes)});
        const Owned& added = model[slot].back();
        const Item copy = out.AddItem(slot, {.key = added.key, .value = added.value});
        ASSERT_EQ(copy.key, added.key);
        ASSERT_EQ(copy.value, added.value);
      }
    }
    for (uint32_t slot = 0; slot < scans; ++slot) {
      const ItemRange items = batch.items(slot);
      ASSERT_EQ(batch.outcome(slot).item_count, model[slot].size());
      ASSERT_EQ(items.size(), model[slot].size());
      ASSERT_EQ(items.empty(), model[slot].empty());
      ASSERT_EQ(Read(items), model[slot]);
      if (!items.empty()) {
        ASSERT_EQ(items.front().key, model[slot].front().key);
      }
      const size_t without = random.Below(model[slot].size() + 2);
      const size_t first = std::min(without, model[slot].size());
      ASSERT_EQ(
          Read(items.Without(without)),
          std::vector(model[slot].begin() + static_cast<ptrdiff_t>(first), model[slot].end()));
    }
  }
}

// Goal: items of one size are one span, however they were added, which makes scans cheap.
TEST(Items, OfOneSizeLieSideBySide) {
  Batch batch;
  batch.Scan(Range::All());
  BatchWriter out(batch);
  out.BeginItems(0);
  const char* next = nullptr;
  for (int i = 0; i < 1000; ++i) {
    const Item item = out.AddItem(0, {.key = "0123456789abcdef", .value = "value"});
    // A new block of the scratch begins a new span.
    if (i > 0 && batch.answer_bytes() < Scratch::kBlockBytes) {
      ASSERT_EQ(item.key.data(), next);
    }
    next = item.value.data() + item.value.size();
  }
  EXPECT_EQ(batch.items(0).size(), 1000u);
}

static_assert(std::forward_iterator<ItemRange::Iterator>);

}  // namespace
}  // namespace skep
