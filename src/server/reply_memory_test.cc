#include "server/reply_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace skep {
namespace {

using Known = ReplyMemory::Known;

constexpr uint64_t kAllIds = uint64_t{1} << 32;

class ReplyMemoryTest : public testing::Test {
 protected:
  Known Begin(uint64_t client, uint32_t id) {
    return memory_.Begin(client, {.id = id}, &reply_, &first_new_);
  }
  // Executes a message, if it is new.
  Known Do(uint64_t client, uint32_t id, size_t reply_bytes = 1) {
    const Known known = Begin(client, id);
    if (known == Known::kNew) memory_.Finish(client, id, std::string(reply_bytes, 'x'), 0);
    EXPECT_LE(memory_.bytes(), memory_.bytes_max());
    EXPECT_EQ(memory_.bytes(), budget_.used());
    return known;
  }
  // Executes one message of each of `clients` clients, from `first` on.
  void DoMany(uint64_t first, uint64_t clients, size_t reply_bytes = 1) {
    for (uint64_t i = 0; i < clients; ++i) Do(first + i, 1, reply_bytes);
  }

  // Sets so low a limit that memory ends soon.
  void LimitToOneMib() {
    budget_.set_limit(1);
    ASSERT_EQ(memory_.bytes_max(), size_t{1} << 20);
  }

  MemoryBudget budget_;
  ReplyMemory memory_{budget_};
  ReplyMemory::Reply reply_;
  uint64_t first_new_ = 0;
};

TEST_F(ReplyMemoryTest, KnowsWhatItWasTold) {
  EXPECT_EQ(Begin(1, 5), Known::kNew);
  EXPECT_EQ(Begin(1, 5), Known::kRunning);
  memory_.Finish(1, 5, "bytes", 77);
  EXPECT_EQ(Begin(1, 5), Known::kKnown);
  EXPECT_EQ(*reply_.bytes, "bytes");
  EXPECT_EQ(reply_.ticket, 77u);
  const std::string* const kept = reply_.bytes.get();
  EXPECT_EQ(Begin(1, 5), Known::kKnown);
  EXPECT_EQ(reply_.bytes.get(), kept) << "the reply was copied";
  EXPECT_EQ(Begin(2, 5), Known::kNew);
  EXPECT_EQ(Begin(1, 4), Known::kNew);
}

// Goal: a message of another keyspace or kind is not the same message again, though it has the same
// id: the reply's ticket means nothing in another keyspace.
TEST_F(ReplyMemoryTest, AnotherMessageIsNotTheSameAgain) {
  const packed::Header first{.id = 5, .keyspace = 1};
  const packed::Header others[] = {{.id = 5, .keyspace = 0},
                                   {.id = 5, .kind = packed::Kind::kAtomic, .keyspace = 1}};
  ASSERT_EQ(memory_.Begin(1, first, &reply_, &first_new_), Known::kNew);
  for (const packed::Header& other : others) {
    EXPECT_EQ(memory_.Begin(1, other, &reply_, &first_new_), Known::kOther);
  }
  memory_.Finish(1, 5, "bytes", 77);
  for (const packed::Header& other : others) {
    EXPECT_EQ(memory_.Begin(1, other, &reply_, &first_new_), Known::kOther);
    EXPECT_EQ(reply_.bytes, nullptr);
  }
  EXPECT_EQ(memory_.Begin(1, first, &reply_, &first_new_), Known::kKnown);
  EXPECT_EQ(*reply_.bytes, "bytes");
}

TEST_F(ReplyMemoryTest, WhatWasNotExecutedIsNew) {
  EXPECT_EQ(Begin(1, 5), Known::kNew);
  memory_.Abandon(1, 5);
  EXPECT_EQ(Begin(1, 5), Known::kNew);
  memory_.Abandon(1, 6);
  memory_.Abandon(9, 6);
}

// Goal: of a client's ids the last ones are kept; forgotten ids are never taken for new.
TEST_F(ReplyMemoryTest, ForgetsTheOldestIds) {
  const auto ids = static_cast<uint32_t>(ReplyMemory::kIdsMax);
  for (uint32_t id = 1; id <= ids + 10; ++id) ASSERT_EQ(Do(1, id), Known::kNew);
  EXPECT_EQ(Begin(1, 10), Known::kForgotten);
  EXPECT_EQ(first_new_, ids + 11u);
  EXPECT_EQ(Begin(1, 11), Known::kKnown);
  EXPECT_EQ(Begin(1, ids + 10), Known::kKnown);
}

// Goal: the last possible id can be used, and forgotten, as any other; so can the first.
TEST_F(ReplyMemoryTest, KnowsTheFirstAndTheLastId) {
  EXPECT_EQ(Do(1, 0), Known::kNew);
  EXPECT_EQ(Do(1, UINT32_MAX), Known::kNew);
  EXPECT_EQ(Begin(1, 0), Known::kKnown);
  EXPECT_EQ(memory_.FirstNewId(1), kAllIds);
  DoMany(2, memory_.clients_max());
  EXPECT_EQ(memory_.FirstNewId(1), kAllIds);
  EXPECT_EQ(Begin(1, 0), Known::kForgotten);
  EXPECT_EQ(Begin(1, UINT32_MAX), Known::kForgotten);
}

// Goal: bytes are bounded; the client with the most replies loses them first, whichever was quiet
// the longest, and none of them is taken for new then.
TEST_F(ReplyMemoryTest, ForgetsTheRepliesOfWhoHasTheMost) {
  LimitToOneMib();
  ASSERT_EQ(Do(1, 1, 100), Known::kNew);
  constexpr size_t kLarge = size_t{16} << 10;
  const auto ids = static_cast<uint32_t>(2 * memory_.bytes_max() / kLarge);
  for (uint32_t id = 1; id <= ids; ++id) ASSERT_EQ(Do(2, id, kLarge), Known::kNew);
  EXPECT_EQ(Begin(1, 1), Known::kKnown);
  EXPECT_EQ(Begin(2, ids), Known::kKnown);
  for (uint32_t id = 1; id <= ids / 2; ++id) ASSERT_EQ(Begin(2, id), Known::kForgotten);
}

// Goal: of clients with about as much, the one that was quiet the longest loses its replies first.
TEST_F(ReplyMemoryTest, ForgetsTheRepliesOfTheQuietest) {
  LimitToOneMib();
  const size_t large = memory_.bytes_max() / 4;
  DoMany(1, 4, large - 1000);
  EXPECT_EQ(Begin(1, 1), Known::kKnown);  // the client is not quiet any more
  DoMany(5, 1, large - 1000);
  EXPECT_EQ(Begin(2, 1), Known::kForgotten);
  for (const uint64_t client : {1, 3, 4, 5}) EXPECT_EQ(Begin(client, 1), Known::kKnown);
}

// Goal: a reply of half of the limit is forgotten at once, and no other one suffers.
TEST_F(ReplyMemoryTest, LetsGoOfWhatIsTooLarge) {
  LimitToOneMib();
  ASSERT_EQ(Do(1, 1), Known::kNew);
  ASSERT_EQ(Do(1, 2, memory_.bytes_max() / 2 + 1), Known::kNew);
  ASSERT_EQ(Do(1, 3), Known::kNew);
  EXPECT_EQ(Begin(1, 1), Known::kKnown);
  EXPECT_EQ(Begin(1, 2), Known::kForgotten);
  EXPECT_EQ(Begin(1, 3), Known::kKnown);
}

// Goal: the number of clients is bounded, with all their replies; messages of forgotten clients are
// never taken for new.
TEST_F(ReplyMemoryTest, RemembersThatItHasForgottenClients) {
  const uint64_t clients = 3 * memory_.clients_max();
  DoMany(1, clients);
  for (uint64_t client = 1; client <= clients; ++client) ASSERT_NE(Begin(client, 1), Known::kNew);
  EXPECT_EQ(Begin(1, 1), Known::kForgotten);
  EXPECT_EQ(Begin(1, static_cast<uint32_t>(first_new_)), Known::kNew);
  memory_.Finish(2, 1, "late", 0);  // the client is forgotten
}

// Goal: a client with a connection is not forgotten, so its next id is new however many others come
// and go; its replies may be forgotten.
TEST_F(ReplyMemoryTest, KeepsWhoHasAConnection) {
  memory_.Enter(1);
  memory_.Enter(1);
  ASSERT_EQ(Do(1, 1), Known::kNew);
  memory_.Leave(1);
  // Clients of all slots have had higher ids.
  for (uint64_t client = 2; client <= 10 * memory_.clients_max(); ++client) Do(client, 1000);
  EXPECT_EQ(memory_.FirstNewId(1), 2u);
  EXPECT_EQ(Do(1, 2), Known::kNew);
  memory_.Leave(1);
  for (uint64_t client = 2; client <= 2 * memory_.clients_max(); ++client) Do(client, 1000);
  EXPECT_EQ(memory_.FirstNewId(1), 1001u);
  EXPECT_EQ(Begin(1, 3), Known::kForgotten);
}

// Goal: clients that only connect leave nothing behind.
TEST_F(ReplyMemoryTest, KeepsNothingOfWhoMarksNothing) {
  ASSERT_EQ(Do(7, 1), Known::kNew);
  const size_t bytes = memory_.bytes();
  for (uint64_t client = 100; client < 200'000; ++client) {
    memory_.Enter(client);
    memory_.Leave(client);
  }
  EXPECT_EQ(memory_.bytes(), bytes);
  EXPECT_EQ(Begin(7, 1), Known::kKnown);
}

// Goal: under a memory limit the replies take a share of it, and give memory back when it is
// lowered.
TEST_F(ReplyMemoryTest, TakesAShareOfTheLimit) {
  for (uint32_t id = 1; id <= 60; ++id) Do(1, id, size_t{200} << 10);
  EXPECT_GT(memory_.bytes(), size_t{60 * 200} << 10);
  budget_.set_limit(uint64_t{64} << 20);
  EXPECT_EQ(memory_.bytes_max(), size_t{8} << 20);
  Do(1, 61);
  budget_.set_limit(1);
  EXPECT_EQ(memory_.bytes_max(), size_t{1} << 20);
  Do(1, 62);
  EXPECT_EQ(Begin(1, 1), Known::kForgotten);
}

// Goal: in every history, no executed message is taken for new; one above FirstNewId is new, for a
// client that has a connection; the memory is what is charged, and bounded.
// Method: random clients that begin, finish, abandon, come and go, under a small limit, against a
// set of all executed messages.
TEST_F(ReplyMemoryTest, AgreesWithAModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  budget_.set_limit(1);
  std::set<std::pair<uint64_t, uint32_t>> executed;
  std::vector<std::pair<uint64_t, uint32_t>> running;
  std::map<uint64_t, uint32_t> connections;
  const uint64_t clients = 4 * memory_.clients_max();
  uint32_t open = 0;  // connections of all clients
  uint64_t counts[4] = {};
  for (int step = 0; step < 60'000; ++step) {
    const uint64_t client = 1 + (rng() % 2 == 0 ? rng() % 4 : rng() % clients);
    const uint64_t first_new = memory_.FirstNewId(client);
    switch (rng() % 8) {
      case 0:
        if (open == 100) break;
        ++open;
        memory_.Enter(client);
        ++connections[client];
        ASSERT_EQ(memory_.FirstNewId(client), first_new);
        break;
      case 1:
        if (connections[client] == 0) break;
        memory_.Leave(client);
        --connections[client];
        --open;
        break;
      case 2:
      case 3: {
        if (running.empty()) break;
        const size_t at = rng() % running.size();
        const auto [owner, id] = running[at];
        running.erase(running.begin() + static_cast<ptrdiff_t>(at));
        if (rng() % 4 == 0) {
          memory_.Abandon(owner, id);
        } else {
          executed.insert({owner, id});
          memory_.Finish(owner, id, std::string(rng() % 3 == 0 ? rng() % 100'000 : 10, 'x'), 0);
        }
        break;
      }
      default: {
        const bool is_new = rng() % 2 == 0;
        const auto id = static_cast<uint32_t>(is_new ? first_new + rng() % 3
                                                     : rng() % std::max<uint64_t>(first_new, 1));
        const Known known = Begin(client, id);
        ++counts[static_cast<int>(known)];
        const bool is_running = std::ranges::count(running, std::pair(client, id)) > 0;
        // A client without a connection may be forgotten between the two calls.
        if (is_new && connections[client] > 0) {
          ASSERT_EQ(known, Known::kNew);
        }
        if (known == Known::kNew) {
          ASSERT_FALSE(executed.contains({client, id}) || is_running);
          running.emplace_back(client, id);
        } else if (known == Known::kKnown) {
          ASSERT_TRUE(executed.contains({client, id}));
        } else if (known == Known::kRunning) {
          ASSERT_TRUE(is_running);
        }
      }
    }
    ASSERT_LE(memory_.bytes(), memory_.bytes_max());
    ASSERT_EQ(memory_.bytes(), budget_.used());
  }
  for (const uint64_t count : counts) {
    EXPECT_GT(count, 0u);
  }
}

}  // namespace
}  // namespace skep
