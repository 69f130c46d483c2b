// Tests a server's handling of a connection of the packed protocol, byte by byte.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/varint.h"
#include "engine/forwarding_engine.h"
#include "packed_client.h"
#include "test_server.h"
#include "wire/packed_control.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep {
namespace {

using namespace std::string_view_literals;
using packed::Header;
using packed::Kind;

class PackedServer : public testing::Test {
 protected:
  TestServer server_{ServerOptions{}};
};

// A message that gets so many keys, which end in a number from 0 on.
Batch GetsOf(uint32_t count) {
  Batch gets;
  for (uint32_t i = 0; i < count; ++i) {
    gets.Get(gets.scratch().Copy("key" + std::to_string(i)));
  }
  return gets;
}

// Goal: messages of gets alone are answered as others are: after the writes that their connection
// has sent before, whatever values and deadlines the keys have, and counted in the statistics.
// Method: in each round one key of 40 changes its kind of value, and the gets follow the write
// without waiting for its reply.
TEST_F(PackedServer, GetsFollowTheWritesBefore) {
  constexpr uint32_t kKeys = 40;
  PackedClient client(server_.address());
  const std::string values[] = {"", "v", std::string(3000, 'l'), std::string(300'000, 'p')};
  uint64_t hits = 0;
  for (uint32_t round = 0; round < 300; ++round) {
    const std::string key = "key" + std::to_string(round % kKeys);
    const std::string& value = values[round < 200 ? round % 3 : round % 4];
    const bool is_deleted = round % 7 == 3;
    const uint64_t deadline_ms = round > 100 && round % 5 == 0 ? kDeadlineMax : 0;
    Batch write;
    is_deleted
        ? write.Delete(key)
        : write.Add({.op = Op::kPut, .key = key, .value = value, .deadline_ms = deadline_ms});
    Batch gets = GetsOf(kKeys);
    client.Send(write, {.id = 1});
    client.Send(gets, {.id = 2});
    for (int replies = 0; replies < 2; ++replies) {
      const auto reply = client.Take();
      ASSERT_TRUE(reply.has_value() && !reply->failed());
      if (reply->header.id == 1) continue;
      ASSERT_TRUE(packed::ReadReply(reply->header, reply->payload, gets).ok());
      for (uint32_t i = 0; i < kKeys; ++i) hits += gets.outcome(i).present ? 1 : 0;
      const Outcome& outcome = gets.outcome(round % kKeys);
      EXPECT_EQ(outcome.present, !is_deleted);
      EXPECT_EQ(outcome.verdict, is_deleted ? Verdict::kAbsent : Verdict::kDone);
      EXPECT_EQ(outcome.value, is_deleted ? "" : value);
    }
  }
  RawClient info(server_.address());
  info.Send("INFO stats\r\n");
  std::string text = info.Receive(4);
  while (text.find("keyspace_misses") == std::string::npos) text += info.Receive(1);
  EXPECT_NE(text.find("keyspace_hits:" + std::to_string(hits) + "\r"), std::string::npos) << text;
}

// Goal: a client that also speaks a later version is answered; one that speaks no version that the
// server knows is told so, and disconnected.
TEST_F(PackedServer, AgreesOnAVersion) {
  std::string later;
  packed::Append(later, packed::ClientHello{.version_min = 1, .version_max = 9});
  RawClient client(server_.address());
  client.Send(later);
  auto hello = packed::Read<packed::ServerHello>(client.Receive(sizeof(packed::ServerHello)));
  EXPECT_EQ(hello.version, 1);
  EXPECT_EQ(hello.keyspaces, 16);
  EXPECT_GT(hello.message_bytes_max, 0u);

  std::string unknown;
  packed::Append(unknown, packed::ClientHello{.version_min = 2, .version_max = 9});
  RawClient other(server_.address());
  other.Send(unknown);
  hello = packed::Read<packed::ServerHello>(other.Receive(sizeof(packed::ServerHello)));
  EXPECT_EQ(hello.version, 0);
  EXPECT_EQ(hello.why, packed::kHelloVersion);
  EXPECT_TRUE(other.IsOver());
}

// Goal: hello and messages may arrive in any pieces.
TEST_F(PackedServer, TakesByteAfterByte) {
  std::string bytes;
  packed::Append(bytes, packed::ClientHello{});
  Batch batch;
  batch.Put("key", "value");
  batch.Get("key");
  packed::AppendBatch(bytes, {.id = 77}, batch);
  RawClient client(server_.address());
  for (const char byte : bytes) client.Send({&byte, 1});
  client.Receive(sizeof(packed::ServerHello));
  const auto header = packed::Read<Header>(client.Receive(sizeof(Header)));
  EXPECT_EQ(header.id, 77u);
  const std::string payload = client.Receive(header.payload_bytes);
  ASSERT_TRUE(packed::ReadReply(header, payload, batch).ok());
  EXPECT_EQ(batch.outcome(1).value, "value");
}

// Goal: RESP works on the same port, also if it begins like the packed protocol.
TEST_F(PackedServer, LeavesRespAlone) {
  RawClient client(server_.address());
  client.Send("PING\r\n");
  EXPECT_EQ(client.Receive(7), "+PONG\r\n");
  RawClient other(server_.address());
  other.Send("\xd5SKx\r\n");
  EXPECT_TRUE(other.Receive(4).starts_with("-ERR"));
}

struct Nonsense {
  const char* what;
  Header header;
  std::string_view payload;
  Code code;
};

// Goal: bytes that are no message end the connection with a reason, and nothing of them is done;
// other connections go on.
TEST_F(PackedServer, HangsUpOnNonsense) {
  const Nonsense cases[] = {
      {"a kind that there is not", {.kind = static_cast<Kind>(99)}, "", Code::kCorrupt},
      {"kind 0", {.kind = static_cast<Kind>(0)}, "", Code::kCorrupt},
      {"flags that there are not", {.flags = 0x80}, "", Code::kCorrupt},
      {"too large", {.payload_bytes = UINT32_MAX}, "", Code::kTooLarge},
      {"too many", {.payload_bytes = 1, .count = UINT32_MAX}, "x", Code::kTooLarge},
      {"fewer requests than said", {.payload_bytes = 3, .count = 2}, "\x00\x01k"sv, Code::kCorrupt},
      {"more than said", {.payload_bytes = 4, .count = 1}, "\x00\x01kk"sv, Code::kCorrupt},
      {"a good request, then a bad one",
       {.payload_bytes = 8, .count = 2},
       "\x01\x01\x01kv\x1f\x00\x00"sv,
       Code::kCorrupt},
      {"a range, then a bad one",
       {.payload_bytes = 6, .count = 2},
       "\x8d\x01\x20\x00\x1f\x00"sv,
       Code::kCorrupt},
  };
  for (const Nonsense& c : cases) {
    SCOPED_TRACE(c.what);
    PackedClient client(server_.address());
    std::string bytes;
    packed::Append(bytes, c.header);
    bytes.append(c.payload);
    client.Send(bytes);
    const auto reply = client.Take();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.kind, Kind::kError);
    EXPECT_EQ(reply->status().code(), c.code);
    EXPECT_TRUE(client.IsOver());
  }
  PackedClient client(server_.address());
  Batch batch;
  batch.Get("k");
  ASSERT_TRUE(client.Execute(batch).ok());
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kAbsent);
}

// Goal: a message that cannot be executed is refused, and the connection goes on.
TEST_F(PackedServer, RefusesAndGoesOn) {
  PackedClient client(server_.address());
  Batch batch;
  batch.Get("k");
  EXPECT_EQ(client.Execute(batch, {.id = 1, .keyspace = 16}).code(), Code::kInvalidArgument);
  client.Send(Kind::kError, "");
  EXPECT_EQ(client.Take()->status().code(), Code::kInvalidArgument);
  client.Send(Kind::kSave, std::string_view("\0", 1));
  EXPECT_EQ(client.Take()->status().code(), Code::kNotSupported);
  client.Send(Kind::kCloseSnapshot, "");
  EXPECT_EQ(client.Take()->status().code(), Code::kInvalidArgument);
  std::string at_snapshot;
  packed::AppendBatch(at_snapshot, {.id = 5}, batch, 12345);
  client.Send(at_snapshot);
  EXPECT_EQ(client.Take()->status().code(), Code::kSnapshotTooOld);
  client.Send(Kind::kPing, "hello");
  EXPECT_EQ(client.Take()->payload, "hello");
  EXPECT_TRUE(client.Execute(batch).ok());
}

// Goal: a message without requests is answered by a reply without outcomes.
TEST_F(PackedServer, AnswersNothingWithNothing) {
  PackedClient client(server_.address());
  for (const Batch::Kind kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
    Batch batch(kind);
    EXPECT_TRUE(client.Execute(batch).ok());
    EXPECT_TRUE(batch.applied());
  }
}

// Goal: long ranges are cut, and their pieces are of the pinned version.
TEST_F(PackedServer, CutsLongRanges) {
  PackedClient client(server_.address());
  constexpr uint32_t kKeys = 60'000;
  for (uint32_t i = 0; i < kKeys;) {
    Batch batch;
    for (uint32_t end = i + 10'000; i < end; ++i) {
      batch.Put(batch.scratch().Copy(std::to_string(100'000 + i)), "0123456789");
    }
    ASSERT_TRUE(client.Execute(batch).ok());
  }
  Batch batch;
  batch.Scan(Range::All());
  batch.Count(Range::From("1"));
  batch.Count(Range::All());
  ASSERT_TRUE(client.Execute(batch).ok());
  EXPECT_TRUE(batch.outcome(0).more);
  EXPECT_GT(batch.items(0).size(), 1000u);
  EXPECT_LT(batch.items(0).size(), kKeys);
  EXPECT_TRUE(batch.outcome(1).more);
  EXPECT_LT(batch.outcome(1).integer, kKeys);
  // The engine counts all keys without visiting them, so this count is not cut.
  EXPECT_EQ(batch.outcome(2).integer, kKeys);
}

// Goal: before the password only the password is accepted.
TEST(PackedServerWithPassword, WantsItFirst) {
  ServerOptions options;
  options.requirepass = "secret";
  TestServer server(options);
  PackedClient client(server.address());
  EXPECT_NE(client.hello.features & packed::kNeedsAuth, 0u);
  Batch batch;
  batch.Get("k");
  EXPECT_EQ(client.Execute(batch).code(), Code::kInvalidArgument);
  client.Send(Kind::kAuth, "wrong");
  EXPECT_EQ(client.Take()->status().code(), Code::kInvalidArgument);
  client.Send(Kind::kAuth, "secret");
  EXPECT_FALSE(client.Take()->failed());
  EXPECT_TRUE(client.Execute(batch).ok());

  PackedClient large(server.address());
  large.Send(Kind::kPing, std::string(17 * 1024, 'x'));
  EXPECT_EQ(large.Take()->header.kind, Kind::kError);
}

// ---- Messages that are sent again ----

// Goal: a message that is sent again is answered as the first time, and done once, also on another
// connection; a message of another client with that id is another message.
TEST_F(PackedServer, DoesOnceWhatIsSentAgain) {
  constexpr uint64_t kClient = 4711;
  Batch add;
  add.Apply("n", functions::kAddDecimal, "1");
  const Header header{.id = 9, .flags = packed::kRemember};
  {
    PackedClient client(server_.address(), kClient);
    ASSERT_TRUE(client.Execute(add, header).ok());
    EXPECT_EQ(add.outcome(0).integer, 1);
    ASSERT_TRUE(client.Execute(add, header).ok());
    EXPECT_EQ(add.outcome(0).integer, 1);
  }
  PackedClient again(server_.address(), kClient);
  ASSERT_TRUE(again.Execute(add, header).ok());
  EXPECT_EQ(add.outcome(0).integer, 1);
  PackedClient other(server_.address(), kClient + 1);
  ASSERT_TRUE(other.Execute(add, header).ok());
  EXPECT_EQ(add.outcome(0).integer, 2);
  PackedClient nobody(server_.address(), 0);
  ASSERT_TRUE(nobody.Execute(add, header).ok());
  ASSERT_TRUE(nobody.Execute(add, header).ok());
  EXPECT_EQ(add.outcome(0).integer, 4);
  // Malformed messages are not remembered.
  Header short_one{.payload_bytes = 1, .id = 10, .flags = packed::kRemember, .count = 1};
  std::string bytes;
  packed::Append(bytes, short_one);
  again.Send(bytes + "\x1f");
  EXPECT_EQ(again.Take()->header.kind, Kind::kError);
  PackedClient third(server_.address(), kClient);
  ASSERT_TRUE(third.Execute(add, {.id = 10, .flags = packed::kRemember}).ok());
  EXPECT_EQ(add.outcome(0).integer, 5);
}

// Goal: a message with the id of a remembered one, but another keyspace or kind, is refused: the
// remembered reply waits for a ticket, which in another keyspace may never come.
TEST_F(PackedServer, RefusesAnotherMessageUnderTheSameId) {
  PackedClient client(server_.address(), 4711);
  Batch put;
  put.Put("k", "v");
  for (uint32_t id = 1; id <= 5; ++id) {
    ASSERT_TRUE(client.Execute(put, {.id = id, .flags = packed::kRemember}).ok());
  }
  const Header other{.id = 5, .flags = packed::kRemember, .keyspace = 1};
  EXPECT_EQ(client.Execute(put, other).code(), Code::kInvalidArgument);
  Batch atomic(Batch::Kind::kAtomic);
  atomic.Put("k", "v");
  EXPECT_EQ(client.Execute(atomic, {.id = 5, .flags = packed::kRemember}).code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(client.Execute(put, {.id = 5, .flags = packed::kRemember}).ok());
}

// Goal: an executed message is not executed again, however much other clients are answered
// meanwhile.
// Method: one client adds, and does not take the reply; another has replies remembered, twice as
// much as the server keeps; then the first one asks again.
TEST(PackedServerWithALimit, DoesOnceWhateverOthersAreTold) {
  constexpr uint64_t kClient = 4711;
  ServerOptions options;
  options.maxmemory = 64 << 20;
  TestServer server(options);
  Batch add;
  add.Apply("n", functions::kAddDecimal, "100");
  const Header header{.id = 9, .flags = packed::kRemember};
  PackedClient(server.address(), kClient).Execute(add, header).ok();
  PackedClient other(server.address(), kClient + 1);
  Batch fill;
  const std::string value(size_t{1} << 20, 'v');
  fill.Put("large", value, Request::kReturnPrevious);
  const size_t replies = 2 * server.server().state().replies().bytes_max() / value.size();
  for (uint32_t id = 1; id <= replies + 1; ++id) {
    ASSERT_TRUE(other.Execute(fill, {.id = id, .flags = packed::kRemember}).ok());
  }
  PackedClient again(server.address(), kClient);
  const Status status = again.Execute(add, header);
  EXPECT_TRUE(status.ok() || status.code() == Code::kAborted) << status.ToString();
  Batch get;
  get.Get("n");
  ASSERT_TRUE(again.Execute(get).ok());
  EXPECT_EQ(get.outcome(0).value, "100");
}

// Goal: an executed message is not executed again, however many other clients there are.
// Method: the others are many, each with one small reply.
TEST_F(PackedServer, DoesOnceHoweverManyClientsThereAre) {
  constexpr uint64_t kClient = 4711;
  Batch add;
  add.Apply("n", functions::kAddDecimal, "100");
  const Header header{.id = 9, .flags = packed::kRemember};
  PackedClient(server_.address(), kClient).Execute(add, header).ok();
  // This is what their connections would do, of which there can be only some thousands a second.
  for (uint64_t other = 1; other <= 100'000; ++other) {
    ReplyMemory::Reply reply;
    uint64_t first_new = 0;
    ReplyMemory& replies = server_.server().state().replies();
    const uint64_t client = kClient + other;
    if (replies.Begin(client, {.id = 1}, &reply, &first_new) == ReplyMemory::Known::kNew) {
      replies.Finish(client, 1, std::string(1000, 'x'), 0);
    }
  }
  PackedClient again(server_.address(), kClient);
  EXPECT_EQ(again.Execute(add, header).code(), Code::kAborted);
  EXPECT_GT(again.hello.first_new, header.id);
  const Header next{.id = static_cast<uint32_t>(again.hello.first_new), .flags = packed::kRemember};
  ASSERT_TRUE(again.Execute(add, next).ok());
  EXPECT_EQ(add.outcome(0).integer, 200);
}

// ---- Watches ----

uint64_t Watched(PackedClient& client, std::string_view key) {
  client.Send(Kind::kWatch, key);
  const auto reply = client.Take();
  uint64_t number = 0;
  EXPECT_TRUE(reply && !reply->failed());
  if (reply) {
    std::string_view left = reply->payload;
    EXPECT_TRUE(TakeVarint(left, &number));
  }
  return number;
}

// Goal: a watch that was begun before the server restarted never holds, even if later watches have
// its number: keys written meanwhile are not overwritten.
TEST(PackedServerRestarts, AWatchOfBeforeIsNobodys) {
  TemporaryDirectory directory;
  ServerOptions options;
  options.dir = directory.path() + "/data";
  auto server = std::make_unique<TestServer>(options);
  Batch put;
  put.Put("a", "1");
  uint64_t watch = 0;
  {
    PackedClient client(server->address());
    ASSERT_TRUE(client.Execute(put).ok());
    watch = Watched(client, "a");
  }
  server.reset();
  server = std::make_unique<TestServer>(options);
  PackedClient other(server->address());
  EXPECT_NE(Watched(other, "b"), watch);
  EXPECT_NE(Watched(other, "a"), watch);
  Batch meanwhile;
  meanwhile.Put("a", "2");
  ASSERT_TRUE(other.Execute(meanwhile).ok());
  PackedClient client(server->address());
  Batch commit(Batch::Kind::kAtomic);
  commit.RequireUnchanged("a", watch);
  commit.Put("a", "lost");
  ASSERT_TRUE(client.Execute(commit).ok());
  EXPECT_FALSE(commit.applied());
  EXPECT_EQ(commit.outcome(0).status.code(), Code::kInvalidArgument);
  Batch get;
  get.Get("a");
  ASSERT_TRUE(client.Execute(get).ok());
  EXPECT_EQ(get.outcome(0).value, "2");
}

// Goal: the number of keys that a connection watches is bounded; after unwatching it may watch
// others.
TEST_F(PackedServer, BoundsWhatIsWatched) {
  PackedClient client(server_.address());
  const size_t large = 60'000;
  std::vector<uint64_t> watches;
  for (size_t bytes = large; bytes <= kWatchedBytesMax; bytes += large) {
    std::string key = std::to_string(watches.size());
    key.resize(large, 'k');
    watches.push_back(Watched(client, key));
  }
  const std::string more(large, 'm');
  client.Send(Kind::kWatch, more);
  EXPECT_EQ(client.Take()->status().code(), Code::kUnavailable);
  std::string number;
  AppendVarint(number, watches.back());
  client.Send(Kind::kUnwatch, number);
  EXPECT_FALSE(client.Take()->failed());
  Watched(client, more);
}

// ---- Replies that wait ----

// Releases writes only when it is told to.
class Reluctant final : public ForwardingEngine {
 public:
  explicit Reluctant(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {
    current = this;
  }
  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    for (const Request& request : batch.requests()) {
      if (IsWrite(request.op)) return ticket;
    }
    return 0;
  }
  void ReleaseAll() { gate_.Release(UINT64_MAX); }

  static inline Reluctant* current = nullptr;
};
constexpr EngineInfo kReluctant = {
    .name = "reluctant",
    .summary = "",
    .make = [](const EngineOptions& options) -> std::unique_ptr<Engine> {
      return std::make_unique<Reluctant>(FindEngine("btree")->make(options));
    }};

// Goal: a reply that waits for its gate holds no other one back, and is sent when the gate opens,
// also if the client has finished sending.
TEST(PackedServerGates, RepliesOvertakeThoseThatWait) {
  ServerOptions options;
  options.databases = 1;
  TestServer server(options, {}, &kReluctant);
  PackedClient client(server.address());
  Batch put;
  put.Put("k", "v");
  Batch get;
  get.Get("other");
  client.Send(put, {.id = 1});
  client.Send(put, {.id = 2});
  client.Send(get, {.id = 3});
  client.Send(Kind::kPing, "", 4);
  // A get shares the batch of the puts, if they came together; a ping is in no batch.
  client.FinishSending();
  std::vector<uint32_t> ids = {client.Take()->header.id};
  while (ids.back() != 4) ids.push_back(client.Take()->header.id);
  Reluctant::current->ReleaseAll();
  while (ids.size() < 4) {
    const auto reply = client.Take();
    ASSERT_TRUE(reply.has_value());
    ids.push_back(reply->header.id);
  }
  EXPECT_EQ(std::ranges::count(ids, 1u), 1);
  EXPECT_LT(std::ranges::find(ids, 4u), std::ranges::find(ids, 1u));
  EXPECT_LT(std::ranges::find(ids, 1u), std::ranges::find(ids, 2u));
  EXPECT_TRUE(client.IsOver());
}

// Goal: a message that is sent again while its first reply waits for the gate waits for the gate,
// too.
TEST(PackedServerGates, AKnownReplyWaitsAsTheFirstOneDid) {
  ServerOptions options;
  options.databases = 1;
  TestServer server(options, {}, &kReluctant);
  Batch add;
  add.Apply("n", functions::kAddDecimal, "1");
  const Header header{.id = 1, .flags = packed::kRemember};
  PackedClient first(server.address(), 5);
  first.Send(add, header);
  first.Send(Kind::kPing, "", 2);
  EXPECT_EQ(first.Take()->header.id, 2u);
  PackedClient again(server.address(), 5);
  again.Send(add, header);
  again.Send(Kind::kPing, "", 2);
  EXPECT_EQ(again.Take()->header.id, 2u);
  Reluctant::current->ReleaseAll();
  for (PackedClient* client : {&first, &again}) {
    const auto reply = client->Take();
    ASSERT_TRUE(reply.has_value());
    ASSERT_TRUE(packed::ReadReply(reply->header, reply->payload, add).ok());
    EXPECT_EQ(add.outcome(0).integer, 1);
  }
}

}  // namespace
}  // namespace skep
