// The cleaner in a simulated pool, step by step: what it moves and what it leaves, what a full pool
// does, what is evicted.
#include "pool/cleaner.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"
#include "pool/free_space.h"
#include "pool/testing/cleaner_world.h"

namespace skep::pool {
namespace {

using CleanerTest = CleanerWorld;

// Goal: what is left of chunks that are mostly garbage is moved, and these are free again; nothing
// changes for readers.
TEST_F(CleanerTest, MovesWhatIsLeft) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(FillWithGarbage());
  EXPECT_LT(chunks().free_count(), FreeSpace::WantedOf(kChunks));
  Clean(40);
  EXPECT_GE(chunks().free_count(), FreeSpace::WantedOf(kChunks));
  EXPECT_GT(Figures().items_moved, 0u);
  EXPECT_GT(Figures().chunks_cleaned, 0u);
  ExpectAllIsThere();
}

// Goal: the chunk with the fewest live units goes first, and no more than are wanted.
TEST_F(CleanerTest, TakesTheEmptiestChunkAndNoMoreThanItMust) {
  Begin();
  ASSERT_TRUE(Fill("a", 20 * (kChunks - 2), kTwentieth));
  // Of the n-th chunk n + 1 items stay, but of the third one only one.
  for (int i = 0; i < 20 * 4; ++i) {
    const int kept = i / 20 == 2 ? 1 : i / 20 + 2;
    if (i % 20 < kept) continue;
    ASSERT_TRUE(Delete(NthKey("a", i)).ok());
  }
  ASSERT_TRUE(Put("more", kTwentieth).ok());
  ASSERT_EQ(chunks().free_count() + 1, FreeSpace::WantedOf(kChunks));
  const uint32_t third = SlotOfKey(NthKey("a", 40)).chunk();
  Clean(30);
  EXPECT_NE(SlotOfKey(NthKey("a", 40)).chunk(), third);
  EXPECT_EQ(chunks().all()[third].gen, 1);
  // The chunk that the cleaner writes to is one less.
  EXPECT_EQ(Figures().chunks_cleaned, 2u);
  ExpectAllIsThere();
}

// Goal: chunks of which a 64th is garbage are moved, those with less are not, also of a full pool.
TEST_F(CleanerTest, ASixtyFourthOfGarbageIsWorthAMove) {
  constexpr int kOfAChunk = 128;
  Begin();
  int written = 0;
  while (Put(NthKey("a", written), kChunkBytes / kOfAChunk - 100).ok()) ++written;
  ASSERT_EQ(written % kOfAChunk, 0) << "the items fill their chunks to the end";
  for (int i = 0; i < written; i += kOfAChunk) ASSERT_TRUE(Delete(NthKey("a", i)).ok());
  Clean(40);
  EXPECT_EQ(Figures().items_moved, 0u);
  for (int i = 1; i < written; i += kOfAChunk) ASSERT_TRUE(Delete(NthKey("a", i)).ok());
  Clean(40);
  EXPECT_GT(Figures().items_moved, 0u);
  ExpectAllIsThere();
}

// Goal: a write that comes between the look at a chunk and the move wins (C2).
TEST_F(CleanerTest, AConcurrentWriteWins) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(FillWithGarbage());
  while (!agent_->Turn()) {
  }
  // It has looked at its first victim.
  const auto keys = keys_;
  bool is_overwritten = false;
  for (const auto& [key, value] : keys) {
    if (key[0] != 'a') continue;
    is_overwritten = !is_overwritten;
    ASSERT_TRUE(is_overwritten ? Put(key, 10).ok() : Delete(key).ok());
  }
  Clean(40);
  EXPECT_EQ(Figures().items_moved, 0u);
  ExpectAllIsThere();
}

// Goal: a pool that is full refuses writes with one clear error, and short ones that fit not; it
// goes on reading and deleting; and once the cleaner has made room of what was deleted, it takes
// writes again.
TEST_F(CleanerTest, AFullPoolRefusesWritesUntilThereIsRoom) {
  Begin();
  int written = 0;
  Status status;
  for (; status.ok(); ++written) status = Put(NthKey("a", written), kTwentieth);
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_STREQ(status.what(), "the pool is full");
  EXPECT_EQ(chunks().free_count(), FreeSpace::ReserveOf(kChunks));
  ExpectAllIsThere();
  // Nothing is garbage: the cleaner finds nothing, and says so.
  Clean(20);
  EXPECT_EQ(Put("b", kTwentieth).code(), Code::kOutOfMemory);
  EXPECT_EQ(Figures().items_moved, 0u);
  // A delete goes on also in one batch with a write that does not.
  const std::string value(kTwentieth, 'v');
  const std::string first = NthKey("a", 0);
  batch_.Clear();
  batch_.Put("b", value);
  batch_.Delete(first);
  engine_->Execute(batch_);
  EXPECT_EQ(batch_.outcome(0).status.code(), Code::kOutOfMemory);
  EXPECT_EQ(batch_.outcome(1).verdict, Verdict::kDone);
  keys_.erase(first);
  for (int i = 1; i < written - 1; ++i) {
    if (i % 3 == 0) continue;
    ASSERT_TRUE(Delete(NthKey("a", i)).ok());
  }
  Clean(60);
  EXPECT_GT(Figures().items_moved, 0u);
  AddAgentFiber();
  EXPECT_TRUE(Fill("b", 40, kTwentieth));
  EndAgentFiber();
  ExpectAllIsThere();
}

// Goal: as long as there is hope a write waits, and the room that then comes about is its.
TEST_F(CleanerTest, AWriteWaitsForTheCleaner) {
  Begin();
  AddAgentFiber();
  SeededRandom random(1);
  for (int i = 0; i < 600; ++i) {
    const auto key = static_cast<int>(random.Below(90));
    EXPECT_TRUE(Put(NthKey("a", key), kTwentieth).ok()) << i;
  }
  EXPECT_GT(Figures().items_moved, 0u);
  EndAgentFiber();
  ExpectAllIsThere();
}

// Goal: chunks of long items, which look empty, are looked at once, not moved again and again.
TEST_F(CleanerTest, LongItemsAreNotMovedForEver) {
  Begin();
  for (uint32_t i = 0; i < kChunks - FreeSpace::ReserveOf(kChunks); ++i) {
    ASSERT_TRUE(Put(NthKey("a", static_cast<int>(i)), kValueBytesMax - 16).ok());
  }
  EXPECT_EQ(Put("b", kValueBytesMax - 16).code(), Code::kOutOfMemory);
  MessageCount messages;
  CountedFabric fabric(pool_->fabric(), messages);
  agent_ = NewAgent(fabric);
  Clean(100);
  EXPECT_GE(messages.posts, kChunks - 2) << "it has looked at each of them";
  EXPECT_LE(messages.posts, 3 * kChunks) << "and not again and again";
  EXPECT_EQ(Figures().items_moved, 0u);
  ExpectAllIsThere();
  agent_.reset();
}

// Goal: items that a client wrote and did not live to commit take no room for ever, nor does the
// rest of its chunk.
TEST_F(CleanerTest, OrphansGo) {
  Begin();
  ASSERT_TRUE(Fill("a", 20 * (kChunks - 2), kTwentieth));
  MessageCount messages;
  CountedFabric fabric(pool_->fabric(), messages);
  const auto engine = NewEngine(fabric);
  const std::string value(kTwentieth, 'v');
  for (const char* const key : {"committed", "never"}) {
    messages.sent_max = key[0] == 'n' ? messages.sent : UINT64_MAX;
    batch_.Clear();
    batch_.Put(key, value);
    engine->Execute(batch_);
  }
  ASSERT_TRUE(messages.is_dead);
  keys_["committed"] = value;
  const Slot slot = SlotOfKey("committed");
  ASSERT_EQ(chunks().all()[slot.chunk()].items, 1u);
  for (int i = 0; i < 10; ++i) {
    ExpectAllIsThere();  // this client is known still
    pool_->Sleep(kTimes.silence_ns_max / 5);
  }
  ASSERT_EQ(chunks().all()[slot.chunk()].state, Chunks::State::kSealed);
  Clean(40);
  EXPECT_EQ(chunks().all()[slot.chunk()].gen, 1);
  EXPECT_EQ(SlotOfKey("never"), Slot());
  ExpectAllIsThere();
}

// Goal: a cache that is full takes every write; what was written first is gone, and nothing else.
TEST_F(CleanerTest, TheOldestItemsAreEvicted) {
  Begin(Eviction::kOldest);
  AddAgentFiber();
  constexpr int kItems = 20 * 3 * kChunks;
  for (int i = 0; i < kItems; ++i) EXPECT_TRUE(Put(NthKey("a", i), kTwentieth).ok()) << i;
  EndAgentFiber();
  const UpkeepFigures figures = Figures();
  EXPECT_GT(figures.chunks_evicted, kChunks);
  // They are there from the first one on that was not evicted.
  for (auto& [key, value] : std::map(keys_)) {
    if (!SlotOfKey(key)) keys_.erase(key);
  }
  EXPECT_EQ(keys_.size() + figures.items_evicted, static_cast<size_t>(kItems));
  EXPECT_EQ(keys_.begin()->first, NthKey("a", static_cast<int>(figures.items_evicted)));
  EXPECT_GE(keys_.size(), 20u * (kChunks - 4));
  ExpectAllIsThere();
}

// Goal: a pool that is asked to keep all evicts nothing.
TEST_F(CleanerTest, NothingIsEvictedUnasked) {
  Begin();
  Status status;
  for (int i = 0; status.ok(); ++i) status = Put(NthKey("a", i), kTwentieth);
  Clean(50);
  EXPECT_EQ(Figures().items_evicted, 0u);
  ExpectAllIsThere();
}

}  // namespace
}  // namespace skep::pool
