// A pool in simulation, at moments that histories meet rarely.
#include "pool/testing/sim_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "model/model_engine.h"
#include "pool/lookup.h"
#include "pool/messages.h"

namespace skep::pool {
namespace {

std::unique_ptr<Engine> MakeTree() {
  static MemoryBudget budget;
  EngineOptions options;
  options.budget = &budget;
  return ModelEngine::kInfo.make(options);
}

const std::string kLong(size_t{1} << 20, 'x');

class SimPoolTest : public testing::Test {
 protected:
  Outcome Run(const Request& request) {
    batch_.Clear();
    batch_.Add(request);
    engine_->Execute(batch_);
    return batch_.outcome(0);
  }

  SimPool pool_{1, {.make_tree = &MakeTree}};
  std::unique_ptr<PoolEngine> engine_ =
      pool_.OpenEngine({.timeout_ms = 1'000}, [this] { return pool_.map(); });
  Batch batch_;
};

// Goal: an item whose bytes are not whole is no absent key (H9): the GET fails, and once they are
// whole it succeeds.
TEST_F(SimPoolTest, AnItemThatIsNotWholeIsNotAbsent) {
  ASSERT_EQ(Run({.op = Op::kPut, .key = "key", .value = "value"}).verdict, Verdict::kDone);
  std::byte* const memory = pool_.fabric().FindListener(SimPool::AddressOf(101))->RegionBegin(0);
  const std::string written(reinterpret_cast<const char*>(memory), kUnitBytes);
  ASSERT_NE(written.find("value"), std::string::npos);
  std::memset(memory, 0, kUnitBytes);
  EXPECT_EQ(Run({.op = Op::kGet, .key = "key"}).status.code(), Code::kUnavailable);
  EXPECT_GT(engine_->statistics().retries_torn, 0u);
  std::memcpy(memory, written.data(), kUnitBytes);
  EXPECT_EQ(Run({.op = Op::kGet, .key = "key"}).value, "value");
}

// Goal: when one request has waited in vain, the others of the process do not wait as long, and
// when the pool answers again all is as before, whether a request or the upkeep finds out.
TEST_F(SimPoolTest, APoolThatIsAwayIsWaitedForOnce) {
  const uint64_t wait_ns = 1'000'000'000;
  for (const bool maintains : {false, true}) {
    ASSERT_EQ(Run({.op = Op::kPut, .key = "key", .value = "value"}).verdict, Verdict::kDone);
    const uint64_t away_ns = pool_.now_ns();
    const auto waited = [&] {
      const uint64_t before_ns = pool_.now_ns();
      EXPECT_EQ(Run({.op = Op::kPut, .key = "key"}).status.code(), Code::kUnavailable);
      return pool_.now_ns() - before_ns;
    };
    for (const uint32_t server : {1, 2}) pool_.Pause(server, away_ns + 5 * wait_ns);
    EXPECT_GE(waited(), wait_ns);
    int waits = 0;
    for (int i = 0; i < 10; ++i) waits += waited() < wait_ns / 5 ? 0 : 1;
    EXPECT_LE(waits, 1) << "the first request may have had an answer to one of its calls";
    // Upkeep that finds the pool takes no time any more.
    for (uint64_t before_ns = 0; maintains && before_ns < pool_.now_ns();) {
      before_ns = pool_.now_ns();
      engine_->Maintain(0);
    }
    while (!maintains && Run({.op = Op::kGet, .key = "key"}).verdict != Verdict::kDone) {
    }
    EXPECT_EQ(Run({.op = Op::kGet, .key = "key"}).verdict, Verdict::kDone);
    for (const uint32_t server : {1, 2}) pool_.Pause(server, pool_.now_ns() + 5 * wait_ns);
    EXPECT_GE(waited(), wait_ns) << "it was there meanwhile";
    while (Run({.op = Op::kGet, .key = "key"}).verdict != Verdict::kDone) {
    }
  }
}

// Goal: upkeep, which waits for nobody for long, does not make requests give up sooner.
TEST_F(SimPoolTest, UpkeepThatFindsNobodyChangesNothing) {
  ASSERT_EQ(Run({.op = Op::kPut, .key = "key", .value = "value"}).verdict, Verdict::kDone);
  const uint64_t began_ns = pool_.now_ns();
  for (const uint32_t server : {1, 2}) pool_.Pause(server, began_ns + 600'000'000);
  engine_->Maintain(0);
  EXPECT_GE(pool_.now_ns(), began_ns + 100'000'000) << "it has waited in vain";
  EXPECT_EQ(Run({.op = Op::kPut, .key = "key", .value = "other"}).verdict, Verdict::kDone);
}

// Goal: as long as the hash server has no table a batch of GETs asks for its slots by one call; if
// the items are more than a round may bring, it asks again for those that are left.
TEST(SimPoolWithoutATable, GetsShareACall) {
  SimPool pool(1, {.chunks = 16, .make_tree = &MakeTree, .adjust = [](IndexServerOptions& server) {
                     if (server.id == 2) server.buckets_max = 1 << 10, server.overflow_max = 1;
                   }});
  const auto engine = pool.OpenEngine({.timeout_ms = 10'000}, [&] { return pool.map(); });
  Batch batch;
  const auto key_at = [&batch](std::string_view prefix, uint32_t i) {
    return batch.scratch().Copy(std::string(prefix) + std::to_string(i));
  };
  const auto put = [&](std::string_view prefix, uint32_t keys, std::string_view value) {
    batch.Clear();
    for (uint32_t i = 0; i < keys; ++i) batch.Put(key_at(prefix, i), value);
    engine->Execute(batch);
  };
  put("key", 4'000, "value");
  // Somewhat more than two rounds.
  put("long", 600, std::string(ItemFinder::kRoundBytes / 280, 'x'));
  pool.LeaveOut(1);
  pool.Kill(1);
  pool.Tell(2);
  const auto calls_of = [&](std::string_view prefix, uint32_t keys) {
    batch.Clear();
    for (uint32_t i = 0; i < keys; ++i) batch.Get(key_at(prefix, i));
    const uint64_t before = engine->statistics().calls;
    engine->Execute(batch);
    for (uint32_t i = 0; i < keys; ++i) EXPECT_EQ(batch.outcome(i).verdict, Verdict::kDone) << i;
    return engine->statistics().calls - before;
  };
  calls_of("key", 1'000);
  ASSERT_FALSE(pool.index_server(2)->state()->keeps_hash()) << "there was room for a table";
  // A call may ask whether there is a lease again.
  EXPECT_LE(calls_of("key", 1'000), 2u);
  const uint64_t calls = calls_of("long", 600);
  EXPECT_GE(calls, 3u);
  EXPECT_LE(calls, 5u);
}

// A log on a disk that may be full.
class LogOfDisk final : public IndexLog {
 public:
  FoundState TakeFound() override { return {}; }
  Ticket Append(Kind, std::string_view) override { return is_full ? 0 : ++last_; }
  void Flush(bool) override {}
  Ticket logged() const override { return last_; }
  Ticket synced() const override { return last_; }
  Status status() const override {
    return is_full ? Status(Code::kIo, "the disk is full", ENOSPC) : Status();
  }

  bool is_full = false;

 private:
  Ticket last_ = 0;
};

// Goal: while the hash server's disk is full writes are refused at once with an error of their own,
// a client that comes is told the same, and reads of the others go on; then all is as before.
TEST(SimPoolOnDisks, AFullDiskRefusesWritesAtOnce) {
  std::array<LogOfDisk, 2> logs;
  SimPool pool(1, {.make_tree = &MakeTree, .adjust = [&logs](IndexServerOptions& server) {
                     server.log = &logs[server.id - 1];
                   }});
  const auto open = [&pool] {
    return pool.OpenEngine({.timeout_ms = 10'000}, [&pool] { return pool.map(); });
  };
  const auto engine = open();
  Batch batch;
  const auto run = [&](PoolEngine& by, const Request& request) {
    const uint64_t before_ns = pool.now_ns();
    batch.Clear();
    batch.Add(request);
    by.Execute(batch);
    EXPECT_LT(pool.now_ns() - before_ns, 1'000'000'000u) << "it has waited";
    return batch.outcome(0);
  };
  const Request put = {.op = Op::kPut, .key = "key", .value = "value"};
  const Request get = {.op = Op::kGet, .key = "key"};
  ASSERT_EQ(run(*engine, put).verdict, Verdict::kDone);
  logs[0].is_full = true;
  const auto newcomer = open();
  for (const Op op : {Op::kPut, Op::kInsert, Op::kDelete}) {
    EXPECT_EQ(run(*engine, {.op = op, .key = "key"}).status, kCannotBeLogged);
  }
  // The second one needs another chunk.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run(*engine, {.op = Op::kPut, .key = "long", .value = kLong}).status,
              kCannotBeLogged);
  }
  EXPECT_EQ(run(*newcomer, put).status, kCannotBeLogged);
  EXPECT_EQ(run(*newcomer, get).status, kCannotBeLogged);
  EXPECT_EQ(run(*engine, get).value, "value");
  batch.Clear();
  batch.Scan(Range::All());
  engine->Execute(batch);
  EXPECT_EQ(batch.outcome(0).item_count, 1u);
  logs[0].is_full = false;
  EXPECT_EQ(run(*newcomer, get).value, "value");
  EXPECT_EQ(run(*engine, {.op = Op::kDelete, .key = "key"}).verdict, Verdict::kDone);
}

// Says of scans that they have seen what the hash server never applies.
class ScansAhead final : public rma::SimTamper {
 public:
  void OnArrival(rma::SimMessage& message) override {
    const bool is_scan = message.bytes[0] == static_cast<char>(MessageKind::kScan);
    if (!message.is_reply && is_scan) call_ = message.call;
  }
  void OnSend(rma::SimMessage& message) override {
    if (!message.is_reply || message.call != call_) return;
    std::string_view fields = std::string_view(message.bytes).substr(1);
    ScanReply reply;
    ASSERT_TRUE(DecodeScanReply(fields, &reply));
    reply.applied += 1000;
    std::string changed(1, message.bytes[0]);
    EncodeScanReply(reply, changed);
    message.bytes = std::move(changed);
  }

 private:
  uint64_t call_ = 0;
};

// Goal: a scan that waits for a hash server which applies nothing asks it some times in quick
// succession, and then once in a while; and it ends.
TEST_F(SimPoolTest, AScanThatWaitsDoesNotReadAllTheTime) {
  ASSERT_EQ(Run({.op = Op::kPut, .key = "key", .value = "value"}).verdict, Verdict::kDone);
  ScansAhead tamper;
  pool_.fabric().set_tamper(&tamper);
  const uint64_t rounds = engine_->statistics().rounds;
  const Request scan = {.op = Op::kScan, .flags = Request::kNoUpperBound};
  EXPECT_EQ(Run(scan).status.code(), Code::kUnavailable);
  EXPECT_GT(engine_->statistics().rounds - rounds, 64u);
  EXPECT_LT(engine_->statistics().rounds - rounds, 64u + 200u);
}

// Goal: a pool refuses a fabric that may read what memory was before.
TEST(SimPool, RefusesAFabricThatIsNotCoherent) {
  SimPool pool(1, {.fabric = {.stale_ns_max = 1'000}, .make_tree = &MakeTree});
  const auto engine = pool.OpenEngine({}, [&] { return pool.map(); });
  Batch batch;
  batch.Get("key");
  engine->Execute(batch);
  EXPECT_EQ(batch.outcome(0).status.code(), Code::kNotSupported);
}

}  // namespace
}  // namespace skep::pool
