// Tests a server's handling of datagrams of the packed protocol, byte by byte.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test_server.h"
#include "wire/packed_control.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep {
namespace {

using packed::DatagramHead;
using packed::Header;
using packed::Kind;

struct Reply {
  DatagramHead head;
  std::optional<Header> header;  // none: nothing follows the datagram's head
  std::string payload;

  Status status() const {
    std::string_view left = payload;
    Status status;
    if (header && (header->flags & packed::kFailed) != 0) {
      EXPECT_TRUE(packed::TakeStatus(left, &status));
    }
    return status;
  }
};

std::string DatagramOf(const DatagramHead& head, const Batch& batch, const Header& header) {
  std::string bytes;
  packed::Append(bytes, head);
  packed::AppendBatch(bytes, header, batch);
  return bytes;
}

std::string DatagramOf(const DatagramHead& head, Kind kind, std::string_view payload,
                       uint32_t id = 1) {
  std::string bytes;
  packed::Append(bytes, head);
  const size_t begin = packed::BeginMessage(bytes, {.id = id, .kind = kind});
  bytes.append(payload);
  packed::EndMessage(bytes, begin);
  return bytes;
}

class DatagramClient {
 public:
  explicit DatagramClient(const Address& address) {
    auto socket = SocketNetwork().ConnectDatagrams(address);
    SKEP_CHECK(socket.has_value());
    socket_ = std::move(*socket);
    SKEP_CHECK(poller_->Add(*socket_, nullptr).ok());
  }
  ~DatagramClient() { poller_->Remove(*socket_); }

  void Send(std::string_view bytes) {
    const Datagram one{.peer = {}, .bytes = bytes};
    socket_->Send({&one, 1});
  }
  void Send(std::span<const Datagram> datagrams) { socket_->Send(datagrams); }

  // Returns the next reply; nothing if none comes for five seconds.
  std::optional<Reply> Take() {
    while (at_ == come_.size()) {
      if (poller_->Wait(5000).empty()) return std::nullopt;
      come_ = socket_->Receive();
      at_ = 0;
    }
    std::string_view bytes = come_[at_++].bytes;
    Reply reply;
    EXPECT_TRUE(packed::IsHello(bytes));
    reply.head = packed::Read<DatagramHead>(bytes);
    bytes.remove_prefix(sizeof(DatagramHead));
    if (bytes.empty()) return reply;
    reply.header = packed::Read<Header>(bytes);
    reply.payload = bytes.substr(sizeof(Header));
    EXPECT_EQ(reply.header->payload_bytes, reply.payload.size());
    return reply;
  }
  std::optional<Reply> Ask(std::string_view bytes) {
    Send(bytes);
    return Take();
  }
  Status Execute(Batch& batch, const DatagramHead& head = {}, const Header& header = {.id = 1}) {
    const auto reply = Ask(DatagramOf(head, batch, header));
    if (!reply || !reply->header) return {Code::kUnavailable, "no answer"};
    if (!reply->status().ok()) return reply->status();
    payload_ = reply->payload;
    return packed::ReadReply(*reply->header, payload_, batch);
  }

 private:
  std::unique_ptr<Poller> poller_ = SocketNetwork().NewPoller();
  std::unique_ptr<DatagramSocket> socket_;
  std::span<const Datagram> come_;
  size_t at_ = 0;
  std::string payload_;
};

ServerOptions WithDatagrams() {
  ServerOptions options;
  options.udp = true;
  return options;
}

class PackedDatagrams : public testing::Test {
 protected:
  TestServer server_{WithDatagrams()};
  DatagramClient client_{server_.address()};
};

// Goal: a datagram with more work than a turn has time for is answered all the same.
TEST_F(PackedDatagrams, AnswersMuchWork) {
  const std::string vector(kWorkBytesMax / 2, '\1');
  Batch put;
  put.Put("vector", vector);
  server_.server().keyspaces().at(0).Execute(put);
  const Function* const sum = FindFunction(FunctionKind::kReduce, "sum", Element::kU8);
  Batch sums;
  for (int i = 0; i < 20; ++i) sums.ReduceElements("vector", sum);
  for (const uint32_t id : {1u, 2u}) {
    ASSERT_TRUE(client_.Execute(sums, {.client = 7}, {.id = id, .flags = packed::kRemember}).ok());
    for (uint32_t slot = 0; slot < sums.size(); ++slot) {
      ASSERT_EQ(sums.outcome(slot).verdict, Verdict::kDone);
      EXPECT_EQ(sums.outcome(slot).value, sums.outcome(0).value);
    }
  }
}

TEST_F(PackedDatagrams, AnswersBatches) {
  Batch batch;
  batch.Put("key1", "value");
  batch.Get("key1");
  ASSERT_TRUE(client_.Execute(batch).ok());
  EXPECT_EQ(batch.outcome(1).value, "value");
  Batch scan;
  scan.Scan(Range::All(), {.limit = 10});
  ASSERT_TRUE(client_.Execute(scan).ok());
  EXPECT_EQ(scan.outcome(0).item_count, 1u);
  Batch atomic(Batch::Kind::kAtomic);
  atomic.RequireAbsent("key1");
  atomic.Put("key1", "other");
  ASSERT_TRUE(client_.Execute(atomic, {}, {.id = 2, .kind = Kind::kAtomic}).ok());
  EXPECT_FALSE(atomic.applied());
}

TEST_F(PackedDatagrams, RepeatsTheClientAndTellsTheInstance) {
  const auto reply = client_.Ask(DatagramOf({.client = 77}, Kind::kPing, "echo", 5));
  ASSERT_TRUE(reply && reply->header);
  EXPECT_EQ(reply->head.client, 77u);
  EXPECT_EQ(reply->head.instance, server_.server().state().instance());
  EXPECT_EQ(reply->header->id, 5u);
  EXPECT_EQ(reply->payload, "echo");
  for (const Kind kind : {Kind::kKeyspace, Kind::kStatistics}) {
    const auto told = client_.Ask(DatagramOf({}, kind, ""));
    ASSERT_TRUE(told && told->header);
    EXPECT_TRUE(told->status().ok());
  }
}

// Goal: datagrams that the kernel joins and cuts are each answered, with their own answers.
TEST_F(PackedDatagrams, AnswersManyAtOnce) {
  constexpr uint32_t kCount = 300;
  std::vector<std::string> bytes;
  for (uint32_t i = 0; i < kCount; ++i) {
    const std::string key(1 + i % 3, 'k');
    const std::string number = std::to_string(i);
    Batch batch;
    batch.Insert(key, number);
    batch.Get(number);
    bytes.push_back(DatagramOf({}, batch, {.id = i}));
  }
  std::vector<Datagram> datagrams;
  for (const std::string& one : bytes) datagrams.push_back({.peer = {}, .bytes = one});
  client_.Send(datagrams);
  std::vector<int> answers(kCount);
  uint32_t stored = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto reply = client_.Take();
    ASSERT_TRUE(reply && reply->header) << i;
    Batch batch;
    batch.Insert("", "");
    batch.Get("");
    ASSERT_TRUE(packed::ReadReply(*reply->header, reply->payload, batch).ok());
    stored += batch.outcome(0).verdict == Verdict::kDone ? 1 : 0;
    ASSERT_LT(reply->header->id, kCount);
    ++answers[reply->header->id];
  }
  EXPECT_EQ(answers, std::vector<int>(kCount, 1));
  EXPECT_EQ(stored, 3u);
}

TEST_F(PackedDatagrams, RefusesWhatNeedsAConnection) {
  for (const Kind kind : {Kind::kAuth, Kind::kOpenSnapshot, Kind::kCloseSnapshot, Kind::kWatch,
                          Kind::kUnwatch, Kind::kSave, Kind::kError}) {
    const auto reply = client_.Ask(DatagramOf({}, kind, ""));
    ASSERT_TRUE(reply && reply->header);
    EXPECT_EQ(reply->status().code(), Code::kNotSupported);
  }
  Batch batch;
  batch.Get("k");
  std::string bytes;
  packed::Append(bytes, DatagramHead{});
  packed::AppendBatch(bytes, {.id = 1}, batch, 1);
  const auto reply = client_.Ask(bytes);
  ASSERT_TRUE(reply && reply->header);
  EXPECT_EQ(reply->status().code(), Code::kSnapshotTooOld);
}

TEST_F(PackedDatagrams, RefusesOtherVersionsAndInstances) {
  auto reply = client_.Ask(DatagramOf({.version = 2, .client = 3}, Kind::kPing, ""));
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->header);
  EXPECT_EQ(reply->head.why, packed::kHelloVersion);
  EXPECT_EQ(reply->head.version, packed::kVersion);
  Batch batch;
  batch.Put("k", "v");
  const uint64_t instance = server_.server().state().instance();
  reply = client_.Ask(DatagramOf({.instance = instance + 1}, batch, {.id = 1}));
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->header);
  EXPECT_EQ(reply->head.why, packed::kHelloInstance);
  EXPECT_EQ(reply->head.instance, instance);
  Batch look;
  look.Get("k");
  ASSERT_TRUE(client_.Execute(look, {.instance = instance}).ok());
  EXPECT_EQ(look.outcome(0).verdict, Verdict::kAbsent);
}

// Goal: a datagram that is no message has no answer, and no effect on later ones.
TEST_F(PackedDatagrams, PassesOverNonsense) {
  const std::string ping = DatagramOf({}, Kind::kPing, "x");
  const std::function<std::string(std::string)> spoils[] = {
      [](std::string s) { return s.substr(0, 39); },
      [](std::string) { return std::string(); },
      [](std::string s) { return s.substr(0, s.size() - 1); },
      [](std::string s) { return s + "x"; },
      [](std::string s) { return s.replace(0, 1, "*"); },
      [](std::string s) { return s.replace(sizeof(DatagramHead) + 8, 1, "\x63"); },  // the kind
      [](std::string s) { return s.replace(sizeof(DatagramHead) + 9, 1, "\xff"); },  // the flags
      [](std::string) { return std::string(60'000, '\xd5'); },
  };
  for (const auto& spoil : spoils) client_.Send(spoil(ping));
  // A payload that does not decode is answered: its datagram names its sender.
  client_.Send(DatagramOf({}, Kind::kBatch, "\xff\xff"));
  client_.Send(DatagramOf({}, Kind::kPing, "last", 9));
  const auto malformed = client_.Take();
  ASSERT_TRUE(malformed && malformed->header);
  EXPECT_EQ(malformed->header->kind, Kind::kError);
  const auto last = client_.Take();
  ASSERT_TRUE(last && last->header);
  EXPECT_EQ(last->header->id, 9u);
  EXPECT_EQ(last->payload, "last");
}

// Goal: a reply that does not fit into a datagram is replaced by its size; its message is done,
// once, and a connection gets the reply.
TEST_F(PackedDatagrams, RepliesThatDoNotFitSaySo) {
  const std::string large(60'000, 'v');
  Batch put;
  put.Put("k", large);
  ASSERT_TRUE(client_.Execute(put).ok());
  Batch swap;
  swap.Put("k", "small", Request::kReturnPrevious);
  const Header header{.id = 4, .flags = packed::kRemember};
  const Status refused = client_.Execute(swap, {.reply_bytes_max = 1400, .client = 7}, header);
  EXPECT_EQ(refused.code(), Code::kTooLarge);
  EXPECT_GT(refused.detail(), 60'000u);
  Batch get;
  get.Get("k");
  ASSERT_TRUE(client_.Execute(get).ok());
  EXPECT_EQ(get.outcome(0).value, "small");

  RawClient connection(server_.address());
  std::string bytes;
  packed::Append(bytes, packed::ClientHello{.client = 7});
  packed::AppendBatch(bytes, header, swap);
  connection.Send(bytes);
  connection.Receive(sizeof(packed::ServerHello));
  const auto again = packed::Read<Header>(connection.Receive(sizeof(Header)));
  const std::string payload = connection.Receive(again.payload_bytes);
  ASSERT_TRUE(packed::ReadReply(again, payload, swap).ok());
  EXPECT_EQ(swap.outcome(0).value.size(), 60'000u);
}

// Goal: a message that comes twice is done once, and answered twice, by datagram or connection.
TEST_F(PackedDatagrams, DoesOnceWhatComesTwice) {
  Batch batch;
  batch.Apply("n", functions::kAddDecimal, "1");
  const std::string bytes = DatagramOf({.client = 9}, batch, {.id = 3, .flags = packed::kRemember});
  for (int i = 0; i < 3; ++i) {
    const auto reply = client_.Ask(bytes);
    ASSERT_TRUE(reply && reply->header);
    ASSERT_TRUE(packed::ReadReply(*reply->header, reply->payload, batch).ok());
    EXPECT_EQ(batch.outcome(0).integer, 1);
  }
  // Both come in one turn: one is being executed when the other one comes.
  const std::string next = DatagramOf({.client = 9}, batch, {.id = 4, .flags = packed::kRemember});
  const Datagram both[] = {{.peer = {}, .bytes = next}, {.peer = {}, .bytes = next}};
  client_.Send(both);
  for (int i = 0; i < 2; ++i) {
    const auto reply = client_.Take();
    ASSERT_TRUE(reply && reply->header);
    if (reply->status().code() == Code::kUnavailable) continue;
    ASSERT_TRUE(packed::ReadReply(*reply->header, reply->payload, batch).ok());
    EXPECT_EQ(batch.outcome(0).integer, 2);
  }
}

TEST(PackedDatagramOptions, APasswordIsNotGivenByDatagrams) {
  ServerOptions options = WithDatagrams();
  options.requirepass = "secret";
  TestServer server(options);
  DatagramClient client(server.address());
  Batch batch;
  batch.Get("k");
  EXPECT_EQ(client.Execute(batch).code(), Code::kInvalidArgument);
  const auto ping = client.Ask(DatagramOf({}, Kind::kPing, ""));
  ASSERT_TRUE(ping && ping->header);
  EXPECT_TRUE(ping->status().ok());
}

// Goal: replies that wait for the log come when it is synced, each to its own peer.
TEST(PackedDatagramOptions, RepliesWaitForTheLog) {
  TemporaryDirectory directory;
  ServerOptions options = WithDatagrams();
  options.dir = directory.path() + "/data";
  options.appendfsync = "always";
  TestServer server(options);
  DatagramClient first(server.address());
  DatagramClient second(server.address());
  Batch batch;
  batch.Put("k", "v");
  for (uint32_t id = 1; id <= 50; ++id) {
    first.Send(DatagramOf({.client = 1}, batch, {.id = id}));
    second.Send(DatagramOf({.client = 2}, batch, {.id = id}));
  }
  for (uint64_t client = 1; client <= 2; ++client) {
    for (int i = 0; i < 50; ++i) {
      const auto reply = (client == 1 ? first : second).Take();
      ASSERT_TRUE(reply && reply->header);
      EXPECT_EQ(reply->head.client, client);
      EXPECT_TRUE(packed::ReadReply(*reply->header, reply->payload, batch).ok());
    }
  }
}

// Goal: without the option the server has no UDP port.
TEST(PackedDatagramOptions, AreOffUnlessAskedFor) {
  TestServer server{ServerOptions{}};
  const auto own = SocketNetwork().BindDatagrams(server.address());
  EXPECT_TRUE(own.has_value());
  ServerOptions options = WithDatagrams();
  options.bind.clear();
  options.unixsocket = "/nowhere";
  std::string why;
  EXPECT_FALSE(CheckOptions(options, &why).ok());
  EXPECT_TRUE(why.starts_with("udp yes")) << why;
}

}  // namespace
}  // namespace skep
