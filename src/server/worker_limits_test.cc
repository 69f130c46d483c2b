// How a worker treats clients that take too much, or do not read: on a server in one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/connections.h"
#include "server/server.h"
#include "sim/simulation.h"
#include "wire/packed_request.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kKeys = 2000;
constexpr size_t kValueBytes = 8192;
constexpr size_t kDataBytes = kKeys * kValueBytes;

class WorkerLimits : public testing::Test {
 protected:
  explicit WorkerLimits(size_t buffer_bytes = SimNetworkOptions().buffer_bytes)
      : sim_(7, {.network = {.buffer_bytes = buffer_bytes, .short_writes_ppm = 0}}) {}

  void Start(ServerOptions options) {
    options.workers = 1;
    options.logfile = "log";
    server_ = std::make_unique<Server>(
        options, Environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()});
    ASSERT_TRUE(server_->Start().ok());
    sim_.AddActor("worker", [this] { return Turn(); });
    const std::string value(kValueBytes, 'v');
    for (uint32_t i = 0; i < kKeys; ++i) Put(std::to_string(kKeys + i), value);
  }

  bool Turn() {
    const WorkerStatistics& statistics = server_->worker(0).statistics();
    const uint64_t before = statistics.batch_requests.load();
    const uint64_t sent_before = statistics.output_bytes.load();
    const bool busy = server_->worker(0).Turn(-1);
    requests_most_ = std::max(requests_most_, statistics.batch_requests.load() - before);
    sent_most_ = std::max(sent_most_, statistics.output_bytes.load() - sent_before);
    used_most_ = std::max(used_most_, server_->keyspaces().budget().used());
    client_bytes_most_ = std::max(client_bytes_most_, server_->clients().bytes());
    return busy;
  }

  void Put(const std::string& key, const std::string& value) {
    Batch batch;
    batch.Put(key, value);
    engine().Execute(batch);
    ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
  }

  // Makes memory scarce, with room for a reply's buffer and for some writes.
  void LeaveATenth() {
    MemoryBudget& budget = server_->keyspaces().budget();
    budget.set_limit(budget.used() + kDataBytes / 8);
    ASSERT_FALSE(budget.HasRoomFor(budget.limit() / 8));
  }

  std::unique_ptr<Stream> Ask(std::string_view bytes) {
    auto stream = sim_.network().Connect("127.0.0.1:6379", 0);
    EXPECT_TRUE(stream.has_value());
    EXPECT_EQ((*stream)->Write(bytes), static_cast<ssize_t>(bytes.size()));
    return std::move(*stream);
  }
  std::unique_ptr<Stream> AskForAll() {
    std::string bytes;
    AppendCommand(bytes, {"KRANGE", "-", "+", "WITHVALUES"});
    auto stream = Ask(bytes);
    Pass(milliseconds(20));
    return stream;
  }
  // All replies, until nothing comes for a while.
  std::string ReplyTo(std::string_view bytes) {
    const auto stream = Ask(bytes);
    std::string reply;
    std::string piece(64 * 1024, '\0');
    for (int quiet = 0; quiet < 20; ++quiet) {
      Pass(milliseconds(5));
      for (ssize_t got; (got = stream->Read(piece.data(), piece.size())) > 0; quiet = 0) {
        reply.append(piece, 0, static_cast<size_t>(got));
      }
    }
    return reply;
  }

  void Pass(std::chrono::nanoseconds time) {
    sim_.RunUntil([] { return false; }, time);
  }
  Engine& engine() { return server_->keyspaces().at(0); }

  Simulation sim_;
  std::unique_ptr<Server> server_;
  // The most over all turns: requests in a turn; bytes of all clients after a turn.
  uint64_t requests_most_ = 0;
  uint64_t client_bytes_most_ = 0;
  uint64_t sent_most_ = 0;  // bytes in a turn
  uint64_t used_most_ = 0;  // of the memory budget
};

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++count;
  return count;
}

// The network takes whatever the server gives it.
class LargeReplies : public WorkerLimits {
 protected:
  LargeReplies() : WorkerLimits(size_t{1} << 30) {}
};

// Goal: however large the values are that clients ask for, a turn hands the network no more bytes
// than it may of one connection and of all, and the replies take no memory beside the values.
// Method: the values together are many times what a turn may send; the clients read nothing until
// all is sent, and then find each value whole.
TEST_F(LargeReplies, LeaveInPiecesAndAreNotCopied) {
  constexpr size_t kLarge = size_t{3} << 20;
  Start({.engine = "btree"});
  std::string ask = "*5\r\n$4\r\nMGET\r\n";
  std::string expected = "*4\r\n";
  for (const char name : {'a', 'b', 'c', 'd'}) {
    Put(std::string(1, name), std::string(kLarge, name));
    ask += std::string("$1\r\n") + name + "\r\n";
    expected += "$3145728\r\n" + std::string(kLarge, name) + "\r\n";
  }
  const auto receive = [&](Stream& stream) {
    std::string reply(expected.size(), '\0');
    size_t size = 0;
    for (ssize_t got; size < reply.size(); size += static_cast<size_t>(got)) {
      got = stream.Read(reply.data() + size, reply.size() - size);
      if (got <= 0) break;
    }
    reply.resize(size);
    return reply;
  };
  Pass(milliseconds(20));
  const uint64_t used = server_->keyspaces().budget().used();
  sent_most_ = used_most_ = 0;
  const auto alone = Ask(ask);
  Pass(milliseconds(500));
  EXPECT_EQ(sent_most_, Connections::kSendBytesMax);
  std::vector<std::unique_ptr<Stream>> all;
  for (int i = 0; i < 12; ++i) all.push_back(Ask(ask));
  Pass(seconds(2));
  EXPECT_LE(sent_most_, Connections::kTurnSendBytesMax + Connections::kSendBytesMax);
  EXPECT_LT(used_most_, used + kLarge);
  EXPECT_TRUE(receive(*alone) == expected);
  for (const auto& stream : all) EXPECT_TRUE(receive(*stream) == expected);
  Pass(milliseconds(200));
  EXPECT_LT(server_->clients().bytes(), kLarge);
}

// Goal: a client that has asked for large values and goes away lets go of them, wherever its reply
// has come to; meanwhile all of it counts as the client's.
TEST_F(WorkerLimits, ValuesOfThoseThatGoAwayAreLetGo) {
  constexpr size_t kLarge = size_t{3} << 20;
  Start({.engine = "btree"});
  const uint64_t used = server_->keyspaces().budget().used();
  Put("large", std::string(kLarge, 'v'));
  auto client = Ask("*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n");
  Pass(milliseconds(50));
  EXPECT_GT(server_->clients().bytes(), kLarge / 2);
  Put("large", "small");
  Pass(milliseconds(500));
  EXPECT_GT(server_->keyspaces().budget().used(), used + kLarge);
  client.reset();
  Pass(seconds(1));
  EXPECT_LT(server_->keyspaces().budget().used(), used + kLarge / 2);
  EXPECT_LT(server_->clients().bytes(), kLarge / 2);
}

// Goal: while memory is scarce a client that reads gets its range whole, however often the network
// takes less than the server has.
TEST_F(WorkerLimits, RangesOfThoseThatReadAreNotCut) {
  Start({.engine = "model"});
  const auto client = AskForAll();
  LeaveATenth();
  Put(std::to_string(kKeys), "newer");
  ASSERT_GT(engine().Statistics().old_versions, 0u);
  size_t received = 0;
  ssize_t got = 0;
  for (int turn = 0; turn < 5000 && received < kDataBytes; ++turn) {
    Pass(milliseconds(5));
    std::string bytes(64 * 1024, '\0');
    while ((got = client->Read(bytes.data(), bytes.size())) > 0) {
      received += static_cast<size_t>(got);
    }
    ASSERT_EQ(got, -EAGAIN) << "cut after " << received;
  }
  EXPECT_GE(received, kDataBytes);
}

// Goal: while memory is scarce a client that reads nothing keeps its pin for some seconds, and for
// as long as the pin holds nothing back.
TEST_F(WorkerLimits, RangesOfThoseThatDoNotReadGiveUpWhatTheyHoldBack) {
  Start({.engine = "model"});
  const auto client = AskForAll();
  LeaveATenth();
  Pass(seconds(20));
  EXPECT_EQ(engine().Statistics().snapshots, 1u) << "nothing is held back";
  Put(std::to_string(kKeys), "newer");
  ASSERT_GT(engine().Statistics().old_versions, 0u);
  Pass(seconds(1));
  EXPECT_EQ(engine().Statistics().snapshots, 0u);
}

// Goal: a client that has just stopped reading is given some seconds.
TEST_F(WorkerLimits, RangesOfThoseThatPauseAreNotCut) {
  Start({.engine = "model"});
  const auto client = AskForAll();
  LeaveATenth();
  Put(std::to_string(kKeys), "newer");
  Pass(seconds(3));
  EXPECT_EQ(engine().Statistics().snapshots, 1u);
  Pass(seconds(4));
  EXPECT_EQ(engine().Statistics().snapshots, 0u);
}

// Goal: a reply in portions of a client that reads nothing gives up its version while memory is
// scarce. What was made of it can still be read; then the connection ends, and nothing of the
// commands behind it is answered, since a reply cannot end in the middle.
// Method: HGETALL of fields that take several portions, and PING behind it; before memory is scarce
// the client takes nothing for long, and keeps its version.
TEST_F(WorkerLimits, PortionsOfThoseThatDoNotReadGiveUpWhatTheyHoldBack) {
  constexpr int kFields = 600;
  Start({.engine = "btree"});
  constexpr int kAtOnce = 10;  // a connection takes 64 KiB without an answer
  for (int i = 0; i < kFields; i += kAtOnce) {
    std::string some;
    for (int j = i; j < i + kAtOnce; ++j) {
      AppendCommand(some, {"HSET", "hash", "field" + std::to_string(j), std::string(5000, 'v')});
    }
    ASSERT_EQ(CountOf(ReplyTo(some), ":1\r\n"), size_t{kAtOnce});
  }
  std::string ask;
  AppendCommand(ask, {"HGETALL", "hash"});
  AppendCommand(ask, {"PING"});
  const auto client = Ask(ask);
  Pass(seconds(20));
  ASSERT_EQ(engine().Statistics().snapshots, 1u) << "memory is not scarce";
  LeaveATenth();
  Put(std::to_string(kKeys), "newer");
  ASSERT_GT(engine().Statistics().old_versions, 0u);
  Pass(seconds(20));
  EXPECT_EQ(engine().Statistics().snapshots, 0u);
  std::string reply;
  ssize_t got = -EAGAIN;
  for (int i = 0; i < 2000 && got != 0; ++i) {
    Pass(milliseconds(5));
    std::string bytes(64 * 1024, '\0');
    while ((got = client->Read(bytes.data(), bytes.size())) > 0) {
      reply.append(bytes, 0, static_cast<size_t>(got));
    }
  }
  EXPECT_EQ(got, 0) << "the connection has ended";
  EXPECT_TRUE(reply.starts_with("*1200\r\n"));
  EXPECT_GT(CountOf(reply, "$5000\r\n"), 10u);
  EXPECT_LT(CountOf(reply, "$5000\r\n"), size_t{kFields});
  EXPECT_EQ(CountOf(reply, "PONG"), 0u);
}

// Goal: a range that is collected before it is sent counts as its client's memory.
TEST_F(WorkerLimits, CollectedRangesCount) {
  Start({.engine = "btree", .btree_multi_version = false});
  const auto client = AskForAll();
  EXPECT_GT(server_->clients().bytes(), kDataBytes);
}

// ---- Replies that are made as a whole ----

constexpr size_t kBigBytes = 1 << 20;

std::string Command(const std::vector<std::string_view>& args) {
  std::string bytes;
  AppendCommand(bytes, args);
  return bytes;
}

std::string Mget(uint32_t count, std::string_view key = "big") {
  std::vector<std::string_view> args(count + 1, key);
  args[0] = "MGET";
  return Command(args);
}

std::string Exec(uint32_t count, const std::vector<std::string_view>& command) {
  std::string bytes = Command({"MULTI"});
  for (uint32_t i = 0; i < count; ++i) bytes += Command(command);
  return bytes + Command({"EXEC"});
}

std::string Kbatch(uint32_t count) {
  std::vector<std::string_view> args = {"KBATCH", "DO"};
  for (uint32_t i = 0; i < count; ++i) args.insert(args.end(), {"GET", "big"});
  return Command(args);
}

std::string PackedAtomic(uint32_t count) {
  Batch batch(Batch::Kind::kAtomic);
  for (uint32_t i = 0; i < count; ++i) batch.Get("big");
  std::string bytes;
  packed::Append(bytes, packed::ClientHello{});
  packed::AppendBatch(bytes, {.id = 1}, batch);
  return bytes;
}

// Goal: clients that ask for large replies, all at once, and read none take together no more than
// maxmemory-clients and one reply; other clients wait for one of those replies at most.
// Method: the bytes of all clients are checked after every turn; the requests of a turn are
// counted.
TEST_F(WorkerLimits, WholeRepliesAreMadeOneATurn) {
  constexpr uint32_t kValues = 30;
  constexpr uint32_t kClients = 8;
  constexpr size_t kLimit = 8 << 20;
  Start({.engine = "btree"});
  Put("big", std::string(kBigBytes, 'v'));
  ASSERT_EQ(server_->SetOptions({{{"maxmemory-clients", "8mb"}}}), "");
  const std::vector<std::string_view> range = {"KRANGE", "-",   "+",         "LIMIT",
                                               "0",      "128", "WITHVALUES"};
  uint64_t evicted = 0;
  for (const std::string& request : {Mget(kValues), Exec(kValues, {"GET", "big"}), Kbatch(kValues),
                                     PackedAtomic(kValues), Exec(kValues, range)}) {
    SCOPED_TRACE(request.substr(0, 40));
    requests_most_ = client_bytes_most_ = 0;
    std::vector<std::unique_ptr<Stream>> clients;
    for (uint32_t i = 0; i < kClients; ++i) clients.push_back(Ask(request));
    Pass(milliseconds(200));
    EXPECT_EQ(requests_most_, kValues);
    EXPECT_LE(client_bytes_most_, kLimit + kValues * (kBigBytes + kBigBytes / 8));
    evicted += kClients;
    EXPECT_EQ(server_->clients().evicted(), evicted);
    EXPECT_LE(server_->clients().bytes(), kLimit);
  }
}

// Goal: a reply that maxmemory-clients would close its client for is not made at all, except for
// one value, or for a client that is exempt.
TEST_F(WorkerLimits, WholeRepliesAreBoundedByMaxmemoryClients) {
  constexpr uint32_t kFit = kAnswerBytesMin / kBigBytes;
  Start({.engine = "btree"});
  Put("big", std::string(kBigBytes, 'v'));
  ASSERT_EQ(server_->SetOptions({{{"maxmemory-clients", "1mb"}}}), "");
  const std::string error = "-ERR the values of a batch exceed the maximum size (67108864 bytes)";
  EXPECT_EQ(ReplyTo(Mget(kFit + 2)), error + "\r\n");
  EXPECT_NE(ReplyTo(Kbatch(kFit + 2)).find("exceed the maximum size"), std::string::npos);
  EXPECT_EQ(server_->clients().evicted(), 0u);
  const std::string kept = ReplyTo(Command({"CLIENT", "NO-EVICT", "ON"}) + Mget(kFit + 2));
  EXPECT_GT(kept.size(), (kFit + 2) * kBigBytes);
}

// Goal: at the memory limit replies are bounded by the memory left; 16 MiB are always answered. A
// command of a transaction that comes to the limit is an error in its place, whatever it reads.
// Values that are not copied need no memory.
TEST_F(WorkerLimits, WholeRepliesAreBoundedByMaxmemory) {
  Start({.engine = "btree"});
  constexpr uint32_t kCopiedInBig = kBigBytes / 65536;
  Put("big", std::string(kBigBytes, 'v'));
  Put("copied", std::string(65536, 'v'));
  MemoryBudget& budget = server_->keyspaces().budget();
  budget.set_limit(budget.used() + 24 * kBigBytes);
  const std::string error = "-ERR the values of a batch exceed the maximum size (";
  EXPECT_TRUE(ReplyTo(Mget(27 * kCopiedInBig, "copied")).starts_with(error));
  EXPECT_TRUE(ReplyTo(Mget(22 * kCopiedInBig, "copied")).starts_with("*352\r\n"));
  EXPECT_EQ(CountOf(ReplyTo(Mget(40)), "$1048576\r\n"), 40u);

  const std::string gets = ReplyTo(Exec(40 * kCopiedInBig, {"GET", "copied"}));
  const size_t copied = CountOf(gets, "$65536\r\n");
  EXPECT_EQ(copied, 40 * kCopiedInBig - CountOf(gets, error));
  EXPECT_GE(copied, 23 * kCopiedInBig);
  EXPECT_LE(copied, 25 * kCopiedInBig);
  EXPECT_EQ(CountOf(ReplyTo(Exec(40, {"GET", "big"})), "$1048576\r\n"), 40u);

  const std::string ranges =
      ReplyTo(Exec(40, {"KRANGE", "[2", "+", "LIMIT", "0", "128", "WITHVALUES"}));
  EXPECT_EQ(CountOf(ranges, "*256\r\n"), 40 - CountOf(ranges, error));
  EXPECT_GE(CountOf(ranges, "*256\r\n"), 23u);
  EXPECT_LE(CountOf(ranges, "*256\r\n"), 25u);

  const std::string commands = ReplyTo(Exec(1200, {"COMMAND", "DOCS"}));
  EXPECT_LE(commands.size(), 26 * kBigBytes);
  EXPECT_GE(CountOf(commands, "-ERR the replies of a transaction exceed the maximum size ("), 1u);

  budget.set_limit(budget.used());
  EXPECT_TRUE(ReplyTo(Mget(20 * kCopiedInBig, "copied")).starts_with(error));
  EXPECT_TRUE(ReplyTo(Mget(15 * kCopiedInBig, "copied")).starts_with("*240\r\n$65536\r\n"));
  EXPECT_EQ(CountOf(ReplyTo(Mget(20)), "$1048576\r\n"), 20u);
}

// Goal: a reply of COMMAND, made as a whole, is not a multiple of the request.
TEST_F(WorkerLimits, NamesOfCommandsAreBounded) {
  Start({.engine = "btree"});
  for (const std::string_view subcommand : {"INFO", "DOCS"}) {
    std::vector<std::string_view> args(2 + 1024, "get");
    args[0] = "COMMAND";
    args[1] = subcommand;
    EXPECT_GT(ReplyTo(Command(args)).size(), 50'000u);
    args.push_back("get");
    EXPECT_EQ(ReplyTo(Command(args)),
              "-ERR COMMAND INFO and COMMAND DOCS take 1024 names at most\r\n");
  }
}

}  // namespace
}  // namespace skep
