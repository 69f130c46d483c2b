// What becomes of a cleaning whose cleaner is killed, or stopped for long, before any of its
// messages: its reads and writes, and its calls.
#include <gtest/gtest.h>

#include "pool/free_space.h"
#include "pool/testing/cleaner_world.h"

namespace skep::pool {
namespace {

class CleanerFaultsTest : public CleanerWorld {
 protected:
  // A pool that wants cleaning, and a cleaner whose messages are counted.
  void BeginCounted(Eviction eviction) {
    agent_.reset();
    Begin(eviction);
    if (eviction == Eviction::kNone) {
      ASSERT_NO_FATAL_FAILURE(FillWithGarbage());
    } else {
      for (int i = 0; Put(NthKey("a", i), kTwentieth).ok(); ++i) {
      }
    }
    agent_.reset();
    messages_ = {.counts_posts = true};
    fabric_ = std::make_unique<CountedFabric>(pool_->fabric(), messages_);
    agent_ = NewAgent(*fabric_);
  }
  bool IsShortOfRoom() { return chunks().free_count() < FreeSpace::WantedOf(kChunks); }
  // What was evicted is no key any more.
  void ForgetTheEvicted() {
    std::erase_if(keys_, [this](const auto& item) { return !SlotOfKey(item.first); });
  }
  bool LosesCleaner(uint64_t k, Eviction eviction);
  bool StopsCleaner(uint64_t k);

  MessageCount messages_;
  std::unique_ptr<CountedFabric> fabric_;
};

// The cleaner dies before its k-th message, and another one makes the room. False: it does not send
// so many.
bool CleanerFaultsTest::LosesCleaner(uint64_t k, Eviction eviction) {
  BeginCounted(eviction);
  messages_.sent_max = k;
  while (!messages_.is_dead && IsShortOfRoom()) Clean(1);
  if (!messages_.is_dead) return false;
  if (eviction != Eviction::kNone) ForgetTheEvicted();
  ExpectAllIsThere();
  agent_ = NewAgent(pool_->fabric());
  // The dead one's chunk is sealed when it has been silent.
  for (int i = 0; i < 40 && IsShortOfRoom(); ++i) {
    Clean(10);
    Get(keys_.begin()->first);
  }
  if (eviction != Eviction::kNone) ForgetTheEvicted();
  EXPECT_FALSE(IsShortOfRoom()) << k;
  EXPECT_FALSE(keys_.empty());
  ExpectAllIsThere();
  return true;
}

TEST_F(CleanerFaultsTest, TheCleanerMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && LosesCleaner(k, Eviction::kNone)) ++k;
  EXPECT_GT(k, 12u);
}

TEST_F(CleanerFaultsTest, ACleanerThatEvictsMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && LosesCleaner(k, Eviction::kOldest)) ++k;
  EXPECT_GT(k, 12u);
}

// The cleaner stops before its k-th message, until the pool has forgotten it, clients have written
// everything anew, and another cleaner has recycled what it looked at. Then it goes on. False: it
// does not send so many.
bool CleanerFaultsTest::StopsCleaner(uint64_t k) {
  BeginCounted(Eviction::kNone);
  bool is_stopped = false;
  messages_.before_each = [&] {
    if (is_stopped || messages_.sent != k) return;
    is_stopped = true;
    pool_->Sleep(2 * kTimes.silence_ns_max);
  };
  AddAgentFiber();
  while (!is_stopped && IsShortOfRoom()) pool_->Sleep(UpkeepThread::kPauseMs * kMs);
  const auto other = NewAgent(pool_->fabric());
  for (const auto& [key, value] : std::map(keys_)) {
    for (int i = 0; i < 200 && !Put(key, kTwentieth / 2).ok(); ++i) TurnOrPause(*other);
    EXPECT_TRUE(keys_[key] != value) << k;
  }
  for (int i = 0; is_stopped && i < 300; ++i) {
    TurnOrPause(*other);
    if (i % 20 == 0) Get(keys_.begin()->first);
  }
  EndAgentFiber();
  ExpectAllIsThere();
  EXPECT_TRUE(Put("another", kTwentieth).ok());
  return is_stopped;
}

TEST_F(CleanerFaultsTest, TheCleanerMayStopBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && StopsCleaner(k)) ++k;
  EXPECT_GT(k, 12u);
}

}  // namespace
}  // namespace skep::pool
