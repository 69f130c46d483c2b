// Goal: where the process has no memory a call of skep.h returns SKEP_OUT_OF_MEMORY, and a Batcher
//   tells who has submitted; no exception leaves them, nothing is left locked, and with memory back
//   the store goes on.
// Method: every call, on every engine, while the n-th operator new fails, for every n until none
//   does.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/failing_new_test.h"
#include "skep.h"
#include "skep/batcher.h"
#include "skep/store.h"

namespace skep {
namespace {

constexpr size_t kBytes = 8;  // of every key and value: what hashleaf takes

class FailingCall : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string engine = std::string("engine=") + GetParam();
    const char* options[] = {engine.c_str(), nullptr};
    ASSERT_EQ(skep_open(options, &store_), SKEP_OK);
    for (const char* key : {"key00001", "key00002", "key00003"}) {
      ASSERT_EQ(skep_put(store_, 0, key, kBytes, "value001", kBytes), SKEP_OK);
    }
  }
  void TearDown() override { skep_close(store_); }

  // Calls until nothing fails. Without memory it says so; then all goes on.
  void Try(const char* name, const std::function<skep_code()>& call) {
    for (uint64_t n = 1;; ++n) {
      SCOPED_TRACE(testing::Message() << name << ", allocation " << n);
      skep_code code = SKEP_OK;
      bool has_failed = false;
      // A new thread makes the objects that a thread keeps for itself anew.
      std::thread([&] {
        FailingNew::FailAt(n);
        code = call();
        has_failed = FailingNew::has_failed();
        FailingNew::FailAt(0);
      }).join();
      if (code == SKEP_NOT_SUPPORTED) return;
      ASSERT_TRUE(code == SKEP_OK || (has_failed && code == SKEP_OUT_OF_MEMORY)) << code;
      ASSERT_EQ(skep_put(store_, 0, "key00001", kBytes, "value001", kBytes), SKEP_OK);
      void* value = nullptr;
      size_t bytes = 0;
      ASSERT_EQ(skep_get(store_, 0, "key00001", kBytes, &value, &bytes), SKEP_OK);
      ASSERT_EQ(bytes, kBytes);
      skep_free(value);
      if (!has_failed) return;
    }
  }

  skep_store* store_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(All, FailingCall, testing::Values("model", "btree", "hash", "hashleaf"));

TEST_P(FailingCall, OfManyKeysIsRefusedAndLeavesTheStoreAsItWas) {
  Try("get_many", [&] {
    skep_scratch* const scratch = skep_scratch_new();
    const skep_bytes keys[] = {{"key00002", kBytes}, {"absent00", kBytes}};
    skep_bytes values[2];
    const skep_code code = scratch == nullptr ? SKEP_OUT_OF_MEMORY
                                              : skep_get_many(store_, 0, keys, 2, values, scratch);
    skep_scratch_free(scratch);
    return code;
  });
}

TEST_P(FailingCall, IsRefusedAndLeavesTheStoreAsItWas) {
  skep_store* const s = store_;
  const char* const k = "key00002";
  const char* const v = "value002";
  Try("put", [&] { return skep_put(s, 0, k, kBytes, v, kBytes); });
  Try("put_until", [&] { return skep_put_until(s, 0, k, kBytes, v, kBytes, 1ull << 45); });
  Try("insert", [&] { return skep_insert(s, 0, "key00009", kBytes, v, kBytes, nullptr); });
  Try("update", [&] { return skep_update(s, 0, k, kBytes, v, kBytes, nullptr); });
  Try("compare_and_set", [&] {
    return skep_compare_and_set(s, 0, k, kBytes, v, kBytes, "value003", kBytes, nullptr);
  });
  Try("expire", [&] { return skep_expire(s, 0, k, kBytes, 1ull << 46, nullptr); });
  Try("deadline", [&] {
    int present = 0;
    uint64_t deadline_ms = 0;
    return skep_deadline(s, 0, k, kBytes, &present, &deadline_ms);
  });
  Try("get", [&] {
    void* value = nullptr;
    size_t bytes = 0;
    const skep_code code = skep_get(s, 0, k, kBytes, &value, &bytes);
    skep_free(value);
    return code;
  });
  Try("delete", [&] { return skep_delete(s, 0, k, kBytes, nullptr); });
  Try("count", [&] {
    uint64_t count = 0;
    return skep_count(s, 0, nullptr, nullptr, &count);
  });
  Try("scan", [&] {
    skep_scanner* scanner = nullptr;
    skep_code code = skep_scan(s, 0, nullptr, 0, SKEP_NO_LIMIT, nullptr, &scanner);
    skep_item item;
    size_t count = 1;
    while (code == SKEP_OK && count > 0) code = skep_scanner_next(scanner, &item, 1, &count);
    skep_scanner_free(scanner);
    return code;
  });
  Try("take_snapshot", [&] {
    skep_snapshot* snapshot = nullptr;
    const skep_code code = skep_take_snapshot(s, 0, &snapshot);
    skep_snapshot_free(snapshot);
    return code;
  });
  Try("watch_key", [&] {
    skep_watch* watch = nullptr;
    const skep_code code = skep_watch_key(s, 0, k, kBytes, &watch);
    skep_watch_free(watch);
    return code;
  });
  Try("statistics", [&] {
    return skep_statistics(s, [](void*, int64_t, const char*, const char*, uint64_t) {}, nullptr);
  });
  Try("maintain", [&] {
    skep_maintain(s);
    return SKEP_OK;
  });
  Try("find_function", [&] {
    skep_find_function(SKEP_PLAIN, "a function whose name takes memory", SKEP_I8);
    return SKEP_OK;
  });
  for (const uint32_t flags : {0u, SKEP_ATOMIC}) {
    for (const bool begins : {false, true}) {
      Try("batch", [&] {
        skep_batch* const batch = skep_batch_new(flags);
        if (batch == nullptr) return SKEP_OUT_OF_MEMORY;
        skep_batch_put(batch, "key00005", kBytes, v, kBytes, SKEP_RETURN_PREVIOUS);
        skep_batch_get(batch, k, kBytes, 0);
        skep_batch_delete(batch, "key00003", kBytes, 0);
        skep_code code = begins ? skep_begin(s, 0, batch) : skep_execute(s, 0, batch);
        if (begins && code == SKEP_OK) code = skep_wait(batch);
        skep_batch_free(batch);
        return code;
      });
    }
  }
  Try("delete_range", [&] { return skep_delete_range(s, 0, nullptr, SKEP_NO_LIMIT, nullptr); });
}

// Goal: each operation that was submitted has its `done` called once, with an outcome or with why
//   there is none; the thread of the batcher does not end.
TEST(FailingBatcher, TellsEverybody) {
  constexpr int kOperations = 200;
  auto store = *Store::Open({});
  bool has_failed = true;
  for (uint64_t n = 1; has_failed; ++n) {
    SCOPED_TRACE(testing::Message() << "allocation " << n);
    auto batcher = *Batcher::Make(*store, {.wait_us_max = 0});
    FailingNew::FailInOthersAt(n);
    std::atomic<int> told{0};
    std::atomic<int> lies{0};
    for (int i = 0; i < kOperations; ++i) {
      batcher->Put("key" + std::to_string(i), std::string(100, 'v'),
                   [&](const Batch& batch, uint32_t slot) {
                     ++told;
                     const Outcome& outcome = batch.outcome(slot);
                     const bool is_done = outcome.verdict == Verdict::kDone;
                     if (!is_done && outcome.status.code() != Code::kUnavailable) ++lies;
                   });
    }
    batcher->Drain();
    has_failed = FailingNew::has_failed_in_others();
    FailingNew::FailInOthersAt(0);
    EXPECT_EQ(told, kOperations);
    EXPECT_EQ(lies, 0);
    EXPECT_TRUE(store->Put("key", "value").ok());
    if (HasFailure()) return;
    ASSERT_TRUE(store->DeleteRange(Range::All()).has_value());
  }
}

// Goal: a GetMany that throws has answered no key, so that nobody uses a value for whose release it
// has not waited.
// Method: values of 4 KiB, of which the first ones are copied before the n-th allocation fails.
TEST(FailingGetMany, AnswersNoKey) {
  for (const char* const engine : {"btree", "hash", "model"}) {
    SCOPED_TRACE(engine);
    auto store = *Store::Open({.engine = engine});
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back("key" + std::to_string(i));
    for (const std::string& key : keys) ASSERT_TRUE(store->Put(key, std::string(4096, 'v')).ok());
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    uint64_t failures = 0;
    for (bool has_failed = true; has_failed; failures += has_failed) {
      std::vector<GetAnswer> answers(keys.size());
      Scratch values;
      FailingNew::FailAt(failures + 1);
      try {
        EXPECT_TRUE(store->GetMany(views, answers, values).ok());
      } catch (const std::bad_alloc&) {
        for (const GetAnswer& answer : answers) EXPECT_EQ(answer.verdict, Verdict::kPostponed);
      }
      has_failed = FailingNew::has_failed();
      FailingNew::FailAt(0);
      ASSERT_FALSE(HasFailure()) << "allocation " << failures + 1;
    }
    EXPECT_GT(failures, 3u);
  }
}

}  // namespace
}  // namespace skep
