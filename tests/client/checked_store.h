// checked_store.h: reads and writes of a server's store that are compared with a model, for tests
// of clients that know or read the server's leaves.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "skep/store.h"

namespace skep {

// A number of a keyspace's Describe, as the store tells it.
inline uint64_t Detail(Store& store, std::string_view wanted, uint32_t keyspace = 0) {
  for (const auto& one : store.Statistics().keyspaces) {
    if (one.index != keyspace) continue;
    for (const auto& [name, value] : one.details) {
      if (name == wanted) return value;
    }
  }
  return UINT64_MAX;
}

inline std::string KeyOf(uint64_t number) {
  return "user:" + std::to_string(1'000'000 + number * 7);
}

// Writes keys, and reads and scans them, in batches of many; all answers are compared with a model.
class Checked {
 public:
  explicit Checked(Store& store, uint64_t seed) : store_(store), rng_(seed) {}

  void Put(uint32_t keys) {
    Batch batch;
    for (uint32_t i = 0; i < keys; ++i) {
      const std::string key = KeyOf(rng_() % kKeys);
      const std::string value = std::to_string(rng_());
      batch.Put(batch.scratch().Copy(key), batch.scratch().Copy(value));
      model_[key] = value;
    }
    ASSERT_TRUE(store_.Execute(batch).ok());
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      ASSERT_EQ(batch.outcome(slot).verdict, Verdict::kDone);
    }
  }
  void Delete(uint32_t keys) {
    Batch batch;
    for (uint32_t i = 0; i < keys; ++i) {
      const std::string key = KeyOf(rng_() % kKeys);
      batch.Delete(batch.scratch().Copy(key));
      model_.erase(key);
    }
    ASSERT_TRUE(store_.Execute(batch).ok());
  }
  void Read(uint32_t requests) {
    Batch batch;
    for (uint32_t i = 0; i < requests; ++i) {
      const std::string_view key = batch.scratch().Copy(KeyOf(rng_() % kKeys));
      rng_() % 4 == 0 ? batch.Scan(Range::From(key), {.limit = 5}) : batch.Get(key);
    }
    ASSERT_TRUE(store_.Execute(batch).ok());
    for (uint32_t slot = 0; slot < batch.size(); ++slot) Compare(batch, slot);
  }

 private:
  static constexpr uint64_t kKeys = 20'000;

  void Compare(const Batch& batch, uint32_t slot) {
    const Request& request = batch.requests()[slot];
    const Outcome& outcome = batch.outcome(slot);
    auto at = model_.lower_bound(std::string(request.key));
    if (request.op == Op::kGet) {
      ASSERT_NE(outcome.verdict, Verdict::kRefused);
      const bool present = at != model_.end() && at->first == request.key;
      ASSERT_EQ(outcome.present, present);
      if (present) {
        ASSERT_EQ(outcome.value, at->second);
      }
      return;
    }
    ASSERT_EQ(outcome.verdict, Verdict::kDone);
    for (const Item& item : batch.items(slot)) {
      ASSERT_NE(at, model_.end());
      ASSERT_EQ(item.key, at->first);
      ASSERT_EQ(item.value, at->second);
      ++at;
    }
    ASSERT_TRUE(outcome.item_count == 5 || at == model_.end());
  }

  Store& store_;
  std::mt19937_64 rng_;
  std::map<std::string, std::string> model_;
};

}  // namespace skep
