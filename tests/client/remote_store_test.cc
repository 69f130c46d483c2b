// Tests a store that is a server's, as its users see it: the calls of Store, connections that
// break, servers that restart.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/busy_listener_test.h"
#include "flaky_proxy.h"
#include "lossy_network.h"
#include "skep/store.h"
#include "test_server.h"

namespace skep {
namespace {

std::unique_ptr<Store> ConnectTo(const Address& address, ConnectOptions options = {}) {
  options.address = address;
  auto store = Store::Connect(options);
  SKEP_CHECK(store.has_value());
  return std::move(*store);
}

// ---- The calls ----

// The parameter: whether datagrams are used.
class RemoteStore : public testing::TestWithParam<bool> {
 protected:
  TestServer server_{[] {
    ServerOptions options;
    options.keyspace_engines[1] = "hash";
    options.udp = GetParam();
    return options;
  }()};
  std::unique_ptr<Store> store_ = ConnectTo(server_.address(), {.datagrams = GetParam()});
};

INSTANTIATE_TEST_SUITE_P(All, RemoteStore, testing::Bool(),
                         [](const auto& param) { return param.param ? "Datagrams" : "Stream"; });

TEST_P(RemoteStore, Points) {
  for (const uint32_t keyspace : {0u, 1u}) {
    EXPECT_TRUE(store_->Put("a", "1", keyspace).ok());
    EXPECT_EQ(*store_->Get("a", keyspace), "1");
    EXPECT_EQ(*store_->Get("b", keyspace), std::nullopt);
    EXPECT_FALSE(*store_->Insert("a", "2", keyspace));
    EXPECT_TRUE(*store_->Update("a", "2", keyspace));
    EXPECT_TRUE(*store_->CompareAndSet("a", "2", "3", keyspace));
    EXPECT_FALSE(*store_->CompareAndSet("a", "2", "4", keyspace));
    EXPECT_TRUE(*store_->Delete("a", keyspace));
    EXPECT_FALSE(*store_->Delete("a", keyspace));
  }
  EXPECT_EQ(store_->Put("a", "1", 99).code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->Put(std::string(70'000, 'k'), "1").code(), Code::kTooLarge);
}

TEST_P(RemoteStore, Deadlines) {
  const Deadline soon = DeadlineAfter(std::chrono::hours(1));
  EXPECT_TRUE(store_->PutUntil("a", "1", soon).ok());
  EXPECT_EQ(*store_->DeadlineOf("a"), soon);
  EXPECT_TRUE(*store_->Expire("a", kNever));
  EXPECT_EQ(*store_->DeadlineOf("a"), kNever);
  EXPECT_TRUE(*store_->Expire("a", DeadlineAfter(std::chrono::milliseconds(-5))));
  EXPECT_EQ(*store_->Get("a"), std::nullopt);
}

// Goal: ranges longer than one answer of the server are of one state.
TEST_P(RemoteStore, Ranges) {
  constexpr int kKeys = 50'000;
  Batch batch;
  for (int i = 0; i < kKeys; ++i) {
    batch.Put(batch.scratch().Copy("key" + std::to_string(100'000 + i)), "value");
  }
  ASSERT_TRUE(store_->Execute(batch).ok());
  EXPECT_EQ(*store_->Count(Range::All()), kKeys);
  const auto snapshot = store_->TakeSnapshot();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(*store_->DeleteRange(Range::From("key125000")), kKeys / 2);
  int seen = 0;
  auto scan = store_->Scan(Range::All(), {.reverse = true}, 0, &*snapshot);
  for (; scan.Next(); ++seen) {
    ASSERT_EQ(scan.key(), "key" + std::to_string(100'000 + kKeys - 1 - seen));
  }
  EXPECT_TRUE(scan.status().ok());
  EXPECT_EQ(seen, kKeys);
  // In a batch the server cuts the range, and the client completes it.
  batch.Clear();
  batch.Scan(Range::All());
  batch.Count(Range::From("key"));
  batch.Scan(Range::All(), {.limit = 20'000, .reverse = true});
  ASSERT_TRUE(store_->Execute(batch).ok());
  EXPECT_EQ(batch.items(0).size(), kKeys / 2);
  EXPECT_FALSE(batch.outcome(0).more);
  EXPECT_EQ(batch.outcome(1).integer, kKeys / 2);
  EXPECT_EQ(batch.items(2).size(), 20'000u);
  EXPECT_TRUE(batch.outcome(2).more);
  EXPECT_EQ(batch.items(2).front().key, "key124999");
}

TEST_P(RemoteStore, AtomicBatchesAndWatches) {
  Batch atomic(Batch::Kind::kAtomic);
  atomic.RequireAbsent("a");
  atomic.Put("a", "1");
  atomic.Put("b", "2");
  ASSERT_TRUE(store_->Execute(atomic).ok());
  EXPECT_TRUE(atomic.applied());
  ASSERT_TRUE(store_->Execute(atomic).ok());
  EXPECT_FALSE(atomic.applied());
  EXPECT_EQ(atomic.outcome(0).verdict, Verdict::kExists);
  auto watch = store_->WatchKey("a");
  ASSERT_TRUE(watch.has_value());
  Batch unchanged(Batch::Kind::kAtomic);
  unchanged.RequireUnchanged("a", watch->id());
  unchanged.Put("c", "3");
  ASSERT_TRUE(store_->Execute(unchanged).ok());
  EXPECT_TRUE(unchanged.applied());
  ASSERT_TRUE(store_->Put("a", "other").ok());
  ASSERT_TRUE(store_->Execute(unchanged).ok());
  EXPECT_FALSE(unchanged.applied());
}

TEST_P(RemoteStore, FunctionsByTheirNames) {
  Batch batch;
  batch.Apply("n", functions::kAddDecimal, "5");
  batch.Apply("n", functions::kAddDecimal, "-2");
  ASSERT_TRUE(store_->Execute(batch, 1).ok());
  EXPECT_EQ(batch.outcome(1).integer, 3);
  EXPECT_EQ(*store_->Get("n", 1), "3");
}

// Goal: many batches under way at once, each with its own answers.
TEST_P(RemoteStore, BatchesUnderWay) {
  constexpr int kBatches = 100;
  std::vector<Batch> batches(kBatches);
  std::vector<BatchFuture> futures;
  for (int i = 0; i < kBatches; ++i) {
    const std::string_view key = batches[i].scratch().Copy(std::to_string(i));
    batches[i].Put(key, key);
    batches[i].Get(key);
    futures.push_back(store_->Begin(batches[i]));
  }
  for (int i = kBatches - 1; i >= 0; --i) {
    if (i % 7 == 0) continue;  // its batch is abandoned
    ASSERT_TRUE(futures[i].Wait().ok());
    EXPECT_EQ(batches[i].outcome(1).value, std::to_string(i));
  }
  futures.clear();
  EXPECT_EQ(*store_->Count(Range::All()), kBatches);
  Batch none;
  EXPECT_EQ(store_->Begin(none, 77).Wait().code(), Code::kInvalidArgument);
}

// Goal: values that fit into a message arrive whole, also if they do not fit into a datagram.
TEST_P(RemoteStore, ValuesOfAnySize) {
  for (const size_t bytes : {0u, 1u, 1'000u, 1'500u, 30'000u, 33'000u, 65'500u, 1'000'000u}) {
    const std::string value(bytes, 'v');
    ASSERT_TRUE(store_->Put("k", value).ok());
    ASSERT_EQ(*store_->Get("k"), value);
    // A write that returns the old value is done once whichever way its reply comes.
    Batch batch;
    batch.Put("k", "", Request::kReturnPrevious);
    ASSERT_TRUE(store_->Execute(batch).ok());
    ASSERT_EQ(batch.outcome(0).value, value);
  }
}

TEST_P(RemoteStore, StatisticsOfWhatIsThere) {
  ASSERT_TRUE(store_->Put("a", "1").ok());
  ASSERT_TRUE(store_->Put("a", "1", 1).ok());
  const StoreStatistics statistics = store_->Statistics();
  ASSERT_EQ(statistics.keyspaces.size(), 2u);
  EXPECT_EQ(statistics.keyspaces[0].engine, "btree");
  EXPECT_EQ(statistics.keyspaces[0].items, 1u);
  EXPECT_EQ(statistics.keyspaces[1].engine, "hash");
  EXPECT_EQ(store_->SaveSnapshot().code(), Code::kNotSupported);
}

TEST(RemoteStoreOptions, AreChecked) {
  TestServer server([] {
    ServerOptions options;
    options.requirepass = "secret";
    return options;
  }());
  EXPECT_EQ(Store::Connect({.address = server.address()}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Store::Connect({.address = "nonsense"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Store::Connect({.address = "127.0.0.1:1"}).error().code(), Code::kUnavailable);
  EXPECT_EQ(Store::Connect({.address = server.address(), .connections = 0}).error().code(),
            Code::kInvalidArgument);
  const auto store = Store::Connect({.address = server.address(), .password = "secret"});
  ASSERT_TRUE(store.has_value());
  EXPECT_TRUE((*store)->Put("a", "1").ok());
  const std::string port = server.address().substr(server.address().rfind(':'));
  EXPECT_TRUE(Store::Connect({.address = "localhost" + port, .password = "secret"}).has_value());
  EXPECT_EQ(Store::Connect({.address = "localhost:none"}).error().code(), Code::kInvalidArgument);
}

// Goal: where no server answers, connecting ends in time.
TEST(RemoteStoreOptions, ConnectingEndsInTime) {
  const BusyListener busy("127.0.0.1:0");
  const uint64_t begin_ms = SystemClock().MonotonicMs();
  const auto store = Store::Connect({.address = busy.address(), .timeout_ms = 100});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code(), Code::kUnavailable);
  EXPECT_LT(SystemClock().MonotonicMs() - begin_ms, 60'000u);  // the system itself waits longer
}

// ---- Connections that break ----

// Goal: while one call waits to be connected again others can begin; all are done once the server
// is back.
// Method: for a while a listener that accepts no connections takes the server's place.
TEST(RemoteStoreFailures, OthersBeginWhileOneConnects) {
  TemporaryDirectory directory;
  const std::string socket = directory.path() + "/socket";
  auto server = std::make_unique<TestServer>(ServerOptions{}, socket);
  const auto store = ConnectTo(server->address(), {.timeout_ms = 60'000});
  ASSERT_TRUE(store->Put("k", "v").ok());
  server.reset();
  auto busy = std::make_unique<BusyListener>("unix:" + socket);
  std::atomic<bool> is_done = false;
  std::thread waiting([&] {
    EXPECT_EQ(*store->Get("k"), std::nullopt);
    is_done = true;
  });
  // By now the thread is connecting; if it is not, this test tests less.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Batch batch;
  batch.Get("k");
  BatchFuture begun = store->Begin(batch);
  EXPECT_FALSE(is_done);
  busy.reset();
  server = std::make_unique<TestServer>(ServerOptions{}, socket);
  EXPECT_TRUE(begun.Wait().ok());
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kAbsent);
  waiting.join();
}

// Goal: a call ends in time also while it waits to be connected again.
TEST(RemoteStoreFailures, ReconnectingEndsInTime) {
  TemporaryDirectory directory;
  const std::string socket = directory.path() + "/socket";
  auto server = std::make_unique<TestServer>(ServerOptions{}, socket);
  const auto store = ConnectTo(server->address(), {.timeout_ms = 300});
  server.reset();
  const BusyListener busy("unix:" + socket);
  EXPECT_EQ(store->Get("k").error().code(), Code::kUnavailable);
  EXPECT_EQ(store->Put("k", "v").code(), Code::kUnavailable);
}

// Goal: a store goes on with a restarted server and the data that it had kept; earlier snapshots
// are too old.
TEST(RemoteStoreFailures, ARestartedServer) {
  TemporaryDirectory directory;
  ServerOptions options;
  options.dir = directory.path() + "/data";
  const std::string socket = directory.path() + "/socket";
  auto server = std::make_unique<TestServer>(options, socket);
  const auto store = ConnectTo("unix:" + socket);
  ASSERT_TRUE(store->Put("a", "1").ok());
  EXPECT_TRUE(store->SaveSnapshot().ok());
  const auto snapshot = store->TakeSnapshot();
  ASSERT_TRUE(snapshot.has_value());
  server.reset();
  server = std::make_unique<TestServer>(options, socket);
  EXPECT_EQ(*store->Get("a"), "1");
  EXPECT_TRUE(store->Put("a", "2").ok());
  EXPECT_EQ(store->Count(Range::All(), 0, &*snapshot).error().code(), Code::kSnapshotTooOld);
}

// Goal: without a server a call fails in time.
TEST(RemoteStoreFailures, NoServer) {
  TemporaryDirectory directory;
  const std::string socket = directory.path() + "/socket";
  auto server = std::make_unique<TestServer>(ServerOptions{}, socket);
  const auto store = ConnectTo("unix:" + socket, {.timeout_ms = 1500});
  ASSERT_TRUE(store->Put("a", "1").ok());
  server.reset();
  EXPECT_EQ(store->Get("a").error().code(), Code::kUnavailable);
  EXPECT_EQ(store->Put("a", "1").code(), Code::kUnavailable);
  server = std::make_unique<TestServer>(ServerOptions{}, socket);
  EXPECT_TRUE(store->Put("a", "1").ok());
}

// Goal: additions of threads through connections that break again and again are done exactly once,
// and each is reported as done; a read never finds nothing.
// Method: a proxy that cuts connections at random, in the middle of messages and replies.
TEST(RemoteStoreFailures, AddsOnceOverConnectionsThatBreak) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  TestServer server{ServerOptions{}};
  FlakyProxy proxy(server.address(), seed, 3000);
  const auto store = ConnectTo(proxy.address(), {.connections = 2, .timeout_ms = 60'000});
  constexpr int kThreads = 3;
  constexpr int kBatches = 400;
  std::atomic<int> added{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kBatches; ++i) {
        Batch batch;
        batch.Apply("n", functions::kAddDecimal, "1");
        batch.Get("n");
        ASSERT_TRUE(store->Execute(batch).ok());
        ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone) << batch.outcome(0).status.ToString();
        ASSERT_EQ(batch.outcome(1).verdict, Verdict::kDone);
        ++added;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, kThreads * kBatches);
  EXPECT_EQ(*store->Get("n"), std::to_string(added));
  EXPECT_GT(proxy.cuts(), 5u);
}

// Goal: additions are done exactly once also if no datagram arrives, and if many are lost or
// doubled.
TEST(RemoteStoreFailures, AddsOnceWhateverBecomesOfDatagrams) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  constexpr int kBatches = 10;
  for (const uint32_t lost : {1'000'000u, 300'000u}) {
    LossyNetwork network({.lost = lost, .doubled = 300'000}, seed);
    ServerOptions options;
    options.udp = true;
    TestServer server(options, {}, nullptr, network);
    const auto store = ConnectTo(server.address(), {.timeout_ms = 60'000, .datagrams = true});
    for (int i = 1; i <= kBatches; ++i) {
      Batch batch;
      batch.Apply("n", functions::kAddDecimal, "1");
      ASSERT_TRUE(store->Execute(batch).ok());
      ASSERT_EQ(batch.outcome(0).integer, i);
    }
    EXPECT_GT(network.lost(), 0u);
  }
}

// Goal: datagrams sent before a restart have no effect on the restarted server; later ones have.
TEST(RemoteStoreFailures, ARestartedServerOfDatagrams) {
  TemporaryDirectory directory;
  ServerOptions options;
  options.dir = directory.path() + "/data";
  options.udp = true;
  auto server = std::make_unique<TestServer>(options);
  const Address address = server->address();
  options.port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto store = ConnectTo(address, {.datagrams = true});
  ASSERT_TRUE(store->Put("a", "1").ok());
  server.reset();
  server = std::make_unique<TestServer>(options);
  EXPECT_EQ(*store->Get("a"), "1");
  EXPECT_TRUE(store->Put("a", "2").ok());
  EXPECT_EQ(*store->Get("a"), "2");
}

// Goal: without the server's memory a write whose connection breaks is not sent again: it is done
//   at most once, and an error says that it may have been.
TEST(RemoteStoreFailures, AddsAtMostOnceWithoutMemory) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  TestServer server{ServerOptions{}};
  FlakyProxy proxy(server.address(), seed, 3000);
  const auto store = ConnectTo(proxy.address(), {.timeout_ms = 60'000, .remembers_writes = false});
  int told = 0;
  constexpr int kBatches = 500;
  for (int i = 0; i < kBatches; ++i) {
    Batch batch;
    batch.Apply("n", functions::kAddDecimal, "1");
    ASSERT_TRUE(store->Execute(batch).ok());
    const Outcome& outcome = batch.outcome(0);
    if (outcome.verdict == Verdict::kDone)
      ++told;
    else
      ASSERT_EQ(outcome.status.code(), Code::kUnavailable);
  }
  const int done = std::stoi(**store->Get("n"));
  EXPECT_GE(done, told);
  EXPECT_LE(done, kBatches);
  EXPECT_LT(told, kBatches);
}

}  // namespace
}  // namespace skep
