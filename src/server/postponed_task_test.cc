// Commands with more work than a turn has time for, on a server in one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/forwarding_engine.h"
#include "keyspace/factory.h"
#include "server/server.h"
#include "sim/simulation.h"
#include "skep/client.h"
#include "skep/function.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

using packed::Header;

// Size of the value that functions run on: a quarter of an execution's work limit.
constexpr size_t kValueBytes = kWorkBytesMax / 4;

// Notes how much work the largest execution was.
class MeteredEngine final : public ForwardingEngine {
 public:
  explicit MeteredEngine(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}

  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    Release();
    work_bytes_most = std::max(work_bytes_most, batch.work_bytes());
    ++executions;
    return ticket;
  }
  void Release() override {
    inner().Release();
    gate_.Release(inner().gate().released());
  }

  size_t work_bytes_most = 0;
  uint64_t executions = 0;
};

template <const char* kInner>
std::unique_ptr<Engine> MakeMetered(const EngineOptions& options) {
  return std::make_unique<MeteredEngine>(FindEngine(kInner)->make(options));
}
constexpr char kHash[] = "hash";
constexpr char kBtree[] = "btree";
constexpr EngineInfo kEngines[] = {{"hash", "", &MakeMetered<kHash>},
                                   {"btree", "", &MakeMetered<kBtree>}};

class PostponedWork : public testing::TestWithParam<EngineInfo> {
 protected:
  struct Client {
    std::unique_ptr<Stream> stream;
    std::string received;
  };

  PostponedWork() : sim_(1, Quick()) {
    ServerOptions options;
    options.workers = 1;
    options.logfile = "log";
    options.databases = 1;
    server_ = std::make_unique<Server>(
        options, Environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()},
        &GetParam());
    EXPECT_TRUE(server_->Start().ok());
    const std::string zeros(kValueBytes, '\0');
    Batch put;
    put.Put("vector", zeros);
    engine().Execute(put);
    engine().work_bytes_most = 0;
  }

  MeteredEngine& engine() { return static_cast<MeteredEngine&>(server_->keyspaces().at(0)); }

  Client Connect() { return {.stream = std::move(*sim_.network().Connect("127.0.0.1:6379", 0))}; }
  // Connects with the packed protocol.
  Client ConnectPacked(uint64_t client = 0) {
    Client connected = Connect();
    std::string hello;
    packed::Append(hello, packed::ClientHello{.client = client});
    Send(connected, hello);
    while (Pull(connected).size() < sizeof(packed::ServerHello)) Turn();
    connected.received.erase(0, sizeof(packed::ServerHello));
    return connected;
  }
  static void Send(Client& client, std::string_view bytes) {
    ASSERT_EQ(client.stream->Write(bytes), static_cast<ssize_t>(bytes.size()));
  }
  static void Send(Client& client, const Batch& batch, const Header& header) {
    std::string bytes;
    packed::AppendBatch(bytes, header, batch);
    Send(client, bytes);
  }
  static std::string& Pull(Client& client) {
    char buffer[4096];
    for (ssize_t n; (n = client.stream->Read(buffer, sizeof buffer)) > 0;) {
      client.received.append(buffer, static_cast<size_t>(n));
    }
    return client.received;
  }

  void Turn() {
    sim_.clock().Advance(1'000'000);
    server_->worker(0).Turn(0);
  }
  // Returns the number of turns until the client has got `bytes` bytes, or `turns_max`.
  int TurnsUntil(Client& client, size_t bytes, int turns_max = 1000) {
    for (int turns = 0; turns < turns_max; ++turns) {
      if (Pull(client).size() >= bytes) return turns;
      Turn();
    }
    return turns_max;
  }
  // Reads the reply to a message into the batch; false if the message was refused.
  bool Take(Client& client, Batch& batch, uint32_t id, int* turns = nullptr) {
    int taken = TurnsUntil(client, sizeof(Header));
    const auto header = packed::Read<Header>(client.received);
    taken += TurnsUntil(client, sizeof(Header) + header.payload_bytes);
    if (turns != nullptr) *turns = taken;
    EXPECT_EQ(header.id, id);
    const std::string_view payload = batch.scratch().Copy(
        std::string_view(client.received).substr(sizeof(Header), header.payload_bytes));
    client.received.erase(0, sizeof(Header) + header.payload_bytes);
    return !header.has(packed::kFailed) && packed::ReadReply(header, payload, batch).ok();
  }

  static SimulationOptions Quick() {
    SimulationOptions options;
    options.network = {.buffer_bytes = 1 << 20,
                       .delay_ns_min = 0,
                       .delay_ns_max = 0,
                       .segment_bytes_max = 1 << 20,
                       .short_writes_ppm = 0};
    return options;
  }

  const Function* const sum_ = FindFunction(FunctionKind::kReduce, "sum", Element::kI64);
  const Function* const add_ = FindFunction(FunctionKind::kUpdate, "add", Element::kI64);
  const std::string one_ = std::string("\1\0\0\0\0\0\0\0", 8);
  Simulation sim_;
  std::unique_ptr<Server> server_;
};

INSTANTIATE_TEST_SUITE_P(Engines, PostponedWork, testing::ValuesIn(kEngines),
                         [](const auto& engine) { return std::string(engine.param.name); });

// Goal: a message with much work delays other clients by a piece of it, and their requests in the
// same turn are done, not refused. It is answered as if it had been executed at once.
// Method: functions over one value, 64 MiB in all; another client puts a byte in the same turn, and
// one in each later turn.
TEST_P(PostponedWork, OfOneMessageLetsOthersGoOn) {
  constexpr uint32_t kFunctions = 64;
  Client heavy = ConnectPacked();
  Client light = ConnectPacked();
  Batch functions;
  for (uint32_t i = 0; i < kFunctions; i += 2) {
    functions.UpdateElements("vector", add_, one_);
    functions.ReduceElements("vector", sum_);
  }
  Batch put;
  put.Put("b", "x");
  Send(heavy, functions, {.id = 1});
  Send(light, put, {.id = 1});
  int turns = 0;
  uint32_t puts = 0;
  while (Pull(heavy).size() < sizeof(Header)) {
    ASSERT_TRUE(Take(light, put, 1, &turns));
    EXPECT_EQ(put.outcome(0).verdict, Verdict::kDone);
    EXPECT_LE(turns, 3);
    ++puts;
    Send(light, put, {.id = 1});
  }
  EXPECT_GE(puts, 4u);
  EXPECT_GE(engine().work_bytes_most, kWorkBytesMax);
  // The last request may read a value together, make it anew, and return it.
  EXPECT_LE(engine().work_bytes_most, kWorkBytesMax + 3 * kValueBytes);
  ASSERT_TRUE(Take(heavy, functions, 1));
  for (uint32_t i = 1; i < kFunctions; i += 2) {
    ASSERT_EQ(functions.outcome(i).verdict, Verdict::kDone);
    EXPECT_EQ(functions.outcome(i).integer, (i + 1) / 2 * static_cast<int64_t>(kValueBytes / 8));
  }
}

// Goal: each message has a limit of answers of its own: one that asks for much does not take the
// room of others, and an execution's answers are bounded.
TEST_P(PostponedWork, OfAnswersIsBounded) {
  constexpr uint32_t kGets = 40;
  Client heavy = ConnectPacked();
  Client light = ConnectPacked();
  Batch gets;
  for (uint32_t i = 0; i < kGets; ++i) gets.Get("vector");
  Batch put;
  put.Put("b", "x");
  Send(heavy, gets, {.id = 1});
  Send(light, put, {.id = 1});
  ASSERT_TRUE(Take(light, put, 1));
  EXPECT_EQ(put.outcome(0).verdict, Verdict::kDone);
  ASSERT_TRUE(Take(heavy, gets, 1));
  for (uint32_t i = 0; i < kGets; ++i) {
    ASSERT_EQ(gets.outcome(i).verdict, Verdict::kDone);
    ASSERT_EQ(gets.outcome(i).value.size(), kValueBytes);
  }
  EXPECT_LE(engine().work_bytes_most, kWorkBytesMax + kValueBytes);
}

// Goal: a connection's messages keep their order on a key, whether they are of points, of ranges
// too, or atomic.
TEST_P(PostponedWork, KeepsTheOrderOfMessages) {
  Client client = ConnectPacked(77);
  std::vector<Batch> batches;
  for (uint32_t i = 0; i < 12; ++i) {
    Batch& batch =
        batches.emplace_back(i % 3 == 2 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    if (i % 3 == 1) batch.Count(Range::All());
    for (int n = 0; n < 3; ++n) {
      batch.UpdateElements("vector", add_, one_);
      batch.ReduceElements("vector", sum_);
    }
    Send(client, batch, {.id = i + 1, .flags = packed::kRemember});
  }
  std::vector<std::optional<int64_t>> sums(batches.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    TurnsUntil(client, sizeof(Header));
    const auto id = packed::Read<Header>(client.received).id;
    Batch& batch = batches[id - 1];
    ASSERT_TRUE(Take(client, batch, id));
    const auto last = static_cast<uint32_t>(batch.size()) - 1;
    ASSERT_EQ(batch.outcome(last).verdict, Verdict::kDone);
    sums[id - 1] = batch.outcome(last).integer;
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], static_cast<int64_t>(3 * (i + 1) * (kValueBytes / 8))) << i;
  }
}

// Goal: the commands of a pipeline are replied to in order, also those behind one with much work,
// whether they are points, local commands, multi-key commands, ranges or errors.
TEST_P(PostponedWork, OfAPipelineKeepsItsOrder) {
  Client client = Connect();
  Client light = Connect();
  std::string pipeline;
  std::string expected;
  const auto add = [&](std::initializer_list<std::string_view> args, const std::string& reply) {
    AppendCommand(pipeline, args);
    expected += reply;
  };
  for (int64_t i = 1; i <= 20; ++i) {
    add({"VUPDATE", "vector", "add", "i64", "1"}, ":" + std::to_string(kValueBytes / 8) + "\r\n");
    const std::string number = std::to_string(i);
    const std::string bulk = "$" + std::to_string(number.size()) + "\r\n" + number + "\r\n";
    add({"INCR", "n"}, ":" + number + "\r\n");
    add({"PING"}, "+PONG\r\n");
    if (i % 5 == 0) add({"MSET", "a", number, "b", number}, "+OK\r\n");
    if (i % 5 == 0) add({"MGET", "a", "b"}, "*2\r\n" + bulk + bulk);
    if (i % 7 == 0) add({"DBSIZE"}, i < 10 ? ":4\r\n" : ":4\r\n");
    if (i % 3 == 0) add({"STRLEN", "vector"}, ":" + std::to_string(kValueBytes) + "\r\n");
  }
  add({"MULTI"}, "+OK\r\n");
  add({"INCR", "n"}, "+QUEUED\r\n");
  add({"EXEC"}, "*1\r\n:21\r\n");
  add({"QUIT"}, "+OK\r\n");
  Send(client, pipeline);
  std::string get;
  AppendCommand(get, {"GET", "none"});
  int gets = 0;
  while (Pull(client).size() < expected.size() && gets < 1000) {
    light.received.clear();
    Send(light, get);
    EXPECT_LE(TurnsUntil(light, 5), 3);
    ++gets;
  }
  EXPECT_EQ(client.received, expected);
  EXPECT_GE(gets, 2);
  EXPECT_LE(engine().work_bytes_most, kWorkBytesMax + 3 * kValueBytes);
  TurnsUntil(client, expected.size() + 1, 10);
  char byte;
  EXPECT_EQ(client.stream->Read(&byte, 1), 0) << "QUIT ends the connection, behind all replies";
}

// Goal: if a connection breaks in the middle of a message, its finished work stays, and the answer
// says so; the rest is not done, then or later.
TEST_P(PostponedWork, EndsWithItsConnection) {
  constexpr uint32_t kUpdates = 64;
  constexpr uint64_t kClient = 77;
  Batch updates;
  for (uint32_t i = 0; i < kUpdates; ++i) {
    updates.UpdateElements("vector", add_, one_, {.returns = UpdateOptions::Returns::kNothing});
    updates.Put("last", "x");
  }
  Client first = ConnectPacked(kClient);
  Send(first, updates, {.id = 5, .flags = packed::kRemember});
  Turn();
  Turn();
  server_->clients().EndLargest(0);
  Turn();
  const uint64_t executions = engine().executions;
  Client second = ConnectPacked(kClient);
  Send(second, updates, {.id = 5, .flags = packed::kRemember});
  ASSERT_TRUE(Take(second, updates, 5));
  EXPECT_EQ(engine().executions, executions) << "it is not executed again";
  uint32_t done = 0;
  for (uint32_t i = 0; i < 2 * kUpdates; i += 2) {
    const Outcome& out = updates.outcome(i);
    if (out.verdict == Verdict::kDone) {
      EXPECT_EQ(done, i / 2) << "of one key the first are done";
      ++done;
      continue;
    }
    ASSERT_EQ(out.verdict, Verdict::kRefused);
    EXPECT_EQ(out.status.code(), Code::kUnavailable);
    EXPECT_EQ(out.status.detail(), kNothingSent);
  }
  EXPECT_GE(done, 2u);
  EXPECT_LE(done, 20u);
  Batch sum;
  sum.ReduceElements("vector", sum_);
  Send(second, sum, {.id = 6});
  ASSERT_TRUE(Take(second, sum, 6));
  EXPECT_EQ(sum.outcome(0).integer, static_cast<int64_t>(done * (kValueBytes / 8)));
}

// Goal: an atomic batch, which cannot be divided, is refused beyond its limit.
TEST_P(PostponedWork, OfAnAtomicBatchHasALimit) {
  Client client = ConnectPacked();
  Batch sums(Batch::Kind::kAtomic);
  sums.Put("b", "x");
  for (size_t i = 0; i < kAtomicWorkBytesMax / kValueBytes + 2; ++i) {
    sums.ReduceElements("vector", sum_);
  }
  Send(client, sums, {.id = 1});
  ASSERT_TRUE(Take(client, sums, 1));
  EXPECT_FALSE(sums.applied());
  uint32_t refused = 0;
  for (uint32_t slot = 0; slot < sums.size(); ++slot) {
    const Outcome& out = sums.outcome(slot);
    if (out.verdict == Verdict::kAborted) continue;
    ++refused;
    EXPECT_EQ(out.verdict, Verdict::kRefused);
    EXPECT_EQ(out.status.code(), Code::kTooLarge);
    EXPECT_EQ(out.status.detail(), kAtomicWorkBytesMax);
  }
  EXPECT_EQ(refused, 1u);
}

}  // namespace
}  // namespace skep
