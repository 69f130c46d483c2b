// Tests a client that keeps the leaves of a server's tree (client/fat_root.h), with real servers:
// that hints are right where they can be, that they are renewed, and that none makes an answer
// wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "checked_store.h"
#include "lying_tree.h"
#include "skep/store.h"
#include "test_server.h"

namespace skep {
namespace {

std::unique_ptr<Store> ConnectTo(const Address& address, uint32_t connections = 1) {
  auto store = Store::Connect(
      {.address = address, .connections = connections, .timeout_ms = 60'000, .fat_root = true});
  SKEP_CHECK(store.has_value());
  return std::move(*store);
}

// Goal: a client learns all leaves while it executes batches; then its hints are right, and its
// memory is told.
TEST(RemoteFatRoot, IsLearntByTheWay) {
  TestServer server{ServerOptions{}};
  const auto store = ConnectTo(server.address());
  Checked checked(*store, 1);
  for (int i = 0; i < 100; ++i) checked.Put(200);
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  // Pages that split since they were learnt are asked for again.
  for (int i = 0; i < 300; ++i) checked.Read(100);
  const uint64_t hinted = Detail(*store, "fat_root_hinted");
  const uint64_t stale = Detail(*store, "fat_root_stale");
  for (int i = 0; i < 100; ++i) checked.Read(100);
  EXPECT_EQ(Detail(*store, "fat_root_hinted"), hinted + 10'000);
  EXPECT_LT(Detail(*store, "fat_root_stale"), stale + 1'000);
  EXPECT_GT(Detail(*store, "fat_root_links"), 50u);
  EXPECT_GE(Detail(*store, "fat_root_bytes"), 16 * Detail(*store, "fat_root_links"));
}

// Goal: answers are right while leaves split, join and are emptied, by several clients at once.
TEST(RemoteFatRoot, FollowsSplitsOfOthers) {
  TestServer server{ServerOptions{}};
  const auto other = ConnectTo(server.address());
  std::atomic<bool> is_over = false;
  // Keys of its own, between those that are checked.
  std::thread splitter([&] {
    for (uint64_t i = 0; !is_over; ++i) {
      Batch batch;
      for (int k = 0; k < 50; ++k) {
        const std::string key = KeyOf((i * 50 + k) * 13 % 20'000) + "x";
        i / 400 % 2 == 0 ? batch.Put(batch.scratch().Copy(key), "v")
                         : batch.Delete(batch.scratch().Copy(key));
      }
      SKEP_CHECK(other->Execute(batch).ok());
    }
  });
  const auto store = ConnectTo(server.address());
  for (int i = 0; i < 300 && !testing::Test::HasFatalFailure(); ++i) {
    Batch batch;
    std::vector<std::string> keys;
    for (int k = 0; k < 64; ++k) keys.push_back(KeyOf((i * 64 + k) * 11 % 20'000));
    for (const std::string& key : keys) batch.Put(key, key);
    ASSERT_TRUE(store->Execute(batch).ok());
    Batch reads;
    for (const std::string& key : keys) reads.Get(key);
    ASSERT_TRUE(store->Execute(reads).ok());
    for (uint32_t slot = 0; slot < reads.size(); ++slot) {
      EXPECT_EQ(reads.outcome(slot).value, keys[slot]);
    }
  }
  is_over = true;
  splitter.join();
  EXPECT_GT(Detail(*store, "fat_root_stale"), 0u);
  EXPECT_GT(Detail(*store, "fat_root_pages"), 1u);
}

// Goal: links that are wrong on purpose cost time and nothing else.
TEST(RemoteFatRoot, OfAServerThatLiesIsNeverWrong) {
  TestServer server(ServerOptions{}, {}, &kLyingTree);
  const auto store = ConnectTo(server.address());
  Checked checked(*store, 2);
  for (int i = 0; i < 100 && !testing::Test::HasFatalFailure(); ++i) {
    checked.Put(100);
    checked.Read(100);
    checked.Delete(20);
    checked.Read(1);
  }
  EXPECT_GT(Detail(*store, "fat_root_stale"), 1000u);
}

// Goal: hints that a server has given before its restart are never wrong after it.
TEST(RemoteFatRoot, FromBeforeARestartIsNeverWrong) {
  TemporaryDirectory directory;
  ServerOptions options;
  options.dir = directory.path() + "/data";
  auto server = std::make_unique<TestServer>(options);
  const Address address = server->address();
  options.port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto store = ConnectTo(address);
  Checked checked(*store, 3);
  for (int i = 0; i < 50; ++i) checked.Put(200);
  for (int i = 0; i < 50; ++i) checked.Read(50);
  server.reset();
  server = std::make_unique<TestServer>(options);
  for (int i = 0; i < 100 && !testing::Test::HasFatalFailure(); ++i) {
    checked.Read(50);
    checked.Put(20);
  }
}

// Goal: a question on a connection that nobody reads any more is asked again on another one.
// Method: the thread that asks ends with its first batch, so nobody reads the answer.
TEST(RemoteFatRoot, IsAskedForAgainByOtherThreads) {
  TestServer server{ServerOptions{}};
  const auto store = ConnectTo(server.address(), 2);
  std::thread([&] { EXPECT_TRUE(store->Put("a", "1").ok()); }).join();
  EXPECT_EQ(Detail(*store, "fat_root_pages"), 0u);
  // One of the two threads uses the other connection.
  for (int thread = 0; thread < 2; ++thread) {
    std::thread([&] {
      for (int i = 0; i < 300; ++i) EXPECT_EQ(*store->Get("a"), "1");
    }).join();
  }
  EXPECT_GT(Detail(*store, "fat_root_pages"), 0u);
}

// Goal: the hints of one keyspace are not sent to another one; an engine without leaves has none.
TEST(RemoteFatRoot, BelongsToItsKeyspace) {
  ServerOptions options;
  options.keyspace_engines[1] = "hash";
  TestServer server(options);
  const auto store = ConnectTo(server.address());
  for (const uint32_t keyspace : {0u, 1u, 2u}) {
    for (int i = 0; i < 200; ++i) {
      Batch batch;
      for (int k = 0; k < 20; ++k) {
        batch.Put(batch.scratch().Copy(KeyOf(i * 20 + k)),
                  batch.scratch().Copy(std::to_string(keyspace) + "v"));
      }
      ASSERT_TRUE(store->Execute(batch, keyspace).ok());
    }
  }
  for (const uint32_t keyspace : {0u, 1u, 2u}) {
    for (int i = 0; i < 200; ++i) {
      const auto value = store->Get(KeyOf(i * 20), keyspace);
      ASSERT_TRUE(value.has_value());
      EXPECT_EQ(*value, std::to_string(keyspace) + "v");
    }
  }
  EXPECT_EQ(Detail(*store, "fat_root_hinted", 1), 0u);
  EXPECT_GT(Detail(*store, "fat_root_hinted", 2), 1000u);
}

}  // namespace
}  // namespace skep
