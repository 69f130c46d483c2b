// Tests a client that reads the leaves of its server (ConnectOptions::one_sided), with real
// servers: that it does, without the server, and that its answers are those of a client that calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checked_store.h"
#include "client/remote_engine.h"
#include "netindex/leaves/leaf_share.h"
#include "test_server.h"

namespace skep {
namespace {

// Small nodes, so that some thousand keys make leaves that split and join.
ServerOptions SmallNodes() {
  ServerOptions options;
  options.btree_node_bytes = 2048;
  options.btree_log_bytes = 256;
  return options;
}

class OneSided : public testing::TestWithParam<const char*> {
 protected:
  void Start(ServerOptions options = SmallNodes()) {
    options.share_leaves = place_;
    server_ = std::make_unique<TestServer>(options);
    place_ = server_->server().state().leaf_share()->place();
  }
  ConnectOptions Options() const {
    return {.address = server_->address(), .timeout_ms = 60'000, .one_sided = place_};
  }
  std::unique_ptr<Store> Connect() const {
    auto store = Store::Connect(Options());
    SKEP_CHECK(store.has_value());
    return std::move(*store);
  }
  std::unique_ptr<Store> ConnectByCall() const {
    auto store = Store::Connect({.address = server_->address(), .timeout_ms = 60'000});
    SKEP_CHECK(store.has_value());
    return std::move(*store);
  }
  uint64_t Commands() {
    const std::string_view section = "stats";
    const std::string text = server_->server().Describe({&section, 1});
    const std::string_view name = "total_commands_processed:";
    return std::stoull(text.substr(text.find(name) + name.size()));
  }

  TemporaryDirectory directory_;
  std::string place_ = std::string(GetParam()) == "mem"
                           ? "mem:unix:" + directory_.path() + "/leaves"
                           : "tcp:127.0.0.1:0";
  std::unique_ptr<TestServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, OneSided, testing::Values("mem", "tcp"));

std::vector<std::string> Keys(uint32_t count) {
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < count; ++i) keys.push_back(KeyOf(i));
  return keys;
}

void PutAll(Store& store, const std::vector<std::string>& keys) {
  for (size_t begin = 0; begin < keys.size(); begin += 100) {
    Batch batch;
    for (size_t i = begin; i < std::min(begin + 100, keys.size()); ++i) batch.Put(keys[i], keys[i]);
    ASSERT_TRUE(store.Execute(batch).ok());
  }
}

// Reads all keys, present, and as many that are absent; each time.
void GetAll(Store& store, const std::vector<std::string>& keys, int times) {
  for (int t = 0; t < times; ++t) {
    for (size_t begin = 0; begin < keys.size(); begin += 50) {
      Batch batch;
      for (size_t i = begin; i < std::min(begin + 50, keys.size()); ++i) {
        batch.Get(keys[i]);
        batch.Get(batch.scratch().Copy(keys[i] + "?"));
      }
      ASSERT_TRUE(store.Execute(batch).ok());
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        const bool present = slot % 2 == 0;
        ASSERT_EQ(batch.outcome(slot).verdict, present ? Verdict::kDone : Verdict::kAbsent);
        ASSERT_EQ(batch.outcome(slot).present, present);
        ASSERT_EQ(batch.outcome(slot).value, present ? batch.requests()[slot].key : "");
      }
    }
  }
}

// Goal: once the leaves are known, GETs are answered without a command of the server's.
TEST_P(OneSided, GetsNeedNoServer) {
  Start();
  const auto store = Connect();
  const std::vector<std::string> keys = Keys(2000);
  ASSERT_NO_FATAL_FAILURE(PutAll(*store, keys));
  ASSERT_NO_FATAL_FAILURE(GetAll(*store, keys, 10));
  const uint64_t commands = Commands();
  const uint64_t answered = Detail(*store, "one_sided_answered");
  ASSERT_NO_FATAL_FAILURE(GetAll(*store, keys, 1));
  EXPECT_GE(Detail(*store, "one_sided_answered"), answered + 3'900);
  EXPECT_LE(Commands(), commands + 100);
}

// Goal: answers are right while this client writes, and scans and GETs of any keys are mixed.
TEST_P(OneSided, AnswersAgreeWithAModel) {
  Start();
  const auto store = Connect();
  Checked checked(*store, 1);
  for (int i = 0; i < 100 && !HasFatalFailure(); ++i) {
    checked.Put(100);
    checked.Read(100);
    checked.Delete(20);
    checked.Read(1);
  }
  EXPECT_GT(Detail(*store, "one_sided_answered"), 1'000u);
}

// Goal: a batch that has a key in several requests does them in their order; the other requests of
// the batch are answered as ever.
TEST_P(OneSided, ABatchKeepsTheOrderOfAKey) {
  Start();
  const auto store = Connect();
  ASSERT_NO_FATAL_FAILURE(PutAll(*store, Keys(300)));
  ASSERT_NO_FATAL_FAILURE(GetAll(*store, Keys(300), 5));
  const std::string key = KeyOf(7);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store->Put(key, "old").ok());
    Batch batch;
    const uint32_t other = batch.Get(batch.scratch().Copy(KeyOf(8)));
    const uint32_t before = batch.Get(key);
    const uint32_t again = batch.Get(key);
    batch.Put(key, "new");
    const uint32_t after = batch.Get(key);
    batch.Delete(key);
    const uint32_t gone = batch.Get(key);
    const uint32_t length = batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = "none"});
    ASSERT_TRUE(store->Execute(batch).ok());
    EXPECT_EQ(batch.outcome(other).value, KeyOf(8));
    EXPECT_EQ(batch.outcome(before).value, "old");
    EXPECT_EQ(batch.outcome(again).value, "old");
    EXPECT_EQ(batch.outcome(after).value, "new");
    EXPECT_EQ(batch.outcome(gone).verdict, Verdict::kAbsent);
    EXPECT_EQ(batch.outcome(length).verdict, Verdict::kAbsent);
  }
  EXPECT_GT(Detail(*store, "one_sided_answered"), 200u);
}

// Goal: a GET that is begun while a write of its key, or a range delete, is under way takes effect
// behind it; so does a GET behind a GET.
// Method: the second batch is begun at once, when the server has not seen the first one yet. For
// GETs another client counts upwards, and the first GET wants a hint, so that it is sent.
TEST_P(OneSided, BatchesUnderWayKeepTheOrderOfAKey) {
  Start();
  auto remote = client::Remote::Connect(Options(), SocketNetwork(), SystemClock());
  ASSERT_TRUE(remote.has_value());
  client::RemoteEngine engine(**remote, 0);
  const auto counter = ConnectByCall();
  ASSERT_TRUE(counter->Put("key", "0").ok());
  const auto get = [&](uint8_t flags) {
    auto batch = std::make_unique<Batch>();
    batch->Add({.op = Op::kGet, .flags = flags, .key = "key"});
    return batch;
  };
  for (int i = 0; i < 20; ++i) engine.Execute(*get(0));  // learns the leaf
  std::atomic<bool> is_over = false;
  std::thread counts([&] {
    for (int i = 1; !is_over; ++i) SKEP_CHECK(counter->Put("key", std::to_string(i)).ok());
  });
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    const auto first = get(Request::kWantHint);
    const auto second = get(0);
    BegunBatch one = engine.Begin(*first);
    BegunBatch two = engine.Begin(*second);
    Engine::Finish(std::move(two));
    Engine::Finish(std::move(one));
    EXPECT_LE(std::stoi(std::string(first->outcome(0).value)),
              std::stoi(std::string(second->outcome(0).value)));
  }
  is_over = true;
  counts.join();
  for (int i = 0; i < 500; ++i) {
    const std::string value = std::to_string(i);
    Batch write;
    i % 4 != 0 ? write.Put("key", value) : i % 8 == 0 ? write.DeleteRange({}) : write.DeleteAll();
    const auto second = get(0);
    BegunBatch one = engine.Begin(write);
    BegunBatch two = engine.Begin(*second);
    Engine::Finish(std::move(two));
    Engine::Finish(std::move(one));
    ASSERT_EQ(second->outcome(0).value, i % 4 != 0 ? value : "");
  }
}

// Goal: what another client was told is seen, by point and by scan.
TEST_P(OneSided, SeesWhatOthersWereTold) {
  Start();
  const auto store = Connect();
  const auto other = ConnectByCall();
  ASSERT_NO_FATAL_FAILURE(PutAll(*store, Keys(1000)));
  ASSERT_NO_FATAL_FAILURE(GetAll(*store, Keys(1000), 5));
  for (uint64_t i = 0; i < 500; ++i) {
    const std::string key = KeyOf(i * 7 % 1000);
    const std::string value = std::to_string(i);
    ASSERT_TRUE(other->Put(key, value).ok());
    Batch batch;
    const uint32_t point = batch.Get(key);
    const uint32_t scan = batch.Scan(Range::From(key), {.limit = 1});
    ASSERT_TRUE(store->Execute(batch).ok());
    ASSERT_EQ(batch.outcome(point).value, value);
    ASSERT_EQ(batch.outcome(scan).item_count, 1u);
    ASSERT_EQ((*batch.items(scan).begin()).value, value);
    if (i % 50 != 49) continue;
    Batch all;
    all.DeleteAll();
    ASSERT_TRUE(other->Execute(all).ok());
    ASSERT_FALSE(store->Get(key)->has_value());
    ASSERT_NO_FATAL_FAILURE(PutAll(*other, Keys(1000)));
  }
}

// Goal: values that lie outside their node, keys with deadlines, and other keyspaces.
TEST_P(OneSided, AsksForWhatIsNotSimple) {
  Start();
  const auto store = Connect();
  const std::string large(100'000, 'x');
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(store->Put("large", large).ok());
    ASSERT_EQ(*store->Get("large"), large);
    ASSERT_TRUE(store->Put("elsewhere", "1", 1).ok());
    ASSERT_EQ(*store->Get("elsewhere", 1), "1");
    ASSERT_FALSE(store->Get("elsewhere")->has_value());
    const std::string long_key(3000, 'k');
    ASSERT_TRUE(store->Put(long_key, "2").ok());
    ASSERT_EQ(*store->Get(long_key), "2");
  }
  Batch batch;
  batch.Put("timed", "3");
  batch.Expire("timed", SystemClock().WallUs() / 1000 + 100);
  ASSERT_TRUE(store->Execute(batch).ok());
  while (store->Get("timed")->has_value()) {
  }
}

// Goal: answers are right while leaves split and are joined by others, on several connections.
TEST_P(OneSided, ThreadsAgreeWithTheirModels) {
  Start();
  ConnectOptions options = Options();
  options.connections = 2;
  auto store = Store::Connect(options);
  ASSERT_TRUE(store.has_value());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      // Keys between those of the others.
      const std::string own = "/" + std::to_string(thread);
      for (uint64_t i = 0; i < 150 && !testing::Test::HasFatalFailure(); ++i) {
        Batch writes;
        std::vector<std::string> keys;
        for (uint64_t k = 0; k < 40; ++k) keys.push_back(KeyOf((i * 40 + k) * 11 % 5'000) + own);
        for (const std::string& key : keys) {
          i % 3 == 2 ? writes.Delete(key) : writes.Put(key, writes.scratch().Copy(key + "v"));
        }
        ASSERT_TRUE((*store)->Execute(writes).ok());
        Batch reads;
        for (const std::string& key : keys) reads.Get(key);
        ASSERT_TRUE((*store)->Execute(reads).ok());
        for (uint32_t slot = 0; slot < reads.size(); ++slot) {
          ASSERT_EQ(reads.outcome(slot).value, i % 3 == 2 ? "" : keys[slot] + "v");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(Detail(**store, "one_sided_answered"), 1'000u);
}

// Goal: after a restart the client goes on, first by call, then by reading the new server.
TEST_P(OneSided, FollowsARestart) {
  ServerOptions options = SmallNodes();
  options.dir = directory_.path() + "/data";
  Start(options);
  const Address address = server_->address();
  options.port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto store = Connect();
  Checked checked(*store, 3);
  for (int i = 0; i < 30; ++i) {
    checked.Put(200);
    checked.Read(50);
  }
  server_.reset();
  Start(options);
  const uint64_t answered = Detail(*store, "one_sided_answered");
  while (Detail(*store, "one_sided_answered") < answered + 1'000 && !HasFatalFailure()) {
    checked.Read(50);
    checked.Put(5);
  }
}

// Goal: a place where nobody shares leaves, or that is none, is refused, and so is one for a pool.
TEST(OneSidedOptions, AreChecked) {
  const TestServer server{ServerOptions{}};
  const auto code = [&](const std::string& address, const std::string& place) {
    const auto store = Store::Connect({.address = address, .one_sided = place});
    return store.has_value() ? Code::kOk : store.error().code();
  };
  EXPECT_EQ(code(server.address(), "mem:unix:/tmp/skep-nobody-is-here"), Code::kUnavailable);
  EXPECT_EQ(code(server.address(), "mem"), Code::kInvalidArgument);
  EXPECT_EQ(code(server.address(), "ofi:tcp:127.0.0.1:1"), Code::kInvalidArgument);
  EXPECT_EQ(code("pool://127.0.0.1:1/p", "mem:unix:/tmp/x"), Code::kInvalidArgument);
}

// Goal: the leaves of a server are not read for another one, which calls go to.
TEST_P(OneSided, OfAnotherServerAreNotRead) {
  Start();
  ASSERT_TRUE(ConnectByCall()->Put("key", "theirs").ok());
  const TestServer other{ServerOptions{}};
  auto store = Store::Connect({.address = other.address(), .one_sided = place_});
  ASSERT_TRUE(store.has_value());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE((*store)->Put("key", "ours").ok());
    ASSERT_EQ(*(*store)->Get("key"), "ours");
  }
  EXPECT_EQ(Detail(**store, "one_sided_answered"), 0u);
}

}  // namespace
}  // namespace skep
