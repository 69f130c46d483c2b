// A server whose disk fails, in one thread: what it replies to its clients meanwhile.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "server/server.h"
#include "sim/simulation.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

constexpr uint64_t kSegmentBytes = 64 * 1024;

class DiskTest : public testing::Test {
 protected:
  struct Client {
    std::unique_ptr<Stream> stream;
    std::string received;
  };

  DiskTest() {
    ServerOptions options;
    options.workers = 1;
    options.logfile = "log";
    options.dir = "data";
    options.log_segment_bytes = kSegmentBytes;
    server_ = std::make_unique<Server>(
        options, Environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()});
    EXPECT_TRUE(server_->Start().ok());
    sim_.AddActor("worker", [this] { return server_->worker(0).Turn(-1); });
  }

  Client Connect() {
    auto stream = sim_.network().Connect("127.0.0.1:6379", 0);
    EXPECT_TRUE(stream.has_value());
    return {.stream = std::move(*stream)};
  }

  // The client's replies since the last call, once the server has nothing left to do for a while.
  std::string Ask(Client& client, std::initializer_list<std::string_view> args) {
    std::string bytes;
    AppendCommand(bytes, args);
    std::string_view left = bytes;
    while (!left.empty()) {  // the network may take less
      const ssize_t sent = client.stream->Write(left);
      if (sent > 0) left.remove_prefix(static_cast<size_t>(sent));
      if (sent <= 0) sim_.RunUntil([] { return false; }, std::chrono::milliseconds(1));
    }
    return Got(client);
  }
  std::string Got(Client& client) {
    sim_.RunUntil([] { return false; }, std::chrono::milliseconds(300));
    std::string received;
    char buffer[16384];
    for (ssize_t n; (n = client.stream->Read(buffer, sizeof buffer)) > 0;) {
      received.append(buffer, static_cast<size_t>(n));
    }
    return received;
  }
  // Leaves room on the disk for `bytes` more bytes.
  void LeaveFree(uint64_t bytes) {
    constexpr uint64_t kMuch = uint64_t{1} << 40;
    sim_.disk().set_options({.capacity_bytes = kMuch});
    const uint64_t used = kMuch - sim_.disk().FreeBytes("data");
    sim_.disk().set_options({.capacity_bytes = used + bytes});
  }
  std::string Log() { return *sim_.disk().ReadAll("log"); }
  // Does a step of the log's thread.
  void Step() { server_->persistence()->log().Step(); }

  Simulation sim_{7};
  std::unique_ptr<Server> server_;
};

// Goal: under always, a value that was acknowledged under everysec and is not synced is not
// returned before it is synced, and neither is the reply to the change of policy. Method: the first
// sync after the change fails.
TEST_F(DiskTest, AlwaysBeginsWithASync) {
  Client setter = Connect();
  Client reader = Connect();
  EXPECT_EQ(Ask(setter, {"SET", "a", "1"}), "+OK\r\n");
  EXPECT_EQ(Ask(reader, {"GET", "a"}), "$1\r\n1\r\n");
  sim_.disk().FailOnce(SimFileSystem::Operation::kSync, 0, EIO);
  EXPECT_EQ(Ask(setter, {"CONFIG", "SET", "appendfsync", "always"}), "");
  EXPECT_EQ(Ask(reader, {"GET", "a"}), "");
  EXPECT_EQ(Ask(reader, {"MGET", "a", "b"}), "");
  Step();  // mends
  Step();
  EXPECT_EQ(Got(setter), "+OK\r\n");
  EXPECT_EQ(Got(reader), "$1\r\n1\r\n*2\r\n$1\r\n1\r\n$-1\r\n");
  EXPECT_EQ(Ask(setter, {"CONFIG", "SET", "appendfsync", "everysec"}), "+OK\r\n");
  EXPECT_EQ(Ask(setter, {"CONFIG", "SET", "maxclients", "100"}), "+OK\r\n");
}

// Goal: the change costs one sync, and none where there is nothing to sync.
TEST_F(DiskTest, AlwaysBeginsWithOneSync) {
  Client client = Connect();
  EXPECT_EQ(Ask(client, {"SET", "a", "1"}), "+OK\r\n");
  const uint64_t before = server_->persistence()->log().statistics().syncs;
  EXPECT_EQ(Ask(client, {"CONFIG", "SET", "appendfsync", "always"}), "+OK\r\n");
  EXPECT_EQ(server_->persistence()->log().statistics().syncs, before + 1);
  EXPECT_EQ(Ask(client, {"CONFIG", "SET", "maxclients", "100"}), "+OK\r\n");
  EXPECT_EQ(server_->persistence()->log().statistics().syncs, before + 1);
}

// Goal: CLIENT DURABILITY NEXT before a transaction is for its EXEC, and for nothing behind it;
// inside a transaction it is for the command behind the EXEC.
// Method: the log's thread does nothing by itself here; a sync happens only if it is asked for.
TEST_F(DiskTest, NextIsTheExecOfATransaction) {
  Client client = Connect();
  const auto syncs_of = [&](std::initializer_list<std::string_view> args, std::string_view reply) {
    const uint64_t before = server_->persistence()->log().statistics().syncs;
    EXPECT_EQ(Ask(client, args), reply);
    return server_->persistence()->log().statistics().syncs - before;
  };
  EXPECT_EQ(syncs_of({"SET", "a", "0"}, "+OK\r\n"), 0u);
  EXPECT_EQ(syncs_of({"CLIENT", "DURABILITY", "NEXT"}, "+OK\r\n"), 0u);
  EXPECT_EQ(syncs_of({"MULTI"}, "+OK\r\n"), 0u);
  EXPECT_EQ(syncs_of({"SET", "a", "1"}, "+QUEUED\r\n"), 0u);
  EXPECT_EQ(syncs_of({"EXEC"}, "*1\r\n+OK\r\n"), 1u);
  EXPECT_EQ(syncs_of({"SET", "a", "2"}, "+OK\r\n"), 0u);
  EXPECT_EQ(syncs_of({"MULTI"}, "+OK\r\n"), 0u);
  EXPECT_EQ(syncs_of({"CLIENT", "DURABILITY", "NEXT"}, "+QUEUED\r\n"), 0u);
  EXPECT_EQ(syncs_of({"EXEC"}, "*1\r\n+OK\r\n"), 0u);
  EXPECT_EQ(syncs_of({"SET", "a", "3"}, "+OK\r\n"), 1u);
}

// Goal: on a full disk commands that read many keys are answered, writes that store get an error
// and deletes are done; INFO and the server's log say so, and say when it is over.
TEST_F(DiskTest, Full) {
  Client client = Connect();
  EXPECT_EQ(Ask(client, {"MSET", "a", "1", "b", "2", "c", "3"}), "+OK\r\n");
  LeaveFree(2 * kSegmentBytes + kSegmentBytes / 2);  // the part of a segment is left to the log
  const std::string value(8'000, 'v');
  std::string reply = "+OK\r\n";
  for (int i = 0; i < 100 && reply == "+OK\r\n"; ++i) {
    reply = Ask(client, {"SET", "a", value});
    Step();
  }
  EXPECT_EQ(reply.substr(0, 9), "-MISCONF ");
  EXPECT_TRUE(reply.contains("No space left on device")) << reply;
  EXPECT_EQ(Ask(client, {"KBATCH", "DO", "PUT", "a", "1"}), reply);
  Step();
  EXPECT_EQ(Ask(client, {"MGET", "b", "c"}), "*2\r\n$1\r\n2\r\n$1\r\n3\r\n");
  EXPECT_EQ(Ask(client, {"EXISTS", "a", "b", "c"}), ":3\r\n");
  EXPECT_EQ(Ask(client, {"DBSIZE"}), ":3\r\n");
  EXPECT_EQ(Ask(client, {"KCOUNT", "-", "+"}), ":3\r\n");
  EXPECT_EQ(Ask(client, {"KRANGE", "[b", "+"}), "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
  EXPECT_EQ(Ask(client, {"SCAN", "0", "COUNT", "1"}).substr(0, 4), "*2\r\n");
  EXPECT_EQ(Ask(client, {"KFIRST"}), "$1\r\na\r\n");
  EXPECT_EQ(Ask(client, {"MULTI"}), "+OK\r\n");
  EXPECT_EQ(Ask(client, {"DEL", "b"}), "+QUEUED\r\n");
  EXPECT_EQ(Ask(client, {"EXEC"}), "*1\r\n:1\r\n");
  EXPECT_EQ(Ask(client, {"DEL", "a", "b"}), ":1\r\n");
  EXPECT_EQ(Ask(client, {"KDELRANGE", "-", "+"}), ":1\r\n");
  Step();
  EXPECT_EQ(Ask(client, {"SET", "a", "1"}).substr(0, 9), "-MISCONF ");
  EXPECT_TRUE(Ask(client, {"INFO", "persistence"}).contains("aof_last_write_status:err"));
  EXPECT_TRUE(Log().contains("the log cannot be written, so writes are refused"));
  sim_.disk().set_options({});
  Step();
  EXPECT_EQ(Ask(client, {"SET", "a", "1"}), "+OK\r\n");
  EXPECT_TRUE(Ask(client, {"INFO", "persistence"}).contains("aof_last_write_status:ok"));
  EXPECT_TRUE(Log().contains("writes are accepted"));
}

// Goal: a disk that fails now and then does not fill the server's log, which has the number of
// failures.
TEST_F(DiskTest, FailuresOfTheDiskAreToldNowAndThen) {
  constexpr int kFailures = 20;
  Client client = Connect();
  EXPECT_EQ(Ask(client, {"CONFIG", "SET", "appendfsync", "always"}), "+OK\r\n");
  for (int i = 0; i < kFailures; ++i) {
    sim_.disk().FailOnce(SimFileSystem::Operation::kSync, 0, EIO);
    Ask(client, {"SET", "a", "1"});
    Step();  // mends
    Step();
    Got(client);
  }
  const auto count = [this](std::string_view line) {
    const std::string log = Log();
    size_t lines = 0;
    for (size_t at = 0; (at = log.find(line, at)) != std::string::npos; ++at) ++lines;
    return lines;
  };
  EXPECT_EQ(count("writes are refused"), 1u) << Log();
  EXPECT_EQ(count("writes are accepted"), 1u) << Log();
  for (int i = 0; i < 250; ++i) Got(client);
  EXPECT_EQ(count("not logged"), 2u) << Log();
}

}  // namespace
}  // namespace skep
