// Goal: a call about one key makes no batch anew; calls inside calls do not meet.
#include "store/single_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/failing_new_test.h"
#include "base/temporary_directory_test.h"
#include "skep/store.h"

namespace skep {
namespace {

// Method: counts the allocations of a call when the thread has made some before.
TEST(SingleCall, AllocatesItsResultAndNothingElse) {
  for (const char* engine : {"btree", "hash"}) {
    SCOPED_TRACE(engine);
    Options options;
    options.engine = engine;
    const auto store = *Store::Open(options);
    const std::string value(100, 'v');
    const auto allocations = [&](auto call) {
      for (int i = 0; i < 3; ++i) call();
      const uint64_t before = FailingNew::allocations();
      call();
      return FailingNew::allocations() - before;
    };
    ASSERT_TRUE(store->Put("key", value).ok());
    EXPECT_EQ(allocations([&] { EXPECT_EQ((*store->Get("key"))->size(), value.size()); }), 1u);
    EXPECT_EQ(allocations([&] { EXPECT_FALSE(store->Get("nobody")->has_value()); }), 0u);
    EXPECT_EQ(allocations([&] { EXPECT_FALSE(*store->Delete("nobody")); }), 0u);
    EXPECT_EQ(allocations([&] { EXPECT_FALSE(*store->Insert("key", value)); }), 0u);
    EXPECT_EQ(allocations([&] { EXPECT_TRUE(store->DeadlineOf("key")->has_value()); }), 0u);
  }
}

// Goal: a Get whose answer no deadline and no type decides makes no batch.
// Method: the thread's batch is in use, so a call that needs one allocates it.
TEST(SingleCall, AGetNeedsNone) {
  for (const char* engine : {"btree", "hash"}) {
    for (const bool is_durable : {false, true}) {
      SCOPED_TRACE(testing::Message() << engine << (is_durable ? ", durable" : ", in memory"));
      const TemporaryDirectory directory;
      Options options;
      options.engine = engine;
      if (is_durable) options.directory = directory.path();
      const auto store = *Store::Open(options);
      ASSERT_TRUE(store->Put("plain", "value").ok());
      ASSERT_TRUE(store->PutUntil("due", "value", DeadlineAfter(std::chrono::hours(1))).ok());
      const auto allocates = [&](const char* key, bool is_present) {
        EXPECT_EQ((*store->Get(key)).has_value(), is_present);
        const SingleCall outer;
        const uint64_t before = FailingNew::allocations();
        EXPECT_EQ((*store->Get(key)).has_value(), is_present);
        return FailingNew::allocations() > before;
      };
      EXPECT_FALSE(allocates("plain", true));
      EXPECT_FALSE(allocates("nobody", false));
      EXPECT_TRUE(allocates("due", true));
    }
  }
}

TEST(SingleCall, InsideAnotherHasABatchOfItsOwn) {
  SingleCall outer;
  outer.batch().Get("outer");
  {
    SingleCall inner;
    EXPECT_NE(&inner.batch(), &outer.batch());
    EXPECT_TRUE(inner.batch().empty());
    inner.batch().Get("inner");
  }
  SingleCall second;
  EXPECT_TRUE(second.batch().empty());
  EXPECT_EQ(outer.batch().requests()[0].key, "outer");
}

// Method: an object of the thread that is made before the thread's first call is destroyed after
//   the batch that the thread has kept.
TEST(SingleCall, WhileItsThreadEnds) {
  struct Last {
    Store* store = nullptr;
    bool* found = nullptr;
    ~Last() {
      if (store != nullptr) *found = store->DeadlineOf("key")->has_value();
    }
  };
  const auto store = *Store::Open({});
  ASSERT_TRUE(store->Put("key", "value").ok());
  bool found = false;
  std::thread([&] {
    static thread_local Last last;
    last = {.store = store.get(), .found = &found};
    EXPECT_TRUE(store->DeadlineOf("key")->has_value());
  }).join();
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace skep
