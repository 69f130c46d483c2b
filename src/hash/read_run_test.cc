// Tests runs of gets, among other requests and alone, against a map.
#include "hash/read_run.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <string>

#include "hash/hash_engine.h"

namespace skep::hash {
namespace {

struct Known {
  std::string value;
  uint64_t deadline_ms = 0;
};
using Model = std::map<std::string, Known>;

// Plays batches of runs of gets with a few writes between them.
class Play {
 public:
  Play(uint32_t partitions, uint32_t fill_slots, uint64_t keys, unsigned seed)
      : engine_(HashEngine::Make({.budget = &budget_},
                                 {.partitions = partitions, .table = {.fill_slots = fill_slots}})),
        keys_(keys),
        rng_(seed) {}

  void Round() {
    constexpr uint32_t kRuns[] = {1, 2, 15, 16, 17, 100, 255, 256, 257, 300};
    now_ms_ += 1;
    Batch batch;
    batch.set_now_ms(now_ms_);
    std::deque<Known> expected;
    while (batch.size() < 700) {
      for (uint64_t left = kRuns[Below(std::size(kRuns))]; left > 0; --left)
        AddGet(batch, expected);
      for (uint64_t left = Below(3); left > 0; --left) AddWrite(batch, expected);
    }
    engine_->Execute(batch);
    Check(batch, expected);
    ASSERT_STREQ(engine_->Verify(), nullptr);
  }

 private:
  uint64_t Below(uint64_t limit) { return rng_() % limit; }

  // An absent key is expected to have deadline kAbsent.
  static constexpr uint64_t kAbsent = UINT64_MAX;
  static constexpr uint64_t kRefused = UINT64_MAX - 1;

  std::string_view AddKey(Batch& batch) {
    return batch.scratch().Copy("key" + std::to_string(Below(keys_)));
  }

  void AddGet(Batch& batch, std::deque<Known>& expected) {
    if (Below(500) == 0) {
      batch.Get(batch.scratch().Copy(std::string(engine_->traits().key_bytes_max + 1, 'k')));
      expected.push_back({.deadline_ms = kRefused});
      return;
    }
    const std::string_view key = AddKey(batch);
    Request get{.op = Op::kGet, .key = key};
    if (Below(8) == 0) get.flags = Request::kNoValue;
    batch.Add(get);
    const auto at = model_.find(std::string(key));
    const bool is_absent =
        at == model_.end() || (at->second.deadline_ms != 0 && at->second.deadline_ms <= now_ms_);
    expected.push_back(is_absent ? Known{.deadline_ms = kAbsent} : at->second);
  }

  void AddWrite(Batch& batch, std::deque<Known>& expected) {
    constexpr size_t kSizes[] = {0, 5, 17, 40, 600, 5000};
    const std::string_view key = AddKey(batch);
    expected.push_back({});
    if (Below(4) == 0) {
      batch.Delete(key);
      model_.erase(std::string(key));
      return;
    }
    Known known{.value = std::string(kSizes[Below(std::size(kSizes))], 'v')};
    if (!known.value.empty()) known.value[0] = static_cast<char>('a' + Below(26));
    if (Below(3) == 0) known.deadline_ms = now_ms_ + 1 + Below(3);
    batch.Add({.op = Op::kPut,
               .key = key,
               .value = batch.scratch().Copy(known.value),
               .deadline_ms = known.deadline_ms});
    model_[std::string(key)] = known;
  }

  static void Check(const Batch& batch, const std::deque<Known>& expected) {
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Request& r = batch.requests()[slot];
      if (r.op != Op::kGet) continue;
      SCOPED_TRACE(testing::Message() << "slot " << slot << " of " << batch.size());
      const Known& known = expected[slot];
      const Outcome& outcome = batch.outcome(slot);
      if (known.deadline_ms == kRefused) {
        ASSERT_EQ(outcome.verdict, Verdict::kRefused);
        ASSERT_EQ(outcome.status.code(), Code::kTooLarge);
        continue;
      }
      const bool is_present = known.deadline_ms != kAbsent;
      ASSERT_EQ(outcome.verdict, is_present ? Verdict::kDone : Verdict::kAbsent);
      ASSERT_EQ(outcome.present, is_present);
      if (!is_present) continue;
      ASSERT_EQ(outcome.deadline_ms, known.deadline_ms);
      const bool is_size = r.has(Request::kNoValue);
      ASSERT_EQ(outcome.value, is_size ? "" : known.value);
      ASSERT_EQ(outcome.integer, is_size ? static_cast<int64_t>(known.value.size()) : 0);
    }
  }

  MemoryBudget budget_;
  std::unique_ptr<HashEngine> engine_;
  const uint64_t keys_;
  std::mt19937_64 rng_;
  uint64_t now_ms_ = 1000;
  Model model_;
};

// Goal: whatever the length of a run of gets and its neighbours, it answers as each get alone
// would: pairs inline, in slabs and large, absent, expired and refused ones; in short chains and in
// long ones.
TEST(ReadRun, AgreesWithAMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const uint32_t partitions : {1, 16}) {
    for (const uint32_t fill_slots : {6, 60}) {
      for (const uint64_t keys : {1, 30, 1000}) {
        Play play(partitions, fill_slots, keys, seed);
        for (int i = 0; i < 40; ++i) {
          play.Round();
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Goal: the ticket of a batch that reads is not below the write it has seen (sequence_numbers.h).
TEST(ReadRun, HasTheTicketOfWhatItSaw) {
  MemoryBudget budget;
  const auto engine =
      HashEngine::Make({.budget = &budget, .numbers_writes = true}, {.partitions = 4, .table = {}});
  for (const uint32_t gets : {1, 2, 300}) {
    for (const size_t bytes : {3, 100}) {
      Batch write;
      const std::string value(bytes, 'v');
      write.Put("key", value);
      engine->Execute(write);
      Batch read;
      for (uint32_t i = 0; i < gets; ++i) read.Get("key");
      EXPECT_GE(engine->Execute(read), write.outcome(0).version);
      EXPECT_GT(write.outcome(0).version, 0u);
      EXPECT_EQ(read.outcome(gets - 1).value, value);
    }
  }
}

}  // namespace
}  // namespace skep::hash
