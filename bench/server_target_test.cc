#include "bench/server_target.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/file_descriptor.h"
#include "bench/loopback_listener.h"

namespace skep::bench {
namespace {

using testing::HasSubstr;

constexpr size_t kKeyBytes = 23;
constexpr size_t kValueBytes = 5;

// Accepts one connection, waits for the first bytes, sends its script `piece` bytes at a time, then
// reads until the client is gone.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::string script, size_t piece = SIZE_MAX)
      : script_(std::move(script)), piece_(piece) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    if (thread_.joinable()) thread_.join();
  }

  uint16_t port() const { return listener_.port(); }
  // Returns all bytes that the client sent. The client must be gone.
  std::string Received() {
    thread_.join();
    return received_;
  }

 private:
  void Serve() {
    const FileDescriptor client = listener_.Accept();
    if (!Read(client)) return;
    std::string_view left = script_;
    while (!left.empty()) {
      const ssize_t sent =
          send(client.get(), left.data(), std::min(piece_, left.size()), MSG_NOSIGNAL);
      if (sent < 0) return;
      left.remove_prefix(static_cast<size_t>(sent));
    }
    shutdown(client.get(), SHUT_WR);
    while (Read(client)) {
    }
  }

  bool Read(const FileDescriptor& client) {
    std::array<char, 4096> buffer;
    const ssize_t got = recv(client.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    received_.append(buffer.data(), static_cast<size_t>(got));
    return true;
  }

  const LoopbackListener listener_;
  const std::string script_;
  const size_t piece_;
  std::string received_;  // the thread's until it is joined
  std::thread thread_;
};

struct Answer {
  Status status;
  Tally tally;
  std::string sent;  // what the session sent
};

// Runs one operation on key 0 against a server that answers `reply`, a byte at a time.
Answer Ask(OpKind kind, const std::string& reply, uint32_t scan_items = 0) {
  const ValuePool values(kValueBytes, 1);
  OpStream stream{KeyFormat(kKeyBytes)};
  stream.Add(kind, 0, scan_items);
  ScriptedServer server(reply, 1);
  Answer answer;
  {
    ServerTarget target("127.0.0.1", server.port(), values);
    auto session = target.Connect();
    EXPECT_TRUE(session.has_value());
    answer.status = (*session)->Execute(stream, 0, 1, answer.tally);
  }
  answer.sent = server.Received();
  return answer;
}

std::string Bulk(std::string_view bytes) {
  return fmt::format("${}\r\n{}\r\n", bytes.size(), bytes);
}

// Goal: every operation becomes the commands the header promises.
TEST(ServerTarget, SendsTheCommands) {
  const std::string key = "user6284781860667377211";
  const std::string value(ValuePool(kValueBytes, 1).at(0));
  const std::string get = "*2\r\n" + Bulk("GET") + Bulk(key);
  const std::string set = "*3\r\n" + Bulk("SET") + Bulk(key) + Bulk(value);
  EXPECT_EQ(Ask(OpKind::kRead, Bulk("abcde")).sent, get);
  EXPECT_EQ(Ask(OpKind::kUpdate, "+OK\r\n").sent, set);
  EXPECT_EQ(Ask(OpKind::kInsert, "+OK\r\n").sent, set);
  EXPECT_EQ(Ask(OpKind::kReadModifyWrite, Bulk("abcde") + "+OK\r\n").sent, get + set);
  EXPECT_EQ(Ask(OpKind::kDelete, ":1\r\n").sent, "*2\r\n" + Bulk("DEL") + Bulk(key));
  EXPECT_EQ(Ask(OpKind::kScan, "*2\r\n" + Bulk("k") + Bulk("v"), 37).sent,
            "*7\r\n" + Bulk("KRANGE") + Bulk("[" + key) + Bulk("+") + Bulk("LIMIT") + Bulk("0") +
                Bulk("37") + Bulk("WITHVALUES"));
}

// Goal: each reply is judged: right ones count nothing, a wrong one counts one error for the
// operation, with a text that quotes it.
TEST(ServerTarget, JudgesReplies) {
  struct Case {
    OpKind kind;
    std::string reply;
    uint64_t errors;
    uint64_t items;
    const char* text;
  };
  const std::string pair = Bulk("k") + Bulk("v");
  const Case cases[] = {
      {OpKind::kRead, Bulk("abcde"), 0, 0, ""},
      {OpKind::kRead, "$-1\r\n", 1, 0, "absent"},
      {OpKind::kRead, Bulk("abcd"), 1, 0, "$4"},
      {OpKind::kRead, "-ERR planted\r\n", 1, 0, "-ERR planted"},
      {OpKind::kUpdate, "+OK\r\n", 0, 0, ""},
      {OpKind::kUpdate, "-OOM planted\r\n", 1, 0, "-OOM planted"},
      {OpKind::kInsert, ":1\r\n", 1, 0, ":1"},
      {OpKind::kDelete, ":1\r\n", 0, 0, ""},
      {OpKind::kDelete, ":0\r\n", 1, 0, ":0"},
      {OpKind::kReadModifyWrite, Bulk("abcde") + "+OK\r\n", 0, 0, ""},
      {OpKind::kReadModifyWrite, "$-1\r\n+OK\r\n", 1, 0, "absent"},
      {OpKind::kReadModifyWrite, "-ERR first\r\n-ERR second\r\n", 1, 0, "first"},
      {OpKind::kReadModifyWrite, Bulk("abcde") + "-ERR second\r\n", 1, 0, "second"},
      {OpKind::kScan, "*4\r\n" + pair + pair, 0, 2, ""},
      {OpKind::kScan, "*6\r\n" + pair + pair + pair, 1, 0, "*6"},
      {OpKind::kScan, "*0\r\n", 1, 0, "*0"},
      {OpKind::kScan, "-ERR planted\r\n", 1, 0, "planted"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.reply);
    const Answer answer = Ask(c.kind, c.reply, c.kind == OpKind::kScan ? 2 : 0);
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    EXPECT_EQ(answer.tally.errors, c.errors);
    EXPECT_EQ(answer.tally.items_scanned, c.items);
    EXPECT_THAT(answer.tally.first_error, HasSubstr(c.text));
  }
}

// Goal: a server that disconnects or sends nonsense ends the session with a status.
TEST(ServerTarget, BrokenConnections) {
  EXPECT_EQ(Ask(OpKind::kRead, "$5\r\nab").status.code(), Code::kUnavailable);
  EXPECT_EQ(Ask(OpKind::kRead, "hello\r\n").status.code(), Code::kCorrupt);
  const ValuePool values(kValueBytes, 1);
  EXPECT_EQ(ServerTarget("127.0.0.1", 1, values).Connect().error().code(), Code::kIo);
}

// Goal: a pipeline larger than all socket buffers does not deadlock with a server that sends all
// its replies before it reads on.
TEST(ServerTarget, ReadsWhileItSends) {
  constexpr size_t kLarge = 16 * 1024;
  constexpr size_t kOps = 2000;  // 32 MB each way
  const ValuePool values(kLarge, 1);
  OpStream stream{KeyFormat(kKeyBytes)};
  std::string script;
  for (size_t i = 0; i < kOps; ++i) {
    stream.Add(OpKind::kReadModifyWrite, i);
    script += Bulk(values.at(i)) + "+OK\r\n";
  }
  ScriptedServer server(script);
  Tally tally;
  {
    ServerTarget target("127.0.0.1", server.port(), values);
    auto session = target.Connect();
    ASSERT_TRUE(session.has_value());
    EXPECT_TRUE((*session)->Execute(stream, 0, kOps, tally).ok());
  }
  EXPECT_EQ(tally.errors, 0u) << tally.first_error;
}

// Goal: the footprint comes from INFO and DBSIZE; figures that the server does not have are left
// out.
TEST(ServerTarget, MeasuresTheServer) {
  const ValuePool values(kValueBytes, 1);
  {
    ScriptedServer server(Bulk("# Memory\r\nused_memory:3000\r\nused_memory_rss:4096\r\n") +
                          ":10\r\n");
    const auto footprint = ServerTarget("127.0.0.1", server.port(), values).Measure();
    ASSERT_TRUE(footprint);
    EXPECT_EQ(footprint->bytes_per_item, 300.0);
    EXPECT_EQ(footprint->rss_bytes, 4096u);
  }
  for (const char* script : {"-ERR unknown\r\n-ERR unknown\r\n", "$0\r\n\r\n:0\r\n"}) {
    ScriptedServer server(script);
    const auto footprint = ServerTarget("127.0.0.1", server.port(), values).Measure();
    ASSERT_TRUE(footprint);
    EXPECT_FALSE(footprint->bytes_per_item);
    EXPECT_FALSE(footprint->rss_bytes);
  }
}

}  // namespace
}  // namespace skep::bench
