// Tests of the ids by which a server knows a client: its client id, and the ids of its messages,
// which run out, and which a server may have forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/connection.h"
#include "flaky_proxy.h"
#include "skep/store.h"
#include "test_server.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep {
namespace {

using client::Connection;
using client::Message;
using packed::Header;

constexpr uint64_t kClient = 4711;

// A message that adds 1 to a key, and its answer.
struct Add {
  Add() {
    batch.Apply("n", functions::kAddDecimal, "1");
    packed::AppendBatch(message.bytes, {.flags = packed::kRemember}, batch);
    message.remembered = true;
  }
  // Returns the key's value then; 0 if the message was refused.
  int64_t Await(Connection& connection) {
    const Status s = connection.Await(message);
    EXPECT_TRUE(s.ok()) << s.ToString();
    if (!s.ok()) return 0;
    EXPECT_TRUE(packed::ReadReply(message.header, message.payload(), batch).ok());
    return batch.outcome(0).integer;
  }

  Batch batch;
  Message message;
};

class ClientIds : public testing::Test {
 protected:
  // Makes the server have received a message of the client with this id.
  void UseUp(uint32_t id) {
    ReplyMemory::Reply reply;
    uint64_t first_new = 0;
    ASSERT_EQ(server_.server().state().replies().Begin(kClient, {.id = id}, &reply, &first_new),
              ReplyMemory::Known::kNew);
    server_.server().state().replies().Finish(kClient, id, "", 0);
  }

  TestServer server_{ServerOptions{}};
  const ConnectOptions options_{.address = server_.address()};
  Connection connection_{options_, SocketNetwork(), SystemClock(), kClient};
};

// Goal: a client begins with an id that is new to the server.
TEST_F(ClientIds, BeginWhereTheServerSays) {
  UseUp(1000);
  ASSERT_TRUE(connection_.Connect().ok());
  Add add;
  connection_.Begin(add.message);
  EXPECT_EQ(add.Await(connection_), 1);
  EXPECT_EQ(add.message.header.id, 1001u);
}

// Goal: a client that has begun messages before it was connected begins with a new id, too.
TEST_F(ClientIds, ArePassedOverByWhatWasNotSentYet) {
  UseUp(2);
  std::array<Add, 5> adds;
  for (Add& add : adds) connection_.Begin(add.message);
  for (size_t i = 0; i < adds.size(); ++i) {
    EXPECT_EQ(adds[i].Await(connection_), static_cast<int64_t>(i) + 1);
    EXPECT_GE(adds[i].message.header.id, 3 + i);
  }
}

// Goal: a connection goes on when its message ids run out: every message is done once, and
// answered.
// Method: it begins three before the last id, with more messages under way than there are ids.
TEST_F(ClientIds, EndAndItGoesOnAsAnotherClient) {
  UseUp(UINT32_MAX - 3);
  std::array<Add, 3> last;
  for (Add& add : last) connection_.Begin(add.message);
  EXPECT_EQ(last[0].Await(connection_), 1);
  EXPECT_EQ(last[0].message.header.id, UINT32_MAX - 2);
  std::array<Add, 10> more;
  for (Add& add : more) connection_.Begin(add.message);
  EXPECT_EQ(last[2].Await(connection_), 3);
  EXPECT_EQ(last[2].message.header.id, UINT32_MAX);
  EXPECT_EQ(last[1].Await(connection_), 2);
  for (size_t i = 0; i < more.size(); ++i) {
    EXPECT_EQ(more[i].Await(connection_), static_cast<int64_t>(i) + 4);
    EXPECT_EQ(more[i].message.header.id, i + 1);
  }
}

// Goal: message ids may run out while several threads use the connection, at whichever thread.
TEST_F(ClientIds, EndUnderThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  UseUp(UINT32_MAX - 20);
  std::array<std::vector<int64_t>, kThreads> seen;
  {
    std::vector<std::jthread> threads;
    for (auto& numbers : seen) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          std::array<Add, 3> adds;
          for (Add& add : adds) connection_.Begin(add.message);
          for (Add& add : adds) numbers.push_back(add.Await(connection_));
        }
      });
    }
  }
  std::vector<int64_t> all;
  for (const auto& numbers : seen) all.insert(all.end(), numbers.begin(), numbers.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), 3u * kThreads * kEach);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i) + 1);
}

// Goal: when few message ids are left, an idle connection takes a new client id at once.
TEST_F(ClientIds, AreGivenUpEarlyByWhoIsIdle) {
  UseUp(UINT32_MAX - 1000);
  Add first;
  connection_.Begin(first.message);
  EXPECT_EQ(first.Await(connection_), 1);
  EXPECT_EQ(first.message.header.id, UINT32_MAX - 999);
  Add second;
  connection_.Begin(second.message);
  EXPECT_EQ(second.Await(connection_), 2);
  EXPECT_EQ(second.message.header.id, 1u);
}

// Goal: a client id without new message ids is given up for another one.
TEST_F(ClientIds, AreAllTaken) {
  UseUp(UINT32_MAX);
  Add add;
  connection_.Begin(add.message);
  EXPECT_EQ(add.Await(connection_), 1);
  EXPECT_EQ(add.message.header.id, 1u);
}

// ---- A server that has forgotten ----

// Uses up the message ids of all clients, as forgotten clients do.
void UseUpAll(ReplyMemory& replies) {
  for (uint64_t client = 1; client < 4 * ReplyMemory::kSlots + replies.clients_max(); ++client) {
    ReplyMemory::Reply reply;
    uint64_t first_new = 0;
    if (replies.Begin(client, {.id = UINT32_MAX}, &reply, &first_new) == ReplyMemory::Known::kNew) {
      replies.Finish(client, UINT32_MAX, "", 0);
    }
  }
}

// Goal: a server that has message ids for no client is used without a client id.
TEST_F(ClientIds, AreNotNeeded) {
  UseUpAll(server_.server().state().replies());
  ASSERT_EQ(server_.server().state().replies().FirstNewId(kClient), uint64_t{1} << 32);
  ASSERT_TRUE(connection_.Connect().ok());
  std::array<Add, 5> adds;
  for (Add& add : adds) connection_.Begin(add.message);
  for (size_t i = 0; i < adds.size(); ++i) {
    EXPECT_EQ(adds[i].Await(connection_), static_cast<int64_t>(i) + 1);
  }
  Connection other(options_, SocketNetwork(), SystemClock());
  Add add;
  other.Begin(add.message);
  EXPECT_EQ(add.Await(other), 6);
}

// A server that says hello and takes one message on each connection in turn, and answers only the
// last one.
class Forgetful {
 public:
  explicit Forgetful(int connections) : connections_(connections) {
    auto listener = SocketNetwork().Listen("127.0.0.1:0");
    SKEP_CHECK(listener.has_value());
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Forgetful() { thread_.join(); }
  Address address() const { return listener_->address(); }

 private:
  void Serve() {
    const auto poller = SocketNetwork().NewPoller();
    SKEP_CHECK(poller->Add(*listener_, nullptr).ok());
    for (int left = connections_; left > 0; --left) {
      int error = 0;
      std::unique_ptr<Stream> stream;
      while ((stream = listener_->Accept(&error)) == nullptr) poller->Wait(1000);
      const auto own = SocketNetwork().NewPoller();
      SKEP_CHECK(own->Add(*stream, nullptr, true, false).ok());
      Take(*stream, *own, sizeof(packed::ClientHello));
      std::string bytes;
      packed::Append(bytes, packed::ServerHello{.keyspaces = 1,
                                                .message_bytes_max = 1 << 20,
                                                .operations_max = 1000,
                                                .instance = 7,
                                                .handles_max = 1});
      stream->Write(bytes);
      const auto header = packed::Read<Header>(Take(*stream, *own, sizeof(Header)));
      Take(*stream, *own, header.payload_bytes);
      bytes.clear();
      packed::AppendFailure(bytes, header, {Code::kAborted, "not known", header.id + 1});
      if (left == 1) stream->Write(bytes);
      own->Remove(*stream);
      if (left == 1) last_ = std::move(stream);
    }
    poller->Remove(*listener_);
  }
  static std::string Take(Stream& stream, Poller& poller, size_t bytes) {
    std::string taken(bytes, '\0');
    for (size_t have = 0; have < bytes;) {
      poller.Wait(1000);
      const ssize_t got = stream.Read(taken.data() + have, bytes - have);
      if (got > 0) have += static_cast<size_t>(got);
    }
    return taken;
  }

  const int connections_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> last_;
  std::thread thread_;
};

// Goal: when a server no longer knows whether a write was done, the client reports just that.
// kAborted would tell users that nothing was done.
TEST(ClientOfAServerThatForgets, TellsThatItIsNotKnown) {
  Forgetful server(2);
  const ConnectOptions options{.address = server.address()};
  Connection connection(options, SocketNetwork(), SystemClock(), kClient);
  Add add;
  connection.Begin(add.message);
  EXPECT_EQ(connection.Await(add.message).code(), Code::kUnavailable);
}

// Goal: whatever breaks, and however much a server has to forget, an increment that is reported as
// done is done once, one whose outcome is not known at most once, and no other is done.
// Method: threads add through connections that are cut at random. Between each cut and the next
// connection the server sees that the old one is gone, and so many other clients come, each with a
// message, that every client without a connection is forgotten; also with a server that has no
// message ids for any client. The key has a different value after each increment that is answered.
class ClientOfAServerThatHasForgotten : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ManyOrAll, ClientOfAServerThatHasForgotten, testing::Bool());

TEST_P(ClientOfAServerThatHasForgotten, AddsOnceOrDoesNotKnow) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  ServerOptions server_options;
  server_options.maxmemory = 32 << 20;  // about a thousand clients are remembered then
  TestServer server(server_options);
  ReplyMemory& replies = server.server().state().replies();
  if (GetParam()) UseUpAll(replies);
  std::mt19937_64 others(seed);
  FlakyProxy proxy(server.address(), seed, 1500, [&](size_t left) {
    while (server.server().connections() > left) std::this_thread::yield();
    for (size_t i = 0; i <= replies.clients_max(); ++i) {
      ReplyMemory::Reply reply;
      uint64_t first_new = 0;
      const uint64_t client = others() | 1;
      if (replies.Begin(client, {.id = 1}, &reply, &first_new) == ReplyMemory::Known::kNew) {
        replies.Finish(client, 1, "x", 0);
      }
    }
  });
  const auto store =
      Store::Connect({.address = proxy.address(), .connections = 2, .timeout_ms = 60'000});
  ASSERT_TRUE(store.has_value());
  constexpr int kThreads = 3;
  constexpr int kEach = 300;
  std::array<std::vector<int64_t>, kThreads> seen;
  std::atomic<int64_t> unknown = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& numbers : seen) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          Batch batch;
          batch.Apply("n", functions::kAddDecimal, "1");
          ASSERT_TRUE((*store)->Execute(batch).ok());
          if (batch.outcome(0).verdict == Verdict::kDone) {
            numbers.push_back(batch.outcome(0).integer);
          } else {
            ASSERT_EQ(batch.outcome(0).status.code(), Code::kUnavailable)
                << batch.outcome(0).status.ToString();
            ++unknown;
          }
        }
      });
    }
  }
  std::vector<int64_t> all;
  for (const auto& numbers : seen) all.insert(all.end(), numbers.begin(), numbers.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "two were told the same";
  const auto told = static_cast<int64_t>(all.size());
  const int64_t is = std::stoll((*store)->Get("n")->value_or("0"));
  EXPECT_GE(is, told);
  EXPECT_LE(is, told + unknown);
  EXPECT_EQ(told + unknown, kThreads * kEach);
  EXPECT_GT(proxy.cuts(), 5u);
  EXPECT_GT(unknown, 0);
}

}  // namespace
}  // namespace skep
