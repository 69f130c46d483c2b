#include "server/reply_memory.h"

#include <gtest/gtest.h>

namespace skep {
namespace {

using Known = ReplyMemory::Known;

class ReplyMemoryTest : public testing::Test {
 protected:
  Known Begin(uint64_t client, uint32_t id) { return memory_.Begin(client, id, &reply_); }

  ReplyMemory memory_;
  ReplyMemory::Reply reply_;
};

TEST_F(ReplyMemoryTest, KnowsWhatItWasTold) {
  EXPECT_EQ(Begin(1, 5), Known::kNew);
  EXPECT_EQ(Begin(1, 5), Known::kRunning);
  memory_.Finish(1, 5, "bytes", 77);
  EXPECT_EQ(Begin(1, 5), Known::kKnown);
  EXPECT_EQ(reply_.bytes, "bytes");
  EXPECT_EQ(reply_.ticket, 77u);
  EXPECT_EQ(Begin(2, 5), Known::kNew);
  EXPECT_EQ(Begin(1, 4), Known::kNew);
}

TEST_F(ReplyMemoryTest, WhatWasNotExecutedIsNew) {
  EXPECT_EQ(Begin(1, 5), Known::kNew);
  memory_.Abandon(1, 5);
  EXPECT_EQ(Begin(1, 5), Known::kNew);
  memory_.Abandon(1, 6);
  memory_.Abandon(9, 6);
}

// Goal: of a client's ids the last ones are kept; what was forgotten is never taken for new.
TEST_F(ReplyMemoryTest, ForgetsTheOldestIds) {
  const auto ids = static_cast<uint32_t>(ReplyMemory::kIdsMax);
  for (uint32_t id = 1; id <= ids + 10; ++id) {
    ASSERT_EQ(Begin(1, id), Known::kNew);
    memory_.Finish(1, id, "x", 0);
  }
  EXPECT_EQ(Begin(1, 10), Known::kForgotten);
  EXPECT_EQ(Begin(1, 11), Known::kKnown);
  EXPECT_EQ(Begin(1, ids + 10), Known::kKnown);
}

// Goal: bytes are bounded; the client that was quiet the longest loses its replies first.
TEST_F(ReplyMemoryTest, BoundsItsBytes) {
  const std::string large(ReplyMemory::kBytesMax / 4, 'x');
  for (uint64_t client = 1; client <= 6; ++client) {
    ASSERT_EQ(Begin(client, 1), Known::kNew);
    memory_.Finish(client, 1, large, 0);
    EXPECT_LE(memory_.bytes(), ReplyMemory::kBytesMax);
  }
  EXPECT_EQ(Begin(1, 1), Known::kForgotten);
  EXPECT_EQ(Begin(6, 1), Known::kKnown);
  EXPECT_EQ(Begin(1, 2), Known::kNew);
}

// Goal: a reply larger than all that is kept is forgotten at once, and nothing else is harmed.
TEST_F(ReplyMemoryTest, LetsGoOfWhatIsTooLarge) {
  ASSERT_EQ(Begin(1, 1), Known::kNew);
  memory_.Finish(1, 1, std::string(ReplyMemory::kBytesMax + 1, 'x'), 0);
  EXPECT_EQ(Begin(1, 1), Known::kForgotten);
  EXPECT_EQ(memory_.bytes(), 0u);
}

TEST_F(ReplyMemoryTest, BoundsItsClients) {
  for (uint64_t client = 1; client <= ReplyMemory::kClientsMax + 5; ++client) {
    ASSERT_EQ(Begin(client, 1), Known::kNew);
  }
  EXPECT_EQ(Begin(ReplyMemory::kClientsMax + 5, 1), Known::kRunning);
  memory_.Finish(1, 1, "late", 0);  // of one that is gone
}

}  // namespace
}  // namespace skep
