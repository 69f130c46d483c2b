// Tests one connection of a client to a server that misbehaves as Skep's server never does: it
// stalls, forgets, refuses, answers late or wrongly. Simulated time; one thread.
#include "client/connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/varint.h"
#include "client/remote_engine.h"
#include "lying_server.h"
#include "scripted_world.h"
#include "sim/seeds.h"
#include "skep/function.h"

namespace skep {
namespace {

using client::Connection;
using client::Message;
using client::Remote;
using client::RemoteEngine;
using packed::Header;
using packed::Kind;
using Peer = ScriptedWorld::Peer;

constexpr uint32_t kTimeoutMs = 500;

// A client of this world that has been connected.
struct Client {
  explicit Client(ScriptedWorld& the_world, ConnectOptions options = {.timeout_ms = kTimeoutMs})
      : world(the_world), network(the_world) {
    auto made = Remote::Connect(options, network, world.clock());
    SKEP_CHECK(made.has_value());
    remote = std::move(*made);
  }

  // Returns the outcome of one operation, which must come in time.
  Outcome Add() {
    batch.Clear();
    batch.Apply("n", functions::kAddDecimal, "1");
    return Execute();
  }
  Outcome Get() {
    batch.Clear();
    batch.Get("n");
    return Execute();
  }
  Outcome Execute() {
    const uint64_t begin_ms = world.now_ms();
    RemoteEngine(*remote, 0).Execute(batch);
    EXPECT_LE(world.now_ms(), begin_ms + remote->options().timeout_ms);
    return batch.outcome(0);
  }
  Connection& connection() { return remote->connection(0); }

  ScriptedWorld& world;
  SteppedNetwork network;
  std::unique_ptr<Remote> remote;
  Batch batch;
};

void SayDone(Peer& peer, const Header& header, std::string_view) {
  peer.Say(header, ScriptedWorld::DoneWith(header.count, 1));
}

bool IsNotKnown(const Outcome& outcome) {
  return outcome.verdict == Verdict::kRefused && outcome.status.code() == Code::kUnavailable &&
         outcome.status.detail() != kNothingSent;
}

// ---- Time ----

// Goal: a call ends in time although its reply has begun to come, and whatever other calls begin.
// Method: the server stalls in the middle of a reply; whenever the call waits, another one is
// begun.
TEST(ConnectionTime, IsKeptInTheMiddleOfAReply) {
  for (const size_t bytes : {1u, 15u, 16u, 17u, 500u}) {
    ScriptedWorld world({.message = [&](Peer& peer, const Header& header, std::string_view) {
      if (!packed::IsBatch(header.kind)) return;
      std::string reply;
      Header whole = header;
      whole.payload_bytes = 1000;
      packed::Append(reply, whole);
      reply.resize(sizeof(whole) + 1000, '\0');
      peer.Say(reply.substr(0, bytes));
    }});
    Client client(world);
    int others = 0;
    client.network.set_other([&] {
      SKEP_CHECK(++others < 100'000);  // otherwise it never ends
      client.remote->Tell(Kind::kUnwatch, 0, 1, 0);
    });
    EXPECT_TRUE(IsNotKnown(client.Add())) << bytes;
    EXPECT_EQ(client.Get().status.code(), Code::kUnavailable);
    EXPECT_GT(others, 0);
  }
}

// Goal: a call ends in time also when its reply comes too slowly.
TEST(ConnectionTime, IsKeptWhileAReplyComesByteByByte) {
  std::string rest;
  ScriptedWorld* at = nullptr;
  ScriptedWorld world({.message =
                           [&](Peer&, const Header& header, std::string_view) {
                             if (!packed::IsBatch(header.kind)) return;
                             Header whole = header;
                             whole.payload_bytes = 100'000;
                             packed::Append(rest, whole);
                             rest.resize(rest.size() + 100'000, '\0');
                           },
                       .idle =
                           [&] {
                             static uint64_t last_ms = 0;
                             if (rest.empty() || at->now_ms() == last_ms) return false;
                             last_ms = at->now_ms();
                             at->peer()->Say(rest.substr(0, 1));
                             rest.erase(0, 1);
                             return true;
                           }});
  at = &world;
  Client client(world);
  EXPECT_TRUE(IsNotKnown(client.Add()));
}

// Goal: an operation that takes too long fails alone: the connection, and other operations that are
// under way or follow on it, are not disturbed.
TEST(ConnectionTime, OneThatIsOverdueDoesNotBreakTheConnection) {
  std::vector<Header> kept;
  ScriptedWorld world({.message = [&](Peer& peer, const Header& header, std::string_view payload) {
    if (header.kind == Kind::kPing) return peer.Say(header, payload);
    if (kept.empty()) return kept.push_back(header);
    SayDone(peer, header, payload);
  }});
  Client client(world);
  EXPECT_TRUE(IsNotKnown(client.Add()));
  EXPECT_EQ(world.connections(), 1u);
  EXPECT_EQ(client.Add().verdict, Verdict::kDone);
  // A reply that comes too late is ignored.
  SayDone(*world.peer(), kept[0], {});
  EXPECT_EQ(client.Add().verdict, Verdict::kDone);
  EXPECT_EQ(world.connections(), 1u);
}

// Goal: a connection on which nothing comes is given up, and the next call uses another one.
TEST(ConnectionTime, ASilentConnectionIsGivenUp) {
  ScriptedWorld* at = nullptr;
  ScriptedWorld world({.message = [&](Peer& peer, const Header& header, std::string_view payload) {
    if (at->connections() > 1) SayDone(peer, header, payload);
  }});
  at = &world;
  Client client(world);
  EXPECT_TRUE(IsNotKnown(client.Add()));
  EXPECT_EQ(client.Add().verdict, Verdict::kDone);
  EXPECT_EQ(world.connections(), 2u);
}

// Goal: a snapshot or watch is closed that was opened for a call which no longer waits for it.
TEST(ConnectionTime, WhatIsOpenedTooLateIsClosed) {
  for (const Kind kind : {Kind::kOpenSnapshot, Kind::kWatch}) {
    std::vector<Header> kept;
    std::vector<std::pair<Kind, std::string>> heard;
    ScriptedWorld world(
        {.message = [&](Peer& peer, const Header& header, std::string_view payload) {
          if (header.kind == Kind::kPing) return peer.Say(header, payload);
          if (header.kind == kind) return kept.push_back(header);
          heard.emplace_back(header.kind, payload);
          SayDone(peer, header, payload);
        }});
    Client client(world);
    EXPECT_EQ(client.remote->Ask(kind, 0, "k", 0).error().code(), Code::kUnavailable);
    ASSERT_EQ(kept.size(), 1u);
    world.peer()->Say(kept[0], "\x05\x06\x07");
    EXPECT_EQ(client.Add().verdict, Verdict::kDone);
    EXPECT_EQ(client.Add().verdict, Verdict::kDone);
    const Kind close = kind == Kind::kWatch ? Kind::kUnwatch : Kind::kCloseSnapshot;
    EXPECT_TRUE(std::ranges::count(heard, std::pair(close, std::string("\x05"))) == 1);
  }
}

// ---- Answers ----

// Goal: a write that the server says it has forgotten is "not known", not "not done".
TEST(ConnectionAnswers, ForgottenIsNotKnown) {
  ScriptedWorld world({.message = [&](Peer& peer, const Header& header, std::string_view) {
    std::string reply;
    packed::AppendFailure(reply, header, {Code::kAborted, "what became of it is not known"});
    peer.Say(reply);
  }});
  Client client(world);
  EXPECT_TRUE(IsNotKnown(client.Add()));
}

// Goal: a write whose reply cannot be read is "not known".
TEST(ConnectionAnswers, MalformedIsNotKnown) {
  for (const std::string& payload : {std::string(), std::string("\xff"), std::string(40, '\x80')}) {
    for (const uint8_t flags : {uint8_t{0}, uint8_t{packed::kFailed}}) {
      ScriptedWorld world({.message = [&](Peer& peer, Header header, std::string_view) {
        header.flags = flags;
        peer.Say(header, payload);
      }});
      Client client(world);
      EXPECT_TRUE(IsNotKnown(client.Add()));
      EXPECT_EQ(client.Get().status.code(), Code::kCorrupt);
    }
  }
}

// Goal: a call that was never sent is reported as not done.
TEST(ConnectionAnswers, NothingWasSent) {
  bool accepts = true;
  ScriptedWorld world({.accepts = [&] { return accepts; }});
  Client client(world);
  accepts = false;
  world.peer()->HangUp();
  world.clock().Advance(1'000'000'000);
  const Outcome outcome = client.Add();
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_EQ(outcome.status.detail(), kNothingSent);
}

// Goal: ranges end with an error if the server cuts them without progress.
TEST(ConnectionAnswers, ARangeThatDoesNotGetOn) {
  ScriptedWorld world({.message = [&](Peer& peer, const Header& header, std::string_view) {
    if (header.kind == Kind::kOpenSnapshot) return peer.Say(header, "\x01\x01\x01");
    if (!packed::IsBatch(header.kind)) return peer.Say(header, "");
    // The reply says "there is more", from "b" on, whatever was asked for.
    std::string reply{static_cast<char>(packed::kHasOutcomeValue | packed::kMore), '\x01', 'b'};
    peer.Say(header, reply);
  }});
  Client client(world);
  for (const bool reverse : {false, true}) {
    client.batch.Clear();
    client.batch.Scan(Range::Between("a", "c"), {.reverse = reverse});
    EXPECT_EQ(client.Execute().status.code(), Code::kCorrupt);
    client.batch.Clear();
    client.batch.Count(Range::Between("a", "c"));
    EXPECT_EQ(client.Execute().status.code(), Code::kCorrupt);
  }
}

// ---- A server that refuses ----

// Goal: a server that refuses the client once, and then behaves, is used again; a call that was
// sent before and not answered is "not known", one that was not sent is refused with the server's
// reason.
TEST(ConnectionRefused, IsNotForEver) {
  enum class Refusal { kNone, kPassword, kVersion } refusal = Refusal::kNone;
  bool answers = true;
  ScriptedWorld world({.hello =
                           [&](Peer& peer) {
                             packed::ServerHello hello = ScriptedWorld::UsualHello();
                             if (refusal == Refusal::kPassword) hello.features = packed::kNeedsAuth;
                             if (refusal == Refusal::kVersion) hello.version = 9;
                             peer.Say(hello);
                           },
                       .message =
                           [&](Peer& peer, const Header& header, std::string_view payload) {
                             if (header.kind == Kind::kAuth) {
                               std::string reply;
                               packed::AppendFailure(reply, header,
                                                     {Code::kInvalidArgument, "wrong"});
                               peer.Say(reply);
                             } else if (!answers) {
                               peer.HangUp();
                             } else {
                               SayDone(peer, header, payload);
                             }
                           }});
  Client client(world);
  for (const Refusal why : {Refusal::kPassword, Refusal::kVersion}) {
    EXPECT_EQ(client.Add().verdict, Verdict::kDone);
    refusal = why;
    answers = false;
    EXPECT_TRUE(IsNotKnown(client.Add()));
    const Code code = why == Refusal::kPassword ? Code::kInvalidArgument : Code::kNotSupported;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(client.Add().status.code(), code);
      EXPECT_EQ(client.Get().status.code(), code);
    }
    refusal = Refusal::kNone;
    answers = true;
    world.clock().Advance(1'100'000'000);
  }
  EXPECT_EQ(client.Add().verdict, Verdict::kDone);
}

// Goal: a server that once announced limits that no call can keep is used again when it behaves.
// Method: the connection to it ends; a client that checked its calls against those limits would
// never send one, and so never see new limits.
TEST(ConnectionRefused, TakesNoLimitThatNoCallCanKeep) {
  for (const bool of_bytes : {false, true}) {
    int hellos = 0;
    ScriptedWorld world({.hello =
                             [&](Peer& peer) {
                               packed::ServerHello hello = ScriptedWorld::UsualHello();
                               const bool is_wrong = ++hellos == 2;
                               if (is_wrong && of_bytes) hello.message_bytes_max = 0;
                               if (is_wrong && !of_bytes) hello.operations_max = 0;
                               peer.Say(hello);
                             },
                         .message = SayDone});
    Client client(world);
    EXPECT_EQ(client.Add().verdict, Verdict::kDone);
    world.peer()->HangUp();
    client.Get();
    world.peer()->HangUp();
    world.clock().Advance(1'100'000'000);
    EXPECT_EQ(client.Add().verdict, Verdict::kDone);
    EXPECT_GE(hellos, 3);
  }
}

// ---- A server that lies ----

// Goal: whatever a server sends and however it stalls and breaks, each call ends in time.
// Method: random programs of lying_server.h; the fuzzer has the same.
TEST(ConnectionLies, EndInTime) {
  for (const uint64_t seed : Seeds(500)) {
    std::mt19937_64 rng(seed);
    std::string program(rng() % 400, '\0');
    for (char& byte : program) byte = static_cast<char>(rng());
    PlayLies(program);
  }
}

}  // namespace
}  // namespace skep
