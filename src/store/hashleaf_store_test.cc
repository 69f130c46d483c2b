// A keyspace of pairs of one size beside others, as users open it.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "base/temporary_directory_test.h"
#include "skep/store.h"

namespace skep {
namespace {

std::string Key(uint64_t number) {
  std::string key(8, '\0');
  for (size_t i = 0; i < 8; ++i) key[7 - i] = static_cast<char>(number >> 8 * i);
  return key;
}

Options OptionsWith(const std::string& spec) {
  Options options;
  options.keyspace_engines[2] = spec;
  return options;
}

TEST(HashleafStore, HasPairsOfItsSize) {
  auto store = *Store::Open(OptionsWith("hashleaf,key=8,value=4"));
  EXPECT_TRUE(store->Put(Key(7), "1234", 2).ok());
  EXPECT_EQ(*store->Get(Key(7), 2), "1234");
  EXPECT_EQ(store->Put("short", "1234", 2).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->Put("a longer one", "1234", 2).code(), Code::kTooLarge);
  EXPECT_EQ(store->Put(Key(7), "12345", 2).code(), Code::kTooLarge);
  EXPECT_TRUE(store->Put("short", "of any size").ok());  // another keyspace
  EXPECT_EQ(store->PutUntil(Key(7), "1234", DeadlineAfter(std::chrono::hours(1)), 2).code(),
            Code::kNotSupported);
}

// Goal: a pass over a range, and a count, of any size work without snapshots.
// Method: pairs of many chunks, read both ways, with limits and bounds; the tree without old values
//   does the same.
TEST(HashleafStore, LongRanges) {
  constexpr uint64_t kKeys = 20'000;
  Options options = OptionsWith("hashleaf,key=8,value=8,leaf=32768");
  options.btree.multi_version = false;
  const auto store = *Store::Open(options);
  for (const uint32_t keyspace : {0u, 2u}) {
    SCOPED_TRACE(keyspace);
    Batch load;
    for (uint64_t i = 0; i < kKeys; ++i) {
      load.Put(load.scratch().Copy(Key(i)), load.scratch().Copy(Key(3 * i)));
    }
    ASSERT_TRUE(store->Execute(load, keyspace).ok());
    EXPECT_EQ(*store->Count(Range::All(), keyspace), kKeys);
    EXPECT_EQ(*store->Count(Range::Between(Key(100), Key(15'000)), keyspace), 14'900u);
    for (const bool reverse : {false, true}) {
      auto scanner = store->Scan(Range::All(), {.reverse = reverse}, keyspace);
      uint64_t seen = 0;
      for (; scanner.Next(); ++seen) {
        const uint64_t number = reverse ? kKeys - 1 - seen : seen;
        ASSERT_EQ(scanner.key(), Key(number));
        ASSERT_EQ(scanner.value(), Key(3 * number));
      }
      EXPECT_TRUE(scanner.status().ok()) << scanner.status().ToString();
      EXPECT_EQ(seen, kKeys);
    }
    auto some = store->Scan(Range::From(Key(7)), {.limit = 5000, .keys_only = true}, keyspace);
    uint64_t seen = 0;
    while (some.Next()) ASSERT_EQ(some.key(), Key(7 + seen++));
    EXPECT_EQ(seen, 5000u);
    EXPECT_EQ(store->TakeSnapshot(keyspace).error().code(), Code::kNotSupported);
  }
}

TEST(HashleafStore, OptionsThatAreNone) {
  for (const char* const spec :
       {"hashleaf,key=5", "hashleaf,value=0", "hashleaf,leaf=5000", "hashleaf,key", "hashleaf,",
        "hashleaf,size=8", "hashleaf,key=8x", "btree,key=8", "nothing,key=8"}) {
    const auto store = Store::Open(OptionsWith(spec));
    ASSERT_FALSE(store.has_value()) << spec;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument) << spec;
  }
  EXPECT_TRUE(Store::Open({.engine = "hashleaf,key=16,value=16,leaf=65536"}).has_value());
}

// Goal: what was written is there after the store was closed, from the log and from a snapshot that
// was taken while others wrote.
TEST(HashleafStore, IsKept) {
  const TemporaryDirectory directory;
  Options options = OptionsWith("hashleaf,leaf=32768");
  options.directory = directory.path();
  options.log_segment_bytes = uint64_t{1} << 20;
  constexpr uint64_t kKeys = 5000;
  for (const bool saves : {false, true}) {
    const auto store = *Store::Open(options);
    {
      std::jthread writer([&] {
        for (uint64_t i = 0; i < kKeys; ++i) {
          Batch batch;
          const std::string key = Key(i * 977 % kKeys);
          const std::string value = Key(saves ? i + 1 : i);
          batch.Put(key, value);
          ASSERT_TRUE(store->Execute(batch, 2).ok());
          ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
        }
      });
      if (saves) {
        EXPECT_TRUE(store->SaveSnapshot().ok());
      }
    }
    EXPECT_TRUE(*store->Delete(Key(3), 2));
    if (saves) {
      EXPECT_TRUE(store->SaveSnapshot().ok());
    }
  }
  const auto store = *Store::Open(options);
  for (uint64_t i = 0; i < kKeys; ++i) {
    const uint64_t number = i * 977 % kKeys;
    const auto value = *store->Get(Key(number), 2);
    if (number == 3) {
      EXPECT_EQ(value, std::nullopt);
    } else {
      EXPECT_EQ(value, Key(i + 1));
    }
  }
}

TEST(HashleafStore, RefusesOtherSizesThanItsDirectoryHas) {
  const TemporaryDirectory directory;
  Options options = OptionsWith("hashleaf,leaf=32768");
  options.directory = directory.path();
  EXPECT_TRUE((*Store::Open(options))->Put(Key(1), Key(2), 2).ok());
  options.keyspace_engines[2] = "hashleaf,value=16";
  std::string problem;
  const auto store = Store::Open(options, &problem);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
  EXPECT_NE(problem.find("hashleaf,key=8,value=8"), std::string::npos) << problem;
  // The size of leaves may change.
  options.keyspace_engines[2] = "hashleaf,key=8,leaf=65536";
  EXPECT_EQ(*(*Store::Open(options))->Get(Key(1), 2), Key(2));
}

}  // namespace
}  // namespace skep
