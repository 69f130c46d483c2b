// Replies and the gate: an engine that releases its writes late, on a server in one thread.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/forwarding_engine.h"
#include "model/model_engine.h"
#include "server/server.h"
#include "sim/simulation.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

// The model engine, but its versions are released only when the test says so.
class HoldingEngine final : public ForwardingEngine {
 public:
  explicit HoldingEngine(const EngineOptions& options)
      : ForwardingEngine(std::make_unique<ModelEngine>(options)) {
    last = this;
  }

  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    if (!hold) gate_.Release(inner().gate().released());
    return ticket;
  }

  void Release(Version version) { gate_.Release(version); }

  static inline HoldingEngine* last = nullptr;  // the one made last
  bool hold = false;
};

class WorkerGate : public testing::Test {
 protected:
  struct Client {
    std::unique_ptr<Stream> stream;
    std::string received;
  };

  WorkerGate() {
    ServerOptions options;
    options.workers = 1;
    options.logfile = "log";
    options.databases = 2;
    options.udp = true;
    server_ = std::make_unique<Server>(
        options, Environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()}, &kEngine);
    EXPECT_TRUE(server_->Start().ok());
    sim_.AddActor("worker", [this] { return server_->worker(0).Turn(-1); });
    engine_ = HoldingEngine::last;
  }

  Client Connect() {
    auto stream = sim_.network().Connect("127.0.0.1:6379", 0);
    EXPECT_TRUE(stream.has_value());
    return {.stream = std::move(*stream)};
  }

  void Send(Client& client, std::initializer_list<std::string_view> args) {
    std::string bytes;
    AppendCommand(bytes, args);
    SendBytes(client, bytes);
  }

  void SendBytes(Client& client, std::string_view bytes) {
    while (!bytes.empty()) {  // the network may take less
      const ssize_t sent = client.stream->Write(bytes);
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // The client's replies once the server has nothing left to do for a while.
  const std::string& Got(Client& client) {
    sim_.RunUntil([] { return false; }, std::chrono::milliseconds(20));
    char buffer[4096];
    for (ssize_t n; (n = client.stream->Read(buffer, sizeof buffer)) > 0;) {
      client.received.append(buffer, static_cast<size_t>(n));
    }
    return client.received;
  }

  void Pass(std::chrono::nanoseconds time) {
    sim_.RunUntil([] { return false; }, time);
  }

  std::unique_ptr<DatagramSocket> OpenDatagrams() {
    auto socket = sim_.network().ConnectDatagrams("127.0.0.1:6379");
    EXPECT_TRUE(socket.has_value());
    return std::move(*socket);
  }
  static void SendDatagram(DatagramSocket& socket, const Batch& batch,
                           const packed::Header& header) {
    std::string bytes;
    packed::Append(bytes, packed::DatagramHead{});
    packed::AppendBatch(bytes, header, batch);
    const Datagram one{.peer = {}, .bytes = bytes};
    socket.Send({&one, 1});
  }
  // How many datagrams have come since the last call, once the server has nothing left to do for a
  // while.
  size_t CountDatagrams(DatagramSocket& socket) {
    Pass(std::chrono::milliseconds(20));
    size_t count = 0;
    for (size_t come; (come = socket.Receive().size()) > 0;) count += come;
    return count;
  }

  static constexpr EngineInfo kEngine{"holding", "",
                                      [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                                        return std::make_unique<HoldingEngine>(options);
                                      }};

  Simulation sim_{7};
  std::unique_ptr<Server> server_;
  HoldingEngine* engine_ = nullptr;  // of keyspace 0
};

// Goal: the reply to a write waits for its release; replies before it do not; order is kept.
TEST_F(WorkerGate, RepliesWaitForTheirTicket) {
  Client client = Connect();
  Send(client, {"SET", "a", "1"});
  EXPECT_EQ(Got(client), "+OK\r\n");
  engine_->hold = true;
  Send(client, {"PING"});
  Send(client, {"SET", "a", "2"});
  Send(client, {"PING"});
  EXPECT_EQ(Got(client), "+OK\r\n+PONG\r\n") << "the SET waits, and with it what follows";
  Send(client, {"SET", "b", "1"});
  EXPECT_EQ(Got(client), "+OK\r\n+PONG\r\n");
  engine_->Release(2);
  EXPECT_EQ(Got(client), "+OK\r\n+PONG\r\n+OK\r\n+PONG\r\n");
  engine_->Release(3);
  EXPECT_EQ(Got(client), "+OK\r\n+PONG\r\n+OK\r\n+PONG\r\n+OK\r\n");
}

// Goal: a read that saw an unreleased write does not leave before the write is released.
TEST_F(WorkerGate, ReadsWaitForWhatTheySaw) {
  Client writer = Connect();
  Client reader = Connect();
  engine_->hold = true;
  Send(writer, {"SET", "a", "1"});
  EXPECT_EQ(Got(writer), "");
  Send(reader, {"GET", "a"});
  EXPECT_EQ(Got(reader), "");
  engine_->Release(1);
  EXPECT_EQ(Got(reader), "$1\r\n1\r\n");
  EXPECT_EQ(Got(writer), "+OK\r\n");
}

// Goal: a range read is not even executed while earlier writes of its connection are unreleased,
// and nothing behind it overtakes it; then all go on in order.
TEST_F(WorkerGate, RangeReadsWaitForTheirConnectionsWrites) {
  Client client = Connect();
  engine_->hold = true;
  Send(client, {"SET", "a", "1"});
  EXPECT_EQ(Got(client), "");
  Send(client, {"KRANGE", "-", "+"});
  Send(client, {"SET", "b", "1"});
  Send(client, {"KCOUNT", "-", "+"});
  EXPECT_EQ(Got(client), "");
  Client other = Connect();
  engine_->hold = false;
  Send(other, {"DEL", "a"});
  EXPECT_EQ(Got(other), ":1\r\n") << "executed before the range: it was not held up";
  EXPECT_EQ(Got(client), "+OK\r\n*0\r\n+OK\r\n:1\r\n") << "the range ran after the release";
}

// Goal: if a write and a read of many keys come in one packet, the read also waits for the release,
// though the write was not even executed when it was decoded.
// Method: another connection's write, made between the two, shows when the read was executed.
TEST_F(WorkerGate, RangeReadsWaitForWritesOfTheirPacket) {
  const std::pair<std::vector<std::string_view>, std::string> reads[] = {
      {{"KRANGE", "-", "+"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
      {{"KRANGE", "-", "+", "LIMIT", "0", "9"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
      {{"KCOUNT", "-", "+"}, ":2\r\n"},
      {{"MGET", "a", "b"}, "*2\r\n$1\r\n1\r\n$1\r\n2\r\n"}};
  for (const auto& [read, reply] : reads) {
    SCOPED_TRACE(read[0]);
    Client client = Connect();
    Client other = Connect();
    Send(other, {"FLUSHALL"});
    EXPECT_EQ(Got(other), "+OK\r\n");
    engine_->hold = true;
    std::string packet;
    AppendCommand(packet, {"SET", "a", "1"});
    AppendCommand(packet, read);
    SendBytes(client, packet);
    EXPECT_EQ(Got(client), "");
    Send(other, {"SET", "b", "2"});
    EXPECT_EQ(Got(client), "");
    engine_->Release(engine_->Statistics().version);
    EXPECT_EQ(Got(client), "+OK\r\n" + reply);
    engine_->hold = false;
  }
}

// Goal: a connection does not go back in time: a range read sees at least the writes that a point
// read before it has seen, though they are not released yet.
TEST_F(WorkerGate, RangeReadsWaitForWhatPointReadsSaw) {
  Client writer = Connect();
  Client reader = Connect();
  engine_->hold = true;
  Send(writer, {"SET", "a", "1"});
  EXPECT_EQ(Got(writer), "");
  std::string packet;
  AppendCommand(packet, {"GET", "a"});
  AppendCommand(packet, {"KCOUNT", "-", "+"});
  SendBytes(reader, packet);
  EXPECT_EQ(Got(reader), "");
  engine_->hold = false;
  Send(writer, {"SET", "b", "1"});
  EXPECT_EQ(Got(writer), "+OK\r\n+OK\r\n");
  EXPECT_EQ(Got(reader), "$1\r\n1\r\n:2\r\n") << "the count ran after the release";
}

// Goal: a number of keys does not leave before the writes it counts are released.
TEST_F(WorkerGate, DbsizeWaitsForWhatItCounts) {
  Client writer = Connect();
  Client reader = Connect();
  engine_->hold = true;
  Send(writer, {"SET", "a", "1"});
  EXPECT_EQ(Got(writer), "");
  Send(reader, {"DBSIZE"});
  EXPECT_EQ(Got(reader), "");
  engine_->Release(1);
  EXPECT_EQ(Got(reader), ":1\r\n");
  EXPECT_EQ(Got(writer), "+OK\r\n");
}

// Goal: the gate of one keyspace delays only commands that used that keyspace.
TEST_F(WorkerGate, KeyspacesHaveGatesOfTheirOwn) {
  Client client = Connect();
  Client other = Connect();
  engine_->hold = true;
  Send(other, {"SELECT", "1"});
  Send(client, {"SET", "a", "1"});
  Send(other, {"SET", "a", "1"});
  EXPECT_EQ(Got(other), "+OK\r\n+OK\r\n");
  EXPECT_EQ(Got(client), "");
  engine_->Release(1);
  EXPECT_EQ(Got(client), "+OK\r\n");
}

// Goal: a transaction runs after the release of the versions that its connection has written or
// seen before, since it may read at the released version; its own reply waits for its writes.
TEST_F(WorkerGate, TransactionsWaitForTheirConnectionsWrites) {
  Client client = Connect();
  Client other = Connect();
  engine_->hold = true;
  std::string packet;
  AppendCommand(packet, {"SET", "a", "1"});
  AppendCommand(packet, {"MULTI"});
  AppendCommand(packet, {"KRANGE", "-", "+"});
  AppendCommand(packet, {"SET", "c", "3"});
  AppendCommand(packet, {"EXEC"});
  SendBytes(client, packet);
  EXPECT_EQ(Got(client), "");
  Send(other, {"SET", "b", "2"});
  EXPECT_EQ(Got(other), "");
  engine_->Release(engine_->Statistics().version);
  EXPECT_EQ(Got(other), "+OK\r\n");
  EXPECT_EQ(Got(client), "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n")
      << "EXEC's own write is not released";
  engine_->Release(engine_->Statistics().version);
  EXPECT_TRUE(Got(client).ends_with("*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n"))
      << client.received;
}

// Goal: a connection that watches a key then reads nothing older than the watched value, though
// ranges and reads of many keys read at the released version: else an update could be lost.
TEST_F(WorkerGate, WatchWaitsForWhatItWatches) {
  Client writer = Connect();
  Client watcher = Connect();
  engine_->hold = true;
  Send(writer, {"SET", "a", "1"});
  EXPECT_EQ(Got(writer), "");
  std::string packet;
  AppendCommand(packet, {"WATCH", "a"});
  AppendCommand(packet, {"MGET", "a"});
  SendBytes(watcher, packet);
  EXPECT_EQ(Got(watcher), "");
  engine_->Release(1);
  EXPECT_EQ(Got(watcher), "+OK\r\n*1\r\n$1\r\n1\r\n");
}

// Goal: the reply to a transaction that lost is not sent before the write it lost to is released.
TEST_F(WorkerGate, LostTransactionsWaitForTheWinner) {
  Client writer = Connect();
  Client watcher = Connect();
  Send(watcher, {"WATCH", "a"});
  EXPECT_EQ(Got(watcher), "+OK\r\n");
  engine_->hold = true;
  Send(writer, {"SET", "a", "1"});
  EXPECT_EQ(Got(writer), "");
  Send(watcher, {"MULTI"});
  Send(watcher, {"PING"});
  Send(watcher, {"EXEC"});
  EXPECT_EQ(Got(watcher), "+OK\r\n+OK\r\n+QUEUED\r\n");
  engine_->Release(1);
  EXPECT_EQ(Got(watcher), "+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n");
}

// Goal: a worker that sleeps is woken by the release, however often it polled in vain before.
// Method: a wake-up is all that a release does to the simulation.
TEST_F(WorkerGate, ReleaseWakesTheWorker) {
  Client client = Connect();
  engine_->hold = true;
  for (Version version = 1; version <= 20; ++version) {
    client.received.clear();
    Send(client, {"SET", "a", "1"});
    ASSERT_EQ(Got(client), "");
    const uint64_t before = sim_.trace().events();
    engine_->Release(version);
    ASSERT_EQ(sim_.trace().events(), before + 1) << version;
    ASSERT_EQ(Got(client), "+OK\r\n");
  }
}

// Goal: `timeout` does not end a client that waits for the server, only one that the server waits
// for: in either protocol.
TEST_F(WorkerGate, TimeoutSparesWhoWaitsForAGate) {
  Client client = Connect();
  Send(client, {"CONFIG", "SET", "timeout", "1"});
  EXPECT_EQ(Got(client), "+OK\r\n");
  Client packed = Connect();
  std::string bytes;
  packed::Append(bytes, packed::ClientHello{});
  Batch batch;
  batch.Put("b", "1");
  packed::AppendBatch(bytes, {.id = 1}, batch);
  engine_->hold = true;
  Send(client, {"SET", "a", "1"});
  SendBytes(packed, bytes);
  EXPECT_EQ(Got(packed).size(), sizeof(packed::ServerHello));
  Pass(std::chrono::seconds(5));
  engine_->Release(2);
  EXPECT_EQ(Got(client), "+OK\r\n+OK\r\n");
  EXPECT_GT(Got(packed).size(), sizeof(packed::ServerHello));
  Pass(std::chrono::seconds(5));
  char byte = 0;
  EXPECT_EQ(client.stream->Read(&byte, 1), 0);
  EXPECT_EQ(packed.stream->Read(&byte, 1), 0);
}

// Goal: datagrams whose replies wait for a gate leave room for others after a while.
// Method: as many as there can be wait for a gate that does not open; others use another keyspace.
TEST_F(WorkerGate, DatagramsThatWaitLeaveRoomForOthers) {
  const auto waits = OpenDatagrams();
  const auto other = OpenDatagrams();
  Batch put;
  put.Put("a", "1");
  engine_->hold = true;
  for (size_t i = 0; i < DatagramPort::kSessionsMax; ++i) SendDatagram(*waits, put, {.id = 1});
  EXPECT_EQ(CountDatagrams(*waits), 0u);
  const uint64_t charged = server_->keyspaces().budget().used();
  SendDatagram(*other, put, {.id = 1, .keyspace = 1});
  EXPECT_EQ(CountDatagrams(*other), 0u) << "there is no room";
  Pass(std::chrono::milliseconds(2 * DatagramPort::kWaitMsMax));
  EXPECT_LT(server_->keyspaces().budget().used(), charged);
  SendDatagram(*other, put, {.id = 1, .keyspace = 1});
  EXPECT_EQ(CountDatagrams(*other), 1u);
  engine_->Release(engine_->Statistics().version);
  EXPECT_EQ(CountDatagrams(*waits), 0u);
  // The sessions can be used again.
  SendDatagram(*waits, put, {.id = 1});
  EXPECT_EQ(CountDatagrams(*waits), 0u);
  engine_->Release(engine_->Statistics().version);
  EXPECT_EQ(CountDatagrams(*waits), 1u);
}

// Goal: a datagram's reply that waits for a gate is counted, and is no larger than a datagram.
TEST_F(WorkerGate, RepliesToDatagramsAreHeldInBounds) {
  constexpr size_t kLarge = size_t{8} << 20;
  const auto socket = OpenDatagrams();
  Batch put;
  const std::string value(kLarge, 'v');
  put.Put("large", value);
  engine_->Execute(put);
  engine_->hold = true;
  Batch more;
  more.Put("a", "1");
  engine_->Execute(more);
  const uint64_t before = server_->keyspaces().budget().used();
  Batch get;
  get.Get("a");
  get.Get("large");
  SendDatagram(*socket, get, {.id = 1});
  EXPECT_EQ(CountDatagrams(*socket), 0u);
  const uint64_t held = server_->keyspaces().budget().used() - before;
  EXPECT_GT(held, 0u);
  EXPECT_LT(held, 64u << 10);
  engine_->Release(2);
  Pass(std::chrono::milliseconds(20));
  const auto come = socket->Receive();
  ASSERT_EQ(come.size(), 1u);
  std::string_view reply = come[0].bytes;
  reply.remove_prefix(sizeof(packed::DatagramHead));
  EXPECT_TRUE(packed::Read<packed::Header>(reply).has(packed::kFailed));
  reply.remove_prefix(sizeof(packed::Header));
  Status status;
  ASSERT_TRUE(packed::TakeStatus(reply, &status));
  EXPECT_EQ(status.code(), Code::kTooLarge);
  EXPECT_GT(status.detail(), kLarge);
  EXPECT_EQ(server_->keyspaces().budget().used(), before);
}

// Goal: replies that wait for a gate are sent before a clean end.
TEST_F(WorkerGate, DrainSendsWhatIsReleased) {
  Client client = Connect();
  engine_->hold = true;
  Send(client, {"SET", "a", "1"});
  EXPECT_EQ(Got(client), "");
  server_->worker(0).Drain();
  EXPECT_EQ(Got(client), "");
  EXPECT_FALSE(server_->worker(0).drained());
  engine_->Release(1);
  EXPECT_EQ(Got(client), "+OK\r\n");
  EXPECT_TRUE(server_->worker(0).drained());
}

}  // namespace
}  // namespace skep
