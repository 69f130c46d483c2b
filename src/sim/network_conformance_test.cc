// Tests of what every Network does, over sockets and over the simulation alike.
#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/network.h"
#include "base/network_address.h"
#include "base/random.h"
#include "base/temporary_directory_test.h"
#include "sim/echo.h"
#include "sim/sim_network.h"

namespace skep {
namespace {

// Where the tests run: a network, a free address in it, and how time passes.
struct Sockets {
  Network& network() { return SocketNetwork(); }
  // PassTime() lets sent bytes arrive: the kernel does that by itself.
  static constexpr int kWaitMs = 100;
  void PassTime() {}
  void Describe() {}
};

struct Simulated {
  uint64_t seed = std::random_device{}();
  SimClock clock;
  Trace trace;
  SimNetwork sim{seed, clock, trace};

  Network& network() { return sim; }
  static constexpr int kWaitMs = 0;
  void PassTime() { clock.AdvanceToReminder(); }
  void Describe() { std::cout << "the network's seed: " << seed << "\n"; }
};

struct TcpV4 {
  Address address = "127.0.0.1:0";
};
struct TcpV6 {
  Address address = "[::1]:0";
};
struct Unix {
  TemporaryDirectory directory;
  Address address = "unix:" + directory.path() + "/sock";
};

template <typename World, typename Where>
struct Setup {
  World world;
  Where where;
};

template <typename T>
class NetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = network().Listen(setup_.where.address);
    ASSERT_TRUE(listener) << listener.error().ToString();
    listener_ = std::move(*listener);
    poller_ = network().NewPoller();
  }

  void TearDown() override {
    if (testing::Test::HasFailure()) setup_.world.Describe();
  }

  Network& network() { return setup_.world.network(); }
  void PassTime() { setup_.world.PassTime(); }

  std::unique_ptr<Stream> Connect() {
    auto stream = network().Connect(listener_->address(), -1);
    EXPECT_TRUE(stream) << stream.error().ToString();
    return std::move(*stream);
  }
  std::unique_ptr<Stream> Accept() {
    while (true) {
      int error = 0;
      std::unique_ptr<Stream> stream = listener_->Accept(&error);
      if (stream != nullptr) return stream;
      EXPECT_EQ(error, EAGAIN);
      PassTime();
    }
  }
  void ConnectPair() {
    client_ = Connect();
    server_ = Accept();
  }

  // Waits until something is ready.
  std::vector<ReadyEvent> Wait() {
    while (true) {
      const auto ready = poller_->Wait(decltype(setup_.world)::kWaitMs);
      if (!ready.empty()) return {ready.begin(), ready.end()};
      PassTime();
    }
  }
  // Reads until Read returns something other than -EAGAIN.
  ssize_t Read(Stream& stream, char* to, size_t bytes) {
    while (true) {
      const ssize_t got = stream.Read(to, bytes);
      if (got != -EAGAIN) return got;
      PassTime();
    }
  }
  std::string ReadExactly(Stream& stream, size_t bytes) {
    std::string all(bytes, '\0');
    size_t filled = 0;
    while (filled < bytes) {
      const ssize_t got = Read(stream, all.data() + filled, bytes - filled);
      EXPECT_GT(got, 0);
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    return all.substr(0, filled);
  }
  void WriteAll(Stream& stream, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t taken = stream.Write(bytes);
      ASSERT_GT(taken, 0);
      bytes.remove_prefix(static_cast<size_t>(taken));
    }
  }
  // Writes until the stream takes no more; returns the bytes it took.
  std::string Fill(Stream& stream) {
    std::string all;
    while (true) {
      const std::string piece(1 + all.size() % 7'919, static_cast<char>('a' + all.size() % 26));
      const ssize_t taken = stream.Write(piece);
      if (taken < 0) {
        EXPECT_EQ(taken, -EAGAIN);
        return all;
      }
      all.append(piece, 0, static_cast<size_t>(taken));
    }
  }
  ssize_t ReadByte(Stream& stream) {
    char byte;
    return Read(stream, &byte, 1);
  }

  T setup_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Stream> client_;
  std::unique_ptr<Stream> server_;
};

using Setups =
    testing::Types<Setup<Sockets, TcpV4>, Setup<Sockets, TcpV6>, Setup<Sockets, Unix>,
                   Setup<Simulated, TcpV4>, Setup<Simulated, TcpV6>, Setup<Simulated, Unix>>;

class SetupName {
 public:
  template <typename T>
  static std::string GetName(int index) {
    return std::vector<std::string>{
        "TcpV4", "TcpV6", "Unix", "SimTcpV4", "SimTcpV6", "SimUnix"}[index];
  }
};
TYPED_TEST_SUITE(NetworkTest, Setups, SetupName);

// Goal: every byte comes back, once and in order, whatever the pieces; ends are reported.
// Method: fifty clients send up to 200 KB each in random pieces to an echo server; a failure prints
// its seed.
TYPED_TEST(NetworkTest, EchoOverManyStreams) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const Address address = this->listener_->address();
  EchoServer server(this->network(), std::move(this->listener_));
  std::vector<std::unique_ptr<EchoClient>> clients;
  for (int i = 0; i < 50; ++i) {
    auto stream = this->network().Connect(address, -1);
    ASSERT_TRUE(stream);
    clients.push_back(
        std::make_unique<EchoClient>(std::move(*stream), random, random.Below(200'000)));
  }

  size_t done = 0;
  while (done < clients.size()) {
    bool moved = server.Turn(0);
    done = 0;
    for (const auto& client : clients) {
      moved = client->Move() || moved;
      done += client->done();
    }
    if (!moved) this->PassTime();
  }
  for (const auto& client : clients) {
    EXPECT_EQ(client->error(), 0);
    EXPECT_TRUE(client->received() == client->sent());
  }
  EXPECT_EQ(server.sessions(), 0);
}

// Goal: a peer that does not read stops the writer with EAGAIN, and reading lets it go on.
// Method: fill, see that it is not writable, drain, see that it is; all bytes are compared.
TYPED_TEST(NetworkTest, PeerThatDoesNotReadStopsTheWriter) {
  this->ConnectPair();
  ASSERT_TRUE(this->poller_->Add(*this->client_, this, false, true).ok());
  EXPECT_EQ(this->Wait().size(), 1);

  // Bytes that leave for the peer may make room again for a while.
  std::string sent = this->Fill(*this->client_);
  while (!this->poller_->Wait(0).empty()) sent += this->Fill(*this->client_);
  EXPECT_GT(sent.size(), 4'096);

  EXPECT_TRUE(this->ReadExactly(*this->server_, sent.size()) == sent);
  const auto ready = this->Wait();
  ASSERT_EQ(ready.size(), 1);
  EXPECT_EQ(ready[0].tag, this);
  EXPECT_TRUE(ready[0].writable);
  EXPECT_FALSE(ready[0].readable);
  EXPECT_GT(this->client_->Write("more"), 0);
}

TYPED_TEST(NetworkTest, HalfClosedStreamStillGetsItsReply) {
  this->ConnectPair();
  this->WriteAll(*this->client_, "ping");
  this->client_->FinishSending();
  EXPECT_EQ(this->ReadExactly(*this->server_, 4), "ping");
  EXPECT_EQ(this->ReadByte(*this->server_), 0);
  EXPECT_EQ(this->ReadByte(*this->server_), 0);  // the end remains
  EXPECT_EQ(this->client_->Write("x"), -EPIPE);

  this->WriteAll(*this->server_, "pong");
  this->server_.reset();
  EXPECT_EQ(this->ReadExactly(*this->client_, 4), "pong");
  EXPECT_EQ(this->ReadByte(*this->client_), 0);
}

// Goal: writing to a peer that is gone becomes an error and never a signal.
TYPED_TEST(NetworkTest, WritingToAClosedPeerFails) {
  this->ConnectPair();
  this->server_.reset();
  EXPECT_EQ(this->ReadByte(*this->client_), 0);
  ssize_t taken = 0;
  while (taken >= 0) {
    taken = this->client_->Write("x");
    this->PassTime();
  }
  EXPECT_EQ(taken, -EPIPE);
}

// Goal: a peer that closes with bytes unread resets the connection, and the error is reported once.
TYPED_TEST(NetworkTest, ClosingWithBytesUnreadResets) {
  this->ConnectPair();
  this->WriteAll(*this->client_, "nobody reads this");
  ASSERT_TRUE(this->poller_->Add(*this->server_, this, true, false).ok());
  this->Wait();
  this->server_.reset();
  EXPECT_EQ(this->ReadByte(*this->client_), -ECONNRESET);
  EXPECT_EQ(this->ReadByte(*this->client_), 0);
  EXPECT_EQ(this->client_->Write("x"), -EPIPE);
}

// Goal: a stream that broke is reported even if the poller waits for nothing of it.
TYPED_TEST(NetworkTest, BrokenStreamIsAlwaysReported) {
  this->ConnectPair();
  this->WriteAll(*this->client_, "nobody reads this");
  ASSERT_TRUE(this->poller_->Add(*this->server_, &this->server_, true, false).ok());
  this->Wait();
  ASSERT_TRUE(this->poller_->Add(*this->client_, &this->client_, false, false).ok());
  this->server_.reset();
  const auto ready = this->Wait();
  ASSERT_EQ(ready.size(), 1);
  EXPECT_EQ(ready[0].tag, &this->client_);
  EXPECT_TRUE(ready[0].readable);
  EXPECT_TRUE(ready[0].writable);
}

TYPED_TEST(NetworkTest, ReadinessIsLevelTriggered) {
  this->ConnectPair();
  ASSERT_TRUE(this->poller_->Add(*this->server_, this, true, false).ok());
  EXPECT_TRUE(this->poller_->Wait(0).empty());
  this->WriteAll(*this->client_, "ab");
  EXPECT_EQ(this->ReadExactly(*this->server_, 1), "a");
  for (int i = 0; i < 3; ++i) {
    const auto ready = this->Wait();
    ASSERT_EQ(ready.size(), 1);
    EXPECT_TRUE(ready[0].readable);
    EXPECT_FALSE(ready[0].writable);
  }
  EXPECT_EQ(this->ReadExactly(*this->server_, 1), "b");
  EXPECT_TRUE(this->poller_->Wait(0).empty());
}

TYPED_TEST(NetworkTest, ChangeReplacesInterestAndTag) {
  this->ConnectPair();
  int first = 0, second = 0;
  ASSERT_TRUE(this->poller_->Add(*this->client_, &first, true, false).ok());
  EXPECT_TRUE(this->poller_->Wait(0).empty());
  ASSERT_TRUE(this->poller_->Change(*this->client_, &second, false, true).ok());
  const auto ready = this->Wait();
  ASSERT_EQ(ready.size(), 1);
  EXPECT_EQ(ready[0].tag, &second);
  EXPECT_TRUE(ready[0].writable);
  ASSERT_TRUE(this->poller_->Change(*this->client_, &second, false, false).ok());
  EXPECT_TRUE(this->poller_->Wait(0).empty());
}

TYPED_TEST(NetworkTest, PollerRefusesWhatItHasAndWhatItHasNot) {
  this->ConnectPair();
  EXPECT_EQ(this->poller_->Change(*this->client_, this, true, true).detail(), ENOENT);
  this->poller_->Remove(*this->client_);  // does no harm
  ASSERT_TRUE(this->poller_->Add(*this->client_, this, true, false).ok());
  EXPECT_EQ(this->poller_->Add(*this->client_, this, true, false).detail(), EEXIST);
}

// Goal: streams may be removed and destroyed while the caller goes through the events.
// Method: of many ready streams each event removes or destroys a random other one; the next Wait
// reports exactly those that are left.
TYPED_TEST(NetworkTest, StreamsMayGoWhileEventsAreLookedAt) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  std::vector<std::unique_ptr<Stream>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(this->Connect());
    const auto tag = reinterpret_cast<void*>(static_cast<uintptr_t>(i));
    ASSERT_TRUE(this->poller_->Add(*clients.back(), tag, false, true).ok());
  }
  std::vector<ReadyEvent> ready;
  while (ready.size() < clients.size()) ready = this->Wait();

  const auto view = this->poller_->Wait(0);
  ASSERT_EQ(view.size(), clients.size());
  std::vector<bool> gone(clients.size());
  for (size_t i = 0; i < view.size() / 2; ++i) {
    const size_t victim = random.Below(clients.size());
    if (!gone[victim]) this->poller_->Remove(*clients[victim]);
    if (random.Chance(1, 2)) clients[victim].reset();
    gone[victim] = true;
    EXPECT_LT(reinterpret_cast<uintptr_t>(view[i].tag), clients.size());
    if (clients[victim] == nullptr) clients[victim] = this->Connect();
  }
  const auto left = this->poller_->Wait(0);
  EXPECT_EQ(left.size(), static_cast<size_t>(std::ranges::count(gone, false)));
  for (const ReadyEvent& event : left) EXPECT_FALSE(gone[reinterpret_cast<uintptr_t>(event.tag)]);
}

TYPED_TEST(NetworkTest, DestroyedStreamLeavesThePoller) {
  this->ConnectPair();
  ASSERT_TRUE(this->poller_->Add(*this->client_, this, true, true).ok());
  EXPECT_EQ(this->Wait().size(), 1);
  this->client_.reset();
  EXPECT_TRUE(this->poller_->Wait(0).empty());
}

TYPED_TEST(NetworkTest, ListenerReportsEveryWaitingConnection) {
  ASSERT_TRUE(this->poller_->Add(*this->listener_, this).ok());
  int error = 0;
  EXPECT_TRUE(this->poller_->Wait(0).empty());
  EXPECT_EQ(this->listener_->Accept(&error), nullptr);
  EXPECT_EQ(error, EAGAIN);

  std::vector<std::unique_ptr<Stream>> clients, servers;
  for (int i = 0; i < 300; ++i) clients.push_back(this->Connect());
  while (servers.size() < clients.size()) {
    const auto ready = this->Wait();
    ASSERT_EQ(ready.size(), 1);
    EXPECT_TRUE(ready[0].readable);
    EXPECT_EQ(ready[0].tag, this);
    while (auto stream = this->listener_->Accept(&error)) servers.push_back(std::move(stream));
    EXPECT_EQ(error, EAGAIN);
  }
  clients.push_back(this->Connect());
  EXPECT_EQ(this->Wait().size(), 1);
  this->poller_->Remove(*this->listener_);
  EXPECT_TRUE(this->poller_->Wait(0).empty());
}

TYPED_TEST(NetworkTest, WakeEndsOneWaitAndIsNotReported) {
  this->poller_->Wake();
  this->poller_->Wake();
  EXPECT_TRUE(this->poller_->Wait(-1).empty());
  EXPECT_TRUE(this->poller_->Wait(0).empty());
}

TYPED_TEST(NetworkTest, BothEndsAgreeOnTheirAddresses) {
  this->ConnectPair();
  EXPECT_EQ(this->client_->peer(), this->listener_->address());
  EXPECT_EQ(this->server_->local(), this->listener_->address());
  EXPECT_EQ(this->server_->peer(), this->client_->local());
  EXPECT_FALSE(this->listener_->address().ends_with(":0"));
}

TYPED_TEST(NetworkTest, NobodyListensNobodyConnects) {
  const Address address = this->listener_->address();
  this->listener_.reset();
  const auto refused = this->network().Connect(address, -1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kIo);
  const bool is_unix = address.starts_with("unix:");
  EXPECT_EQ(refused.error().detail(), is_unix ? ENOENT : ECONNREFUSED);
  EXPECT_TRUE(this->network().Listen(address));
}

TYPED_TEST(NetworkTest, ConnectionNobodyAcceptedIsReset) {
  const auto client = this->Connect();
  this->listener_.reset();
  EXPECT_EQ(this->ReadByte(*client), -ECONNRESET);
}

TYPED_TEST(NetworkTest, AddressIsTakenOnce) {
  const auto second = this->network().Listen(this->listener_->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kIo);
  EXPECT_EQ(second.error().detail(), EADDRINUSE);
}

TYPED_TEST(NetworkTest, WrongAddressesAreRefused) {
  for (const char* address : {"", "localhost:1", "127.0.0.1", "127.0.0.1:99999", "unix:"}) {
    EXPECT_EQ(this->network().Listen(address).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(this->network().Connect(address, -1).error().code(), Code::kInvalidArgument);
  }
}

// ---- Datagrams ----

template <typename T>
class DatagramTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = network().BindDatagrams(setup_.where.address);
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = std::move(*server);
    auto client = network().ConnectDatagrams(server_->address());
    ASSERT_TRUE(client) << client.error().ToString();
    client_ = std::move(*client);
    poller_ = network().NewPoller();
    ASSERT_TRUE(poller_->Add(*server_, &server_).ok());
    ASSERT_TRUE(poller_->Add(*client_, &client_).ok());
  }
  void TearDown() override {
    if (testing::Test::HasFailure()) setup_.world.Describe();
  }

  Network& network() { return setup_.world.network(); }
  bool IsReady(const std::unique_ptr<DatagramSocket>& socket) {
    for (int turn = 0; turn < 10; ++turn) {
      setup_.world.PassTime();
      for (const ReadyEvent& event : poller_->Wait(setup_.world.kWaitMs)) {
        if (event.tag == &socket && event.readable) return true;
      }
    }
    return false;
  }
  // Receives `count` datagrams; returns them and their senders, in any order.
  std::vector<std::pair<std::string, DatagramPeer>> Take(
      const std::unique_ptr<DatagramSocket>& socket, size_t count) {
    std::vector<std::pair<std::string, DatagramPeer>> taken;
    while (taken.size() < count && IsReady(socket)) {
      for (const Datagram& datagram : socket->Receive()) {
        taken.emplace_back(datagram.bytes, datagram.peer);
      }
    }
    std::ranges::sort(taken, {}, &std::pair<std::string, DatagramPeer>::first);
    return taken;
  }

  T setup_;
  std::unique_ptr<DatagramSocket> server_;
  std::unique_ptr<DatagramSocket> client_;
  std::unique_ptr<Poller> poller_;
};

using DatagramSetups = testing::Types<Setup<Sockets, TcpV4>, Setup<Sockets, TcpV6>,
                                      Setup<Simulated, TcpV4>, Setup<Simulated, TcpV6>>;
TYPED_TEST_SUITE(DatagramTest, DatagramSetups);

// Goal: each datagram arrives once and whole, whatever sizes follow each other, and is answered.
TYPED_TEST(DatagramTest, EachComesWholeAndIsAnswered) {
  std::vector<std::string> sent;
  for (const size_t bytes : {0u, 1u, 100u, 1400u, 1401u, 9'000u, 65'000u}) {
    for (const size_t run : {1u, 2u, 70u}) {
      if (bytes * run > 100'000) continue;
      for (size_t i = 0; i < run; ++i) {
        sent.emplace_back(bytes, static_cast<char>('a' + sent.size() % 26));
      }
      // The last datagram of a run is shorter.
      if (bytes > 1) sent.emplace_back(bytes / 2, 'z');
    }
  }
  std::vector<Datagram> datagrams;
  for (const std::string& bytes : sent) datagrams.push_back({.peer = {}, .bytes = bytes});
  this->client_->Send(datagrams);
  std::ranges::sort(sent);
  const auto taken = this->Take(this->server_, sent.size());
  ASSERT_EQ(taken.size(), sent.size());
  datagrams.clear();
  for (size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(taken[i].first, sent[i]);
    datagrams.push_back({.peer = taken[i].second, .bytes = taken[i].first});
  }
  this->server_->Send(datagrams);
  const auto answered = this->Take(this->client_, sent.size());
  ASSERT_EQ(answered.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(answered[i].first, sent[i]);
}

TYPED_TEST(DatagramTest, AnswersGoToWhoAsked) {
  auto other = this->network().ConnectDatagrams(this->server_->address());
  ASSERT_TRUE(other);
  ASSERT_TRUE(this->poller_->Add(**other, &*other).ok());
  const Datagram a{.peer = {}, .bytes = "a"};
  const Datagram b{.peer = {}, .bytes = "b"};
  this->client_->Send({&a, 1});
  (*other)->Send({&b, 1});
  const auto taken = this->Take(this->server_, 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_NE(taken[0].second, taken[1].second);
  const Datagram answers[] = {{.peer = taken[0].second, .bytes = "to a"},
                              {.peer = taken[1].second, .bytes = "to b"}};
  this->server_->Send(answers);
  EXPECT_EQ(this->Take(this->client_, 1).at(0).first, "to a");
  EXPECT_EQ(this->Take(*other, 1).at(0).first, "to b");
}

// Goal: a datagram that no socket receives, or that is too large, is lost without harm.
TYPED_TEST(DatagramTest, WhatCannotComeIsLost) {
  const std::string large(kDatagramBytesMax + 100, 'x');
  const Datagram datagrams[] = {{.peer = {}, .bytes = large}, {.peer = {}, .bytes = "small"}};
  this->client_->Send(datagrams);
  EXPECT_EQ(this->Take(this->server_, 1).at(0).first, "small");
  const Address address = this->server_->address();
  this->poller_->Remove(*this->server_);
  this->server_.reset();
  for (int i = 0; i < 3; ++i) {
    this->client_->Send(datagrams);
    EXPECT_TRUE(this->client_->Receive().empty());
  }
  auto again = this->network().BindDatagrams(address);
  ASSERT_TRUE(again);
  this->server_ = std::move(*again);
  ASSERT_TRUE(this->poller_->Add(*this->server_, &this->server_).ok());
  this->client_->Send(datagrams);
  this->client_->Send(datagrams);  // the first may report the error of the closed socket
  EXPECT_FALSE(this->Take(this->server_, 1).empty());
}

TYPED_TEST(DatagramTest, WrongAddressesAreRefused) {
  for (const char* address : {"", "localhost:1", "127.0.0.1", "127.0.0.1:99999", "unix:/x"}) {
    EXPECT_EQ(this->network().BindDatagrams(address).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(this->network().ConnectDatagrams(address).error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace skep
