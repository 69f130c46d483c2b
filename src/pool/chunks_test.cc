// Where chunks lie, through leases, copies and the loss of servers.
#include "pool/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "pool/copy_plan.h"
#include "pool/placement.h"

namespace skep::pool {
namespace {

constexpr uint32_t kClient = 7;

Slot SlotIn(const Chunks& chunks, uint32_t chunk) {
  return {1, 1, chunks.all()[chunk].gen, chunk, 0};
}

// Three servers 1, 2 and 3 with four frames each: 0 to 3, 4 to 7, 8 to 11.
class ChunksTest : public testing::Test {
 protected:
  ChunksTest() {
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(chunks_.AddServer({.server = i + 1, .first = 4 * i, .count = 4}));
    }
  }
  ChunkFrames FramesOf(uint32_t chunk) const { return chunks_.all()[chunk].frames; }
  // A sealed chunk with one item.
  void MakeSealed(uint32_t chunk, const ChunkFrames& frames) {
    ASSERT_TRUE(chunks_.Lease(chunk, kClient, frames));
    chunks_.AddItem(SlotIn(chunks_, chunk));
    ASSERT_TRUE(chunks_.Seal(chunk, kClient, 1));
  }

  Chunks chunks_;
};

TEST_F(ChunksTest, ALeaseTakesFreeFramesOnly) {
  EXPECT_TRUE(chunks_.Lease(0, kClient, {1, 5}));
  EXPECT_EQ(chunks_.free_count(), 10u);
  EXPECT_FALSE(chunks_.Lease(1, kClient, {1, 6})) << "a frame that another chunk has";
  EXPECT_FALSE(chunks_.Lease(1, kClient, {6, 5})) << "the same";
  EXPECT_FALSE(chunks_.Lease(1, kClient, {2, 2})) << "twice the same";
  EXPECT_FALSE(chunks_.Lease(1, kClient, {12, kNoFrame})) << "there is none";
  EXPECT_FALSE(chunks_.Lease(1, kClient, kNoFrames));
  EXPECT_FALSE(chunks_.Lease(0, kClient, {2, 6})) << "it is leased";
  EXPECT_EQ(chunks_.free_count(), 10u);
  ASSERT_TRUE(chunks_.Seal(0, kClient, 1));
  ASSERT_TRUE(chunks_.Recycle(0));
  EXPECT_EQ(chunks_.free_count(), 12u);
  EXPECT_EQ(FramesOf(0), kNoFrames);
}

TEST_F(ChunksTest, KnowsWhatAClientLeases) {
  for (const uint32_t chunk : {3u, 1u, 2u, 0u}) {
    ASSERT_TRUE(chunks_.Lease(chunk, kClient, {chunk, kNoFrame}));
  }
  ASSERT_TRUE(chunks_.Lease(4, kClient + 1, {4, kNoFrame}));
  EXPECT_EQ(chunks_.LeasedBy(kClient), (std::vector<uint32_t>{0, 1, 2, 3}));
  MakeSealed(5, {8, kNoFrame});
  ASSERT_TRUE(chunks_.Adopt(5, 0, 0, kClient));
  ASSERT_TRUE(chunks_.Seal(2, kClient, 1));
  EXPECT_EQ(chunks_.LeasedBy(kClient), (std::vector<uint32_t>{1, 3}));
  chunks_.SealAllOf(kClient, 1);
  EXPECT_TRUE(chunks_.LeasedBy(kClient).empty());
  EXPECT_EQ(chunks_.LeasedBy(kClient + 1), (std::vector<uint32_t>{4}));
}

TEST_F(ChunksTest, AServerThatIsGoneTakesItsFramesAlong) {
  MakeSealed(0, {0, 4});
  MakeSealed(1, {1, kNoFrame});
  ASSERT_TRUE(chunks_.Lease(2, kClient, {2, kNoFrame}));
  const uint64_t version = chunks_.version();
  chunks_.RemoveServer(1);
  EXPECT_GT(chunks_.version(), version);
  EXPECT_EQ(chunks_.FindServer(1)->state, Chunks::ServerState::kGone);
  EXPECT_EQ(FramesOf(0), (ChunkFrames{4, kNoFrame})) << "the other replica is the first one";
  EXPECT_TRUE(chunks_.all()[1].is_lost());
  EXPECT_EQ(chunks_.free_count(), 7u);
  EXPECT_FALSE(chunks_.MayCommit(SlotIn(chunks_, 2), kClient)) << "nothing is there to be read";
  EXPECT_FALSE(chunks_.Lease(3, kClient, {3, kNoFrame}));
  // A lost chunk ends as others do, when the last key has been written or removed.
  chunks_.DropItem(SlotIn(chunks_, 1));
  EXPECT_TRUE(chunks_.Recycle(1));
}

TEST_F(ChunksTest, ACopyBecomesAReplica) {
  MakeSealed(0, {0, kNoFrame});
  ASSERT_TRUE(chunks_.Lease(1, kClient, {5, kNoFrame}));
  EXPECT_FALSE(chunks_.Adopt(0, 1, 1, kClient)) << "another generation";
  EXPECT_FALSE(chunks_.Adopt(0, 0, 1, kClient + 1)) << "another client's";
  EXPECT_TRUE(chunks_.Adopt(0, 0, 1, kClient));
  EXPECT_EQ(FramesOf(0), (ChunkFrames{0, 5}));
  EXPECT_EQ(chunks_.all()[1], (Chunks::Chunk{.gen = 1}));
  EXPECT_EQ(chunks_.free_count(), 10u);
  ASSERT_TRUE(chunks_.Lease(2, kClient, {9, kNoFrame}));
  EXPECT_FALSE(chunks_.Adopt(0, 0, 2, kClient)) << "it has two already";
}

TEST_F(ChunksTest, WhatMayChangeOrIsOnTheSameServerIsNoReplica) {
  ASSERT_TRUE(chunks_.Lease(0, kClient, {0, kNoFrame}));
  ASSERT_TRUE(chunks_.Lease(1, kClient, {5, kNoFrame}));
  EXPECT_FALSE(chunks_.Adopt(0, 0, 1, kClient)) << "it is still written to";
  MakeSealed(2, {1, kNoFrame});
  ASSERT_TRUE(chunks_.Lease(3, kClient, {2, kNoFrame}));
  EXPECT_FALSE(chunks_.Adopt(2, 0, 3, kClient)) << "one death would lose both";
  chunks_.Drain(2);
  EXPECT_FALSE(chunks_.Adopt(2, 0, 1, kClient)) << "on a server that is drained";
  chunks_.AddItem(SlotIn(chunks_, 3));
  chunks_.RemoveServer(1);
  EXPECT_FALSE(chunks_.Adopt(2, 0, 1, kClient)) << "there was nothing to copy from";
}

TEST_F(ChunksTest, ADrainedServerLeavesWhenNoChunkHasItsFrames) {
  MakeSealed(0, {0, 4});
  chunks_.Drain(1);
  EXPECT_EQ(chunks_.free_count(), 7u) << "of the two others";
  EXPECT_FALSE(chunks_.Lease(1, kClient, {1, kNoFrame})) << "it gets no chunks";
  ASSERT_TRUE(chunks_.Lease(1, kClient, {8, kNoFrame}));
  ASSERT_TRUE(chunks_.Adopt(0, 0, 1, kClient));
  EXPECT_EQ(FramesOf(0), (ChunkFrames{8, 4}));
  EXPECT_EQ(chunks_.FindServer(1)->free, 4u);
  chunks_.RemoveServer(1);
  EXPECT_EQ(chunks_.FindServer(1)->state, Chunks::ServerState::kDrained);
  EXPECT_EQ(FramesOf(0), (ChunkFrames{8, 4}));
}

TEST_F(ChunksTest, AFrameThatIsTheOnlyOneIsKept) {
  MakeSealed(0, {0, 4});
  MakeSealed(1, {1, kNoFrame});
  ASSERT_TRUE(chunks_.Lease(2, kClient, {2, 5}));
  chunks_.Drain(1);
  EXPECT_TRUE(chunks_.Shed(0));
  EXPECT_EQ(FramesOf(0), (ChunkFrames{4, kNoFrame}));
  EXPECT_FALSE(chunks_.Shed(1)) << "it is the only one";
  EXPECT_EQ(FramesOf(1), (ChunkFrames{1, kNoFrame}));
  EXPECT_FALSE(chunks_.Shed(2)) << "it is still written to";
  EXPECT_EQ(chunks_.FindServer(1)->free, 2u);
}

TEST_F(ChunksTest, ADrainedServerThatStillHadFramesIsGone) {
  MakeSealed(0, {0, 4});
  chunks_.Drain(1);
  chunks_.RemoveServer(1);
  EXPECT_EQ(chunks_.FindServer(1)->state, Chunks::ServerState::kGone);
  EXPECT_EQ(FramesOf(0), (ChunkFrames{4, kNoFrame}));
}

TEST_F(ChunksTest, AreTheSameWhenTheyCameInAMessage) {
  MakeSealed(0, {0, 4});
  MakeSealed(1, {1, 8});
  ASSERT_TRUE(chunks_.Lease(2, kClient, {9, 5}));
  chunks_.Drain(2);
  chunks_.RemoveServer(1);
  std::string servers;
  std::string bytes;
  chunks_.EncodeServers(servers);
  chunks_.EncodeChunks(0, 12, bytes);
  Chunks copy;
  std::string_view left = servers;
  ASSERT_TRUE(copy.DecodeServers(left));
  left = bytes;
  uint32_t end = 0;
  ASSERT_TRUE(copy.DecodeChunks(left, 0, &end));
  EXPECT_EQ(end, 12u);
  EXPECT_EQ(copy.all(), chunks_.all());
  EXPECT_EQ(copy.servers(), chunks_.servers());
  EXPECT_EQ(copy.free_count(), chunks_.free_count());
  EXPECT_EQ(copy.version(), chunks_.version());
  EXPECT_EQ(copy.LeasedBy(kClient), (std::vector<uint32_t>{2}));
  // A frame of two chunks, and one that is no frame.
  for (const std::string& bad : {bytes + std::string("\1\0\7\0\0\0\1\5", 8), bytes + "x"}) {
    Chunks other;
    left = servers;
    ASSERT_TRUE(other.DecodeServers(left));
    left = bad;
    EXPECT_FALSE(other.DecodeChunks(left, 0, &end));
  }
}

TEST_F(ChunksTest, WhatChunksWithReplicasCanTake) {
  EXPECT_EQ(chunks_.FreeFor(1), 12u);
  EXPECT_EQ(chunks_.FreeFor(2), 12u);
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(chunks_.Lease(i, kClient, {i, 4 + i}));
  EXPECT_EQ(chunks_.FreeFor(1), 6u);
  EXPECT_EQ(chunks_.FreeFor(2), 4u) << "one each of the first two, with two of the third";
  EXPECT_EQ(chunks_.CapacityFor(2), 12u);
  chunks_.RemoveServer(1);
  chunks_.RemoveServer(2);
  EXPECT_EQ(chunks_.FreeFor(2), 4u) << "of the only server";
  EXPECT_EQ(chunks_.CapacityFor(2), 4u);
}

class PlacementTest : public ChunksTest {
 protected:
  std::set<uint32_t> ServersOf(const ChunkFrames& frames) const {
    std::set<uint32_t> servers;
    for (const uint32_t frame : frames) {
      if (frame != kNoFrame) servers.insert(chunks_.ServerOf(frame).range.server);
    }
    return servers;
  }

  Placement placement_{chunks_};
};

TEST_F(PlacementTest, ReplicasLieOnDifferentServersAndAllGetTheirShare) {
  std::map<uint32_t, int> chosen;
  for (uint32_t i = 0; i < 6; ++i) {
    const auto choice = placement_.Choose(2, {}, {});
    ASSERT_TRUE(choice);
    ASSERT_TRUE(chunks_.Lease(i, kClient, choice.frames));
    EXPECT_EQ(ServersOf(choice.frames).size(), 2u);
    for (const uint32_t server : ServersOf(choice.frames)) ++chosen[server];
  }
  EXPECT_EQ(chosen, (std::map<uint32_t, int>{{1, 4}, {2, 4}, {3, 4}}));
  const auto none = placement_.Choose(1, {}, {});
  EXPECT_FALSE(none);
  EXPECT_EQ(none.problem, Placement::Problem::kFull);
}

TEST_F(PlacementTest, FewerServersThanReplicasAreEnough) {
  chunks_.RemoveServer(1);
  chunks_.Drain(2);
  EXPECT_EQ(ServersOf(placement_.Choose(2, {}, {}).frames), std::set<uint32_t>{3});
  chunks_.Drain(3);
  EXPECT_EQ(ServersOf(placement_.Choose(2, {}, {}).frames), std::set<uint32_t>{3})
      << "the only one is not drained";
  chunks_.RemoveServer(3);
  EXPECT_EQ(ServersOf(placement_.Choose(2, {}, {}).frames), std::set<uint32_t>{2})
      << "what was to be drained is open again";
}

// A client that has not heard of the second server yet writes to one.
TEST_F(PlacementTest, AChunkThatMayGetItemsIsToHaveAllReplicas) {
  const CopyPlan plan(chunks_, placement_, 2);
  ASSERT_TRUE(chunks_.Lease(0, kClient, {0, 4}));
  EXPECT_EQ(plan.CountUnderReplicated(), 0u);
  ASSERT_TRUE(chunks_.Lease(1, kClient, {1, kNoFrame}));
  EXPECT_EQ(plan.CountUnderReplicated(), 1u);
  ASSERT_TRUE(chunks_.Seal(1, kClient, 1));
  EXPECT_EQ(plan.CountUnderReplicated(), 0u) << "it has no items, and gets none";
  MakeSealed(2, {8, kNoFrame});
  EXPECT_EQ(plan.CountUnderReplicated(), 1u);
}

TEST_F(PlacementTest, AServerThatIsAvoidedCountsAllTheSame) {
  EXPECT_EQ(ServersOf(placement_.Choose(2, {1}, {}).frames), (std::set<uint32_t>{2, 3}));
  const auto none = placement_.Choose(2, {1, 2}, {});
  EXPECT_FALSE(none) << "the second replica would be missing";
  EXPECT_EQ(none.problem, Placement::Problem::kAway);
}

TEST_F(PlacementTest, FramesThatAreAboutToBeLeasedAreNotChosen) {
  std::set<uint32_t> taken;
  for (int i = 0; i < 12; ++i) {
    const auto choice = placement_.Choose(1, {}, taken);
    ASSERT_TRUE(choice);
    EXPECT_TRUE(taken.insert(choice.frames[0]).second);
  }
  EXPECT_FALSE(placement_.Choose(1, {}, taken));
}

// Of an empty one among full ones, whose chunks are written most.
TEST_F(PlacementTest, ANewcomerIsNotFlooded) {
  Chunks chunks;
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(chunks.AddServer({.server = i + 1, .first = 1000 * i, .count = 1000}));
  }
  uint32_t chunk = 0;
  for (uint32_t server = 0; server < 4; ++server) {
    for (uint32_t i = 0; i < 900; ++i) {
      ASSERT_TRUE(chunks.Lease(chunk++, kClient, {1000 * server + i, kNoFrame}));
    }
  }
  Placement placement(chunks);
  uint32_t newcomer = 0;
  for (int i = 0; i < 100; ++i) {
    const auto choice = placement.Choose(1, {}, {});
    if (chunks.ServerOf(choice.frames[0]).range.server == 5) ++newcomer;
  }
  EXPECT_NEAR(newcomer, 40, 3) << "twice the average of five";
}

}  // namespace
}  // namespace skep::pool
