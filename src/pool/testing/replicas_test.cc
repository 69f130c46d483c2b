// What becomes of items when memory servers die, stand still, come and are drained.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "pool/fields.h"
#include "pool/item_writer.h"
#include "pool/repairer.h"
#include "pool/testing/pool_worlds.h"

namespace skep::pool {
namespace {

constexpr int kKeys = 500;
constexpr uint32_t kFirst = 101;
constexpr uint32_t kSecond = 102;
constexpr uint32_t kThird = 103;

// The repairer of a pool, in the test's hands.
class TestRepairer {
 public:
  TestRepairer(rma::Fabric& fabric, LocalPool& pool)
      : session_(fabric.Open({}).value(), SystemClock(), [&pool] { return pool.map(); }),
        writer_(session_),
        repairer_(session_, writer_, figures_) {}

  // Until there is nothing to do.
  void Run() {
    do {
      session_.set_deadline_ns(session_.now_ns() + 10'000'000'000);
    } while (repairer_.Step());
  }
  const UpkeepFigures& figures() const { return figures_; }
  // Asks for a chunk to be copied, and does nothing with it.
  void AskForCopy() {
    session_.set_deadline_ns(session_.now_ns() + 10'000'000'000);
    ASSERT_TRUE(session_.Join());
    ReplyCode code;
    const auto fields = session_.Call(ClientSession::To::kHashServer,
                                      session_.RequestOf(MessageKind::kCopy), &code);
    EXPECT_TRUE(fields.has_value());
  }
  // Leases a chunk, and does not hear of it.
  void LeaseInVain() {
    session_.set_deadline_ns(session_.now_ns() + 10'000'000'000);
    ASSERT_TRUE(session_.Join());
    std::string request = session_.RequestOf(MessageKind::kLease);
    AppendVarint(request, 1);
    request.push_back(static_cast<char>(LeaseFor::kWrites));
    ReplyCode code;
    EXPECT_TRUE(session_.Call(ClientSession::To::kHashServer, request, &code).has_value());
  }
  void KeepAlive() {
    session_.set_deadline_ns(session_.now_ns() + 10'000'000'000);
    EXPECT_TRUE(session_.Renew());
    writer_.SealUnneeded();
  }
  bool Drain(uint32_t server) {
    session_.set_deadline_ns(session_.now_ns() + 10'000'000'000);
    std::string request(1, static_cast<char>(MessageKind::kDrain));
    AppendVarint(request, server);
    ReplyCode code;
    return session_.Call(ClientSession::To::kHashServer, request, &code).has_value();
  }

 private:
  UpkeepFigures figures_;
  ClientSession session_;
  ItemWriter writer_;
  Repairer repairer_;
};

template <typename World>
class ReplicasTest : public testing::Test {
 protected:
  // The times are those of servers that answer at once.
  void Open(const LocalPoolOptions& wanted) {
    LocalPoolOptions options = wanted;
    options.times.memory_gone_ns = 200'000'000;
    options.times.only_copy_gone_ns = 1'000'000'000;
    options.times.lease_ns = 400'000'000;
    options.address = [this](uint32_t server) { return world_.AddressOf(server); };
    pool_ = std::make_unique<LocalPool>(world_.fabric, options);
    engine_ = pool_->OpenEngine(kPatientEngine);
    repairer_ = std::make_unique<TestRepairer>(world_.fabric, *pool_);
    AwaitServers(options.memory_servers);
  }
  void TearDown() override {
    repairer_.reset();
    engine_.reset();
    pool_.reset();
  }

  static std::string KeyOf(int i) { return "key" + std::to_string(1000 + i); }
  // Long, so that there are some chunks.
  static std::string ValueOf(int i) { return std::string(30'000, static_cast<char>('a' + i % 26)); }
  Outcome Run(const Request& request) {
    batch_.Clear();
    batch_.Add(request);
    engine_->Execute(batch_);
    return batch_.outcome(0);
  }
  void PutAll() {
    for (int i = 0; i < kKeys; ++i) {
      const std::string value = ValueOf(i);
      const Outcome outcome = Run({.op = Op::kPut, .key = KeyOf(i), .value = value});
      ASSERT_EQ(outcome.verdict, Verdict::kDone) << outcome.status.ToString();
    }
  }
  void ExpectAll() {
    for (int i = 0; i < kKeys; ++i) {
      const Outcome outcome = Run({.op = Op::kGet, .key = KeyOf(i)});
      ASSERT_EQ(outcome.verdict, Verdict::kDone) << outcome.status.ToString();
      ASSERT_TRUE(outcome.value == ValueOf(i)) << i;
    }
    const Outcome scan = Run({.op = Op::kScan, .flags = Request::kNoUpperBound});
    ASSERT_EQ(scan.verdict, Verdict::kDone) << scan.status.ToString();
    ASSERT_EQ(scan.item_count, static_cast<uint32_t>(kKeys));
  }

  // Looks at the chunks of the hash server until it is so.
  template <typename Is>
  void AwaitChunks(Is is_so) {
    for (bool is_done = false; !is_done;) {
      engine_->Maintain(0);
      pool_->Do(1, [&](IndexServer& server) { is_done = is_so(server.state()->chunks()); });
      if (!is_done) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void AwaitServers(size_t count) {
    AwaitChunks([&](const Chunks& chunks) { return chunks.servers().size() == count; });
  }
  void AwaitState(uint32_t server, Chunks::ServerState state) {
    AwaitChunks([&](const Chunks& chunks) { return chunks.FindServer(server)->state == state; });
  }
  // All chunks that have items lie in so many frames.
  bool AllHave(uint32_t frames) {
    bool do_all = true;
    pool_->Do(1, [&](IndexServer& server) {
      for (const Chunks::Chunk& chunk : server.state()->chunks().all()) {
        const auto count = std::ranges::find(chunk.frames, kNoFrame) - chunk.frames.begin();
        if (chunk.items > 0 && count != frames) do_all = false;
      }
    });
    return do_all;
  }
  // Waits until no chunk that has items is written to, as the client sees to that servers changed.
  void AwaitSealed() {
    AwaitChunks([](const Chunks& chunks) {
      return std::ranges::none_of(chunks.all(), [](const Chunks::Chunk& chunk) {
        return chunk.items > 0 && chunk.state == Chunks::State::kLeased;
      });
    });
  }

  World world_;
  std::unique_ptr<LocalPool> pool_;
  std::unique_ptr<PoolEngine> engine_;
  std::unique_ptr<TestRepairer> repairer_;
  Batch batch_;
};

TYPED_TEST_SUITE(ReplicasTest, OwnWorlds<testing::Types>);

TYPED_TEST(ReplicasTest, ADeathLosesNothing) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  EXPECT_TRUE(this->AllHave(2));
  this->pool_->KillMemoryServer(kFirst);
  this->ExpectAll();
  // Writes wait until it is known that the server is gone.
  const Outcome put = this->Run({.op = Op::kPut, .key = "key1000", .value = this->ValueOf(0)});
  EXPECT_EQ(put.verdict, Verdict::kDone) << put.status.ToString();
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  this->PutAll();
  this->ExpectAll();
}

// Each of the two first servers dies, but a third one has come in between.
TYPED_TEST(ReplicasTest, CopiesMakeUpForADeath) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  this->repairer_->Run();
  EXPECT_EQ(this->repairer_->figures().chunks_copied, 0u) << "there is nowhere to copy to";
  this->pool_->AddMemoryServer(kThird);
  this->AwaitServers(3);
  this->AwaitSealed();
  while (!this->AllHave(2)) this->repairer_->Run();
  EXPECT_GT(this->repairer_->figures().chunks_copied, 0u);
  this->pool_->KillMemoryServer(kSecond);
  this->ExpectAll();
  this->AwaitState(kSecond, Chunks::ServerState::kGone);
  this->PutAll();
  this->ExpectAll();
}

// A server that stands still: its memory can be read over shared memory, and over TCP it cannot.
TYPED_TEST(ReplicasTest, AServerThatStandsStillIsReplaced) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  std::atomic<bool> stands{false};
  std::atomic<bool> goes_on{false};
  auto standing = MemoryServer::Standing::kServing;
  std::thread stopper([&] {
    this->pool_->Do(kFirst, [&](MemoryServer&) {
      stands = true;
      while (!goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  });
  while (!stands) std::this_thread::yield();
  this->ExpectAll();
  this->pool_->SetLive(kFirst, false);
  this->PutAll();
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  goes_on = true;
  stopper.join();
  this->ExpectAll();
  // It comes back with a session, and is told that the pool goes on without it.
  this->pool_->SetLive(kFirst, true);
  while (standing == MemoryServer::Standing::kServing) {
    this->pool_->Do(kFirst, [&](MemoryServer& server) { standing = server.standing(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(standing, MemoryServer::Standing::kReplaced);
  this->ExpectAll();
}

// Keeps a server from answering until it goes.
class Hold {
 public:
  Hold(LocalPool& pool, uint32_t server)
      : thread_([this, &pool, server] {
          pool.Do(server, [this](MemoryServer&) {
            holds_ = true;
            holds_.notify_all();
            ends_.wait(false);
          });
        }) {
    holds_.wait(false);
  }
  ~Hold() {
    ends_ = true;
    ends_.notify_all();
    thread_.join();
  }

 private:
  std::atomic<bool> holds_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

// After both have not answered for a while, the one that does again is asked, whichever of them a
// chunk names first.
TYPED_TEST(ReplicasTest, AServerThatHangsDoesNotHideTheOther) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  const auto first = std::make_unique<Hold>(*this->pool_, kFirst);
  this->engine_ = this->pool_->OpenEngine({.timeout_ms = 5000});
  {
    const Hold second(*this->pool_, kSecond);
    const Outcome outcome = this->Run({.op = Op::kGet, .key = this->KeyOf(0)});
    if (std::is_same_v<TypeParam, TcpWorld>) {
      EXPECT_EQ(outcome.status.code(), Code::kUnavailable) << outcome.status.ToString();
    }
  }
  for (int i = 0; i < kKeys; i += 10) {
    const Outcome outcome = this->Run({.op = Op::kGet, .key = this->KeyOf(i)});
    ASSERT_EQ(outcome.verdict, Verdict::kDone) << i << ": " << outcome.status.ToString();
  }
}

// Reads that a server does not answer are made at the other replica; and when nothing comes of it
// for longer its connection ends, too.
TYPED_TEST(ReplicasTest, ReadsOfASlowServerAreHedged) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  auto hold = std::make_unique<Hold>(*this->pool_, kFirst);
  const auto figure = [&](std::string_view name) {
    uint64_t found = 0;
    this->engine_->Describe(0, [&](std::string_view at, uint64_t value) {
      if (at == name) found = value;
    });
    return found;
  };
  // Over shared memory nobody waits for the server.
  const bool waits = std::is_same_v<TypeParam, TcpWorld>;
  this->ExpectAll();
  EXPECT_EQ(figure("pool_retries_slow") > 0, waits);
  // Longer than it takes to see that it hangs.
  constexpr int kGetsMax = 20'000;
  for (int i = 0; waits && i < kGetsMax && figure("pool_retries_lost") == 0; ++i) {
    const Outcome outcome = this->Run({.op = Op::kGet, .key = this->KeyOf(i % kKeys)});
    ASSERT_EQ(outcome.verdict, Verdict::kDone) << outcome.status.ToString();
  }
  EXPECT_EQ(figure("pool_retries_lost") > 0, waits);
  hold.reset();
  this->ExpectAll();
}

// A server dies, and another one is at its address before the pool knows: nobody takes what that
// has for what the dead one had, nor does a lone hash server that builds its order again.
TYPED_TEST(ReplicasTest, AnotherServerAtTheAddressIsNotTakenForIt) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->pool_->AddMemoryServer(kThird, kFirst);
  this->pool_->KillIndexServer(2);
  this->ExpectAll();
  this->PutAll();
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  this->AwaitServers(3);
  while (!this->AllHave(2)) {
    this->engine_->Maintain(0);
    this->repairer_->Run();
  }
  this->pool_->KillMemoryServer(kSecond);
  this->ExpectAll();
}

// A copier ends in the middle: another one copies the chunk all the same.
TYPED_TEST(ReplicasTest, ACopyThatWasNotFinishedIsMadeByAnother) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  this->pool_->AddMemoryServer(kThird);
  this->AwaitServers(3);
  this->AwaitSealed();
  // Each asks for a chunk, and forgets that.
  TestRepairer forgetful(this->world_.fabric, *this->pool_);
  for (int i = 0; i < 20; ++i) forgetful.AskForCopy();
  for (int i = 0; i < 20; ++i) this->repairer_->Run();
  EXPECT_FALSE(this->AllHave(2)) << "the last chunk is still the other one's";
  while (!this->AllHave(2)) forgetful.Run();
}

// Its session has ended, and it answers: ZooKeeper may be gone.
TYPED_TEST(ReplicasTest, AServerThatAnswersIsNotGone) {
  this->Open({.memory_servers = 2});
  this->pool_->SetLive(kFirst, false);
  this->PutAll();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  this->AwaitState(kFirst, Chunks::ServerState::kOpen);
  EXPECT_TRUE(this->AllHave(2));
}

TYPED_TEST(ReplicasTest, LostItemsAreErrorsAndCanBeReplaced) {
  this->Open({.memory_servers = 2, .replicas = 1});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  int lost = 0;
  for (int i = 0; i < kKeys; ++i) {
    const Outcome outcome = this->Run({.op = Op::kGet, .key = this->KeyOf(i)});
    if (outcome.verdict == Verdict::kDone) {
      ASSERT_TRUE(outcome.value == this->ValueOf(i));
      continue;
    }
    ASSERT_EQ(outcome.status.code(), Code::kCorrupt) << outcome.status.ToString();
    ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, kKeys);
  const Outcome scan = this->Run({.op = Op::kScan, .flags = Request::kNoUpperBound});
  EXPECT_EQ(scan.status.code(), Code::kCorrupt) << scan.status.ToString();
  const Outcome count = this->Run({.op = Op::kCount, .flags = Request::kNoUpperBound});
  EXPECT_EQ(count.integer, kKeys) << "the keys are there";
  this->repairer_->Run();
  EXPECT_EQ(this->repairer_->figures().keys_removed, 0u);
  this->PutAll();
  this->ExpectAll();
}

TYPED_TEST(ReplicasTest, KeysOfLostItemsAreRemovedWhereThatIsWanted) {
  this->Open({.memory_servers = 2, .replicas = 1, .removes_lost = true});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  this->repairer_->Run();
  const auto removed = static_cast<int>(this->repairer_->figures().keys_removed);
  EXPECT_GT(removed, 0);
  int absent = 0;
  for (int i = 0; i < kKeys; ++i) {
    const Outcome outcome = this->Run({.op = Op::kGet, .key = this->KeyOf(i)});
    if (outcome.verdict == Verdict::kAbsent) {
      ++absent;
    } else {
      ASSERT_TRUE(outcome.value == this->ValueOf(i)) << outcome.status.ToString();
    }
  }
  EXPECT_EQ(absent, removed);
  const Outcome scan = this->Run({.op = Op::kScan, .flags = Request::kNoUpperBound});
  EXPECT_EQ(scan.item_count, static_cast<uint32_t>(kKeys - removed)) << scan.status.ToString();
}

// A lone hash server builds its ordered index from the other replicas.
TYPED_TEST(ReplicasTest, TheOrderIsBuiltAgainFromTheOtherReplica) {
  this->Open({.memory_servers = 2});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->pool_->KillIndexServer(2);
  this->ExpectAll();
}

// And where there is none, without the keys that nobody can know any more.
TYPED_TEST(ReplicasTest, TheOrderIsBuiltWithoutWhatIsLost) {
  this->Open({.memory_servers = 2, .replicas = 1});
  this->PutAll();
  this->pool_->KillMemoryServer(kFirst);
  this->AwaitState(kFirst, Chunks::ServerState::kGone);
  this->pool_->KillIndexServer(2);
  const Outcome scan = this->Run({.op = Op::kScan, .flags = Request::kNoUpperBound});
  ASSERT_EQ(scan.verdict, Verdict::kDone) << scan.status.ToString();
  const uint32_t left = scan.item_count;
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, static_cast<uint32_t>(kKeys));
  uint32_t found = 0;
  for (int i = 0; i < kKeys; ++i) {
    const Outcome outcome = this->Run({.op = Op::kGet, .key = this->KeyOf(i)});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    if (outcome.verdict == Verdict::kDone) ++found;
  }
  EXPECT_EQ(found, left) << "both indexes have the same";
}

TYPED_TEST(ReplicasTest, ADrainedServerLeavesWhileClientsWrite) {
  for (const uint32_t replicas : {1u, 2u}) {
    this->TearDown();
    this->Open({.memory_servers = 3, .replicas = replicas});
    this->PutAll();
    std::atomic<bool> stops{false};
    std::thread writer([&] {
      const auto engine = this->pool_->OpenEngine(kPatientEngine);
      Batch batch;
      while (!stops) {
        batch.Clear();
        batch.Put("written", "meanwhile");
        engine->Execute(batch);
        ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone) << batch.outcome(0).status.ToString();
      }
    });
    ASSERT_TRUE(this->repairer_->Drain(kFirst));
    for (bool is_drained = false; !is_drained;) {
      this->engine_->Maintain(0);
      this->repairer_->Run();
      this->pool_->Do(1, [&](IndexServer& server) {
        is_drained =
            server.state()->chunks().FindServer(kFirst)->state == Chunks::ServerState::kDrained;
      });
    }
    auto standing = MemoryServer::Standing::kServing;
    while (standing == MemoryServer::Standing::kServing) {
      this->pool_->Do(kFirst, [&](MemoryServer& server) { standing = server.standing(); });
    }
    EXPECT_EQ(standing, MemoryServer::Standing::kDrained);
    this->pool_->KillMemoryServer(kFirst);
    stops = true;
    writer.join();
    this->Run({.op = Op::kDelete, .key = "written"});
    this->ExpectAll();
  }
}

// An answer to a lease was lost: the client learns of its chunk, and a drain does not wait for it.
TYPED_TEST(ReplicasTest, AChunkThatItsClientDoesNotKnowIsSealed) {
  this->Open({.memory_servers = 3});
  TestRepairer client(this->world_.fabric, *this->pool_);
  for (int i = 0; i < 6; ++i) client.LeaseInVain();
  ASSERT_TRUE(this->repairer_->Drain(kFirst));
  for (bool is_drained = false; !is_drained;) {
    client.KeepAlive();
    this->engine_->Maintain(0);
    this->pool_->Do(1, [&](IndexServer& server) {
      is_drained =
          server.state()->chunks().FindServer(kFirst)->state == Chunks::ServerState::kDrained;
    });
  }
}

// A client was silent for so long that it was forgotten, and lives: it lets go of its connections
// when it is kept alive, and what it had written to is free again.
TYPED_TEST(ReplicasTest, AForgottenClientCanBeFenced) {
  this->Open({.memory_servers = 2, .times = {.silence_ns_max = 1'000'000'000}});
  const auto silent = this->pool_->OpenEngine(kPatientEngine);
  Batch batch;
  batch.Put("silent", "value");
  silent->Execute(batch);
  ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone) << batch.outcome(0).status.ToString();
  this->AwaitChunks([](const Chunks& chunks) { return chunks.all()[0].items == 1; });
  this->AwaitSealed();
  const Outcome outcome = this->Run({.op = Op::kDelete, .key = "silent"});
  ASSERT_EQ(outcome.verdict, Verdict::kDone) << outcome.status.ToString();
  for (bool is_free = false; !is_free;) {
    silent->Maintain(0);
    this->pool_->Do(1, [&](IndexServer& server) {
      is_free = server.state()->chunks().all()[0].state == Chunks::State::kFree;
    });
  }
}

}  // namespace
}  // namespace skep::pool
