// The queue and the watches of a connection, by themselves, and on a server in one thread.
#include "server/transaction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/model_engine.h"
#include "server/command.h"
#include "server/optimistic_write.h"
#include "server/server.h"
#include "server/watch_counting_engine.h"
#include "sim/simulation.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

using Words = std::vector<std::string>;

std::vector<std::string_view> ViewsOf(const Words& words) { return {words.begin(), words.end()}; }

// The model engine, whose writes are visible at once.
class Watched final : public WatchCountingEngine {
 public:
  explicit Watched(const EngineOptions& options)
      : WatchCountingEngine(std::make_unique<ModelEngine>(options)) {}

  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    gate_.Release(inner().gate().released());
    return ticket;
  }
};

// Goal: a queue returns the commands it was given, though their words are gone.
// Method: random commands from a printed seed, a few of them with long words.
TEST(Transaction, KeepsItsCommands) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const auto commands = AllCommands();
  std::vector<std::pair<const Command*, Words>> model;
  Transaction transaction;
  size_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    Words words(1 + rng() % 5);
    for (std::string& word : words)
      word.assign(rng() % (i % 100 == 0 ? 5000 : 20), static_cast<char>(rng()));
    const Command& command = commands[rng() % commands.size()];
    bytes += Transaction::BytesOf(ViewsOf(words));
    transaction.Add(command, ViewsOf(words));
    model.emplace_back(&command, words);
  }
  EXPECT_EQ(transaction.size(), model.size());
  EXPECT_GE(transaction.bytes(), bytes)
      << "what queueing costs is not less than what was asked for";
  auto expected = model.begin();
  transaction.ForEach([&](const Command& command, std::span<const std::string_view> args) {
    ASSERT_NE(expected, model.end());
    EXPECT_EQ(&command, expected->first);
    EXPECT_TRUE(std::ranges::equal(args, expected->second));
    ++expected;
  });
  EXPECT_EQ(expected, model.end());
}

// Goal: a doomed transaction holds nothing, and accepts nothing any more.
TEST(Transaction, HoldsNothingOnceDoomed) {
  const Words words{"set", "a", std::string(1000, 'x')};
  Transaction transaction;
  transaction.Add(AllCommands().front(), ViewsOf(words));
  transaction.Doom();
  transaction.Add(AllCommands().front(), ViewsOf(words));
  EXPECT_TRUE(transaction.doomed());
  EXPECT_EQ(transaction.size(), 0u);
  EXPECT_LT(transaction.bytes(), 100u);
}

// Goal: every command has an answer in a transaction: it adds to the batch, or runs at once, or
// says why it cannot.
TEST(Transaction, EveryCommandHasAnAnswer) {
  // These commands execute no batch, start no task and reply at once.
  constexpr std::string_view kRunInPlace[] = {
      "auth",       "client",       "config",       "hello",       "info",
      "psubscribe", "publish",      "pubsub",       "spublish",    "ssubscribe",
      "subscribe",  "punsubscribe", "sunsubscribe", "unsubscribe", "unwatch"};
  for (const Command& command : AllCommands()) {
    SCOPED_TRACE(command.name);
    EXPECT_TRUE(command.plan == nullptr || command.finish != nullptr);
    if (command.has(Command::kUnqueued) || !command.no_multi.empty()) continue;
    if (command.has(Command::kReadsFirst)) {
      EXPECT_TRUE(command.alone.needs_server());
      continue;
    }
    EXPECT_TRUE(command.finish != nullptr || std::ranges::count(kRunInPlace, command.name) == 1);
  }
}

class WatchedKeysTest : public testing::Test {
 protected:
  MemoryBudget budget_;
  Watched engine_{EngineOptions{.budget = &budget_}};
};

// Goal: the first change of any watched key is seen, and none of a key that is not watched.
TEST_F(WatchedKeysTest, SeeChanges) {
  const auto holds = [&](const WatchedKeys& watched) {
    Batch batch(Batch::Kind::kAtomic);
    watched.Require(batch);
    engine_.Execute(batch);
    return batch.applied();
  };
  const auto put = [&](std::string_view key) {
    Batch batch;
    batch.Put(key, "1");
    engine_.Execute(batch);
  };
  const std::vector<std::string_view> keys{"a", "b", "a"};
  WatchedKeys watched;
  ASSERT_TRUE(watched.Add(engine_, keys, 0).ok());
  EXPECT_EQ(watched.size(), 2u);
  put("c");
  EXPECT_TRUE(holds(watched));
  put("b");
  EXPECT_FALSE(holds(watched));
  ASSERT_TRUE(watched.Add(engine_, keys, 0).ok());
  EXPECT_FALSE(holds(watched)) << "watched from the first time on";
  watched.Clear();
  ASSERT_TRUE(watched.Add(engine_, keys, 0).ok());
  EXPECT_TRUE(holds(watched));
}

// Goal: watches end with Clear() and with the owner, and at once if not all keys can be watched.
TEST_F(WatchedKeysTest, AreUnwatched) {
  {
    WatchedKeys watched;
    ASSERT_TRUE(watched.Add(engine_, std::vector<std::string_view>{"a", "b"}, 0).ok());
    EXPECT_EQ(engine_.watches(), 2u);
    EXPECT_GT(watched.bytes(), 0u);
    watched.Clear();
    EXPECT_TRUE(watched.empty());
    EXPECT_EQ(watched.bytes(), 0u);
    EXPECT_EQ(engine_.watches(), 0u);
    ASSERT_TRUE(watched.Add(engine_, std::vector<std::string_view>{"a"}, 0).ok());
    const std::string long_key(engine_.traits().key_bytes_max + 1, 'x');
    const std::vector<std::string_view> keys{"b", "c", long_key};
    EXPECT_EQ(watched.Add(engine_, keys, 0).code(), Code::kTooLarge);
    EXPECT_EQ(watched.size(), 1u);
    EXPECT_EQ(engine_.watches(), 1u);
  }
  EXPECT_EQ(engine_.watches(), 0u);
}

// Goal: the number of watched keys and their bytes are bounded; after Clear() there is room again.
TEST_F(WatchedKeysTest, AreBounded) {
  WatchedKeys watched;
  for (const size_t key_bytes : {size_t{8}, size_t{60'000}}) {
    const size_t fit = std::min(kWatchesMax, kWatchedBytesMax / key_bytes);
    Status status;
    for (size_t i = 0; i <= fit; ++i) {
      ASSERT_TRUE(status.ok()) << status.ToString();
      std::string key = std::to_string(i);
      key.resize(key_bytes, 'k');
      status = watched.Add(engine_, std::vector<std::string_view>{key}, 0);
    }
    EXPECT_EQ(status.code(), Code::kTooLarge);
    EXPECT_EQ(watched.size(), fit);
    EXPECT_EQ(engine_.watches(), fit);
    watched.Clear();
  }
}

// A simulated server of one worker, whose only engine is an EngineType.
template <class EngineType>
class ServerOf {
 public:
  ServerOf() {
    EXPECT_TRUE(server_.Start().ok());
    sim_.AddActor("worker", [this] { return server_.worker(0).Turn(-1); });
  }
  EngineType& engine() { return *engine_; }
  std::unique_ptr<Stream> Connect() {
    return std::move(*sim_.network().Connect("127.0.0.1:6379", 0));
  }
  void Settle() {
    sim_.RunUntil([] { return false; }, std::chrono::milliseconds(20));
  }
  void Send(Stream& stream, std::string_view lines) {
    for (; !lines.empty(); Settle()) {
      const ssize_t taken = stream.Write(lines);
      ASSERT_TRUE(taken > 0 || taken == -EAGAIN);
      lines.remove_prefix(static_cast<size_t>(std::max<ssize_t>(taken, 0)));
    }
  }

 private:
  static std::unique_ptr<Engine> Make(const EngineOptions& options) {
    auto made = std::make_unique<EngineType>(options);
    engine_ = made.get();
    return made;
  }
  static ServerOptions Options() {
    ServerOptions options;
    options.workers = 1;
    options.logfile = "log";
    return options;
  }

  static inline EngineType* engine_ = nullptr;
  static constexpr EngineInfo kModel{"model", "", Make};

  Simulation sim_{5};
  Server server_{Options(), {sim_.clock(), sim_.random(), sim_.disk(), sim_.network()}, &kModel};
};

// Goal: no watch outlives what ends it: EXEC whatever it answers, DISCARD, UNWATCH, RESET, QUIT, a
// peer that is gone.
TEST(TransactionOnServer, LeavesNoWatch) {
  ServerOf<Watched> server;
  const std::vector<Words> ends{{"MULTI", "SET a 1", "EXEC"},
                                {"SET a 2", "MULTI", "EXEC"},
                                {"MULTI", "NOSUCH", "EXEC"},
                                {"MULTI", "EXEC x"},
                                {"MULTI", "DISCARD"},
                                {"UNWATCH"},
                                {"RESET"},
                                {"QUIT"},
                                {"gone"},
                                {"MULTI", "gone"}};
  for (const Words& end : ends) {
    SCOPED_TRACE(end.back());
    auto stream = server.Connect();
    const auto send = [&](const std::string& line) { server.Send(*stream, line + "\r\n"); };
    send("WATCH a");
    ASSERT_EQ(server.engine().watches(), 1u);
    for (const std::string& line : end) line == "gone" ? stream.reset() : send(line);
    server.Settle();
    EXPECT_EQ(server.engine().watches(), 0u);
  }
}

// An engine in which a key is written as soon as it is watched, the first times.
class Disturbed final : public WatchCountingEngine {
 public:
  explicit Disturbed(const EngineOptions& options)
      : WatchCountingEngine(std::make_unique<ModelEngine>(options)) {}

  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    gate_.Release(inner().gate().released());
    return ticket;
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    const auto watch = WatchCountingEngine::Watch(key, now_ms);
    ++watched;
    if (disturbances == 0) return watch;
    --disturbances;
    const std::string value = std::to_string(disturbances);
    Batch batch;
    batch.Put(key, value);
    Execute(batch);
    return watch;
  }

  int watched = 0;
  int disturbances = 0;
};

// Goal: a rehearsed transaction begins again when one of its keys has changed, and then sees what
// that has become; it gives up after kOptimisticAttemptsMax attempts, with nothing done. It leaves
// no watch.
TEST(TransactionOnServer, IsRehearsedAgain) {
  ServerOf<Disturbed> server;
  auto stream = server.Connect();
  const auto answer = [&](std::string_view lines) {
    server.Send(*stream, lines);
    std::string received;
    char buffer[4096];
    for (ssize_t n; (n = stream->Read(buffer, sizeof buffer)) > 0; server.Settle()) {
      received.append(buffer, static_cast<size_t>(n));
    }
    return received;
  };
  constexpr std::string_view kTransaction = "MULTI\r\nSORT a STORE b\r\nCOPY b c\r\nEXEC\r\n";
  constexpr std::string_view kCopy = "MULTI\r\nAPPEND a x\r\nCOPY a b REPLACE\r\nEXEC\r\n";
  constexpr std::string_view kQueued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n";

  answer("RPUSH a 2 1\r\n");
  EXPECT_EQ(answer(kTransaction), std::string(kQueued) + "*2\r\n:2\r\n:1\r\n");
  EXPECT_EQ(server.engine().watched, 3);
  EXPECT_EQ(server.engine().watches(), 0u);

  // Both keys of each of three attempts are written.
  answer("DEL a b c\r\n");
  server.engine().watched = 0;
  server.engine().disturbances = 6;
  EXPECT_EQ(answer(kCopy), std::string(kQueued) + "*2\r\n:2\r\n:1\r\n");
  EXPECT_EQ(server.engine().watched, 8);
  EXPECT_EQ(answer("MGET a b\r\n"), "*2\r\n$2\r\n1x\r\n$2\r\n1x\r\n");

  answer("DEL a b\r\n");
  server.engine().watched = 0;
  server.engine().disturbances = 2 * kOptimisticAttemptsMax;
  EXPECT_EQ(answer(kCopy), fmt::format("{}-{}\r\n", kQueued, kWrittenAllTheTime));
  EXPECT_EQ(server.engine().watched, 2 * kOptimisticAttemptsMax);
  EXPECT_EQ(server.engine().disturbances, 0);
  EXPECT_EQ(server.engine().watches(), 0u);
  EXPECT_EQ(answer("MGET a b\r\n"), "*2\r\n$1\r\n1\r\n$1\r\n0\r\n");
}

}  // namespace
}  // namespace skep
