// Tests of what the simulated network does on purpose; network_conformance_test.cc has the rest.
#include "sim/sim_network.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace skep {
namespace {

constexpr uint64_t kSeeds = 100;

// The two streams of one connection; both ends know of each other.
struct Pair {
  explicit Pair(uint64_t seed, const SimNetworkOptions& options = {})
      : network(seed, clock, trace, options) {
    listener = std::move(*network.Listen("127.0.0.1:0"));
    client = std::move(*network.Connect(listener->address(), 0));
    clock.AdvanceToReminder();
    int error = 0;
    server = listener->Accept(&error);
  }

  std::string Read(Stream& stream, size_t bytes = 1'000'000) {
    std::string all(bytes, '\0');
    const ssize_t got = stream.Read(all.data(), bytes);
    all.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return all;
  }
  ssize_t ReadByte(Stream& stream) {
    char byte;
    return stream.Read(&byte, 1);
  }
  void PassAllTime() {
    while (clock.AdvanceToReminder()) continue;
  }

  SimClock clock;
  Trace trace;
  SimNetwork network;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

TEST(SimNetwork, DeliveriesTakeTheTimeAsked) {
  std::set<uint64_t> delays;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed, {.delay_ns_min = 1'000, .delay_ns_max = 1'003});
    const uint64_t sent_ns = pair.clock.MonotonicNs();
    ASSERT_EQ(pair.client->Write("x"), 1);
    EXPECT_EQ(pair.ReadByte(*pair.server), -EAGAIN);
    ASSERT_TRUE(pair.clock.AdvanceToReminder());
    EXPECT_EQ(pair.ReadByte(*pair.server), 1);
    delays.insert(pair.clock.MonotonicNs() - sent_ns);
  }
  EXPECT_EQ(delays, (std::set<uint64_t>{1'000, 1'001, 1'002, 1'003}));
}

// Goal: one write arrives in pieces, in order, with time in between.
// Method: over the seeds. Of 180 or so segments each that arrives later than all before it is a new
// piece: about six a seed.
TEST(SimNetwork, WritesAreSplit) {
  std::string sent;
  for (int i = 0; i < 1'000; ++i) sent += static_cast<char>('a' + i % 26);
  uint64_t pieces = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed, {.segment_bytes_max = 10, .short_writes_ppm = 0});
    ASSERT_EQ(pair.client->Write(sent), 1'000);
    std::string received;
    while (pair.clock.AdvanceToReminder()) {
      const std::string piece = pair.Read(*pair.server);
      received += piece;
      pieces += !piece.empty();
    }
    EXPECT_EQ(received, sent);
  }
  EXPECT_GT(pieces, 4 * kSeeds);
}

TEST(SimNetwork, WritesAreShort) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Pair pair(seed, {.short_writes_ppm = 500'000});
  int short_writes = 0;
  for (int i = 0; i < 1'000; ++i) {
    const ssize_t taken = pair.client->Write("0123456789");
    ASSERT_GE(taken, 1);
    short_writes += taken < 10;
  }
  EXPECT_NEAR(short_writes, 450, 100);  // six standard deviations are 95
}

TEST(SimNetwork, BuffersAreAsLargeAsAsked) {
  Pair pair(1, {.buffer_bytes = 1'000, .short_writes_ppm = 0});
  EXPECT_EQ(pair.client->Write(std::string(1'500, 'x')), 1'000);
  EXPECT_EQ(pair.client->Write("x"), -EAGAIN);
  pair.PassAllTime();
  EXPECT_EQ(pair.client->Write("x"), -EAGAIN);  // arrived, but not read
  EXPECT_EQ(pair.Read(*pair.server, 10).size(), 10);
  EXPECT_EQ(pair.client->Write(std::string(1'500, 'x')), 10);
}

// Goal: a reset loses what is in flight and keeps what has arrived, and both ends see the error
// once.
TEST(SimNetwork, ResetLosesWhatIsInFlight) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Pair pair(seed, {.short_writes_ppm = 0});
    ASSERT_EQ(pair.client->Write("arrived"), 7);
    pair.PassAllTime();
    ASSERT_EQ(pair.client->Write("in flight"), 9);
    pair.client->FinishSending();
    pair.network.ResetAll();
    EXPECT_EQ(pair.server->Write("sent before it heard"), 20);
    pair.PassAllTime();
    EXPECT_EQ(pair.Read(*pair.server), "arrived");
    for (Stream* stream : {pair.server.get(), pair.client.get()}) {
      EXPECT_EQ(pair.ReadByte(*stream), -ECONNRESET);
      EXPECT_EQ(pair.ReadByte(*stream), 0);
      EXPECT_EQ(stream->Write("x"), -EPIPE);
    }
  }
}

// Goal: an end of stream that was in flight when the connection was reset is not taken for a clean
// one.
TEST(SimNetwork, ClosingAfterAResetIsNoCleanEnd) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Pair pair(seed);
    pair.network.ResetAll();
    pair.client.reset();
    pair.PassAllTime();
    EXPECT_EQ(pair.ReadByte(*pair.server), -ECONNRESET);
  }
}

TEST(SimNetwork, SeededResetsHitWriters) {
  Pair pair(1, {.resets_ppm = 1'000'000});
  EXPECT_EQ(pair.client->Write("x"), -ECONNRESET);
  EXPECT_EQ(pair.client->Write("x"), -EPIPE);
  EXPECT_EQ(pair.ReadByte(*pair.server), -EAGAIN);
  pair.PassAllTime();
  EXPECT_EQ(pair.ReadByte(*pair.server), -ECONNRESET);
}

// Goal: while the ends of a connection are parted nothing passes it; afterwards everything does.
// Method: all delays are equal, so that everything that waited arrives at one instant.
TEST(SimNetwork, PartitionHoldsBothDirections) {
  constexpr uint64_t kDelayNs = 1'000;
  constexpr uint64_t kPartNs = 1'000'000;
  SimNetworkOptions options{.delay_ns_min = kDelayNs, .delay_ns_max = kDelayNs};
  uint64_t longest_ns = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Pair pair(seed, options);
    const uint64_t begin_ns = pair.clock.MonotonicNs();
    options.partitions_ppm = 1'000'000;
    options.partition_ns_max = kPartNs;
    pair.network.set_options(options);
    ASSERT_EQ(pair.client->Write("x"), 1);
    options.partitions_ppm = 0;
    pair.network.set_options(options);
    ASSERT_EQ(pair.server->Write("y"), 1);
    ASSERT_TRUE(pair.clock.AdvanceToReminder());
    EXPECT_EQ(pair.Read(*pair.server), "x");
    EXPECT_EQ(pair.Read(*pair.client), "y");
    const uint64_t took_ns = pair.clock.MonotonicNs() - begin_ns;
    EXPECT_GT(took_ns, kDelayNs);
    EXPECT_LE(took_ns, kDelayNs + kPartNs);
    longest_ns = std::max(longest_ns, took_ns);

    ASSERT_EQ(pair.client->Write("z"), 1);
    pair.clock.Advance(kDelayNs);
    EXPECT_EQ(pair.Read(*pair.server), "z");
  }
  EXPECT_GT(longest_ns, kPartNs / 2);
}

// Goal: neither end hears of a reset before the partition has ended, and nothing is delivered.
TEST(SimNetwork, PartitionMayEndWithAReset) {
  Pair pair(1, {.delay_ns_min = 1'000,
                .delay_ns_max = 1'000,
                .partitions_ppm = 1'000'000,
                .partition_resets_ppm = 1'000'000});
  ASSERT_EQ(pair.client->Write("x"), 1);
  pair.clock.Advance(1'000);
  EXPECT_EQ(pair.server->Write("y"), 1);
  for (Stream* stream : {pair.server.get(), pair.client.get()}) {
    EXPECT_EQ(pair.ReadByte(*stream), -EAGAIN);
  }
  pair.PassAllTime();
  for (Stream* stream : {pair.server.get(), pair.client.get()}) {
    EXPECT_EQ(pair.ReadByte(*stream), -ECONNRESET);
    EXPECT_EQ(pair.ReadByte(*stream), 0);
  }
}

// Goal: bytes that are sent first on one connection may arrive after bytes sent later on another.
TEST(SimNetwork, ConnectionsOvertakeEachOther) {
  uint64_t overtaken = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed);
    const auto second = std::move(*pair.network.Connect(pair.listener->address(), 0));
    pair.PassAllTime();
    int error = 0;
    const auto server = pair.listener->Accept(&error);
    ASSERT_NE(server, nullptr);
    ASSERT_EQ(pair.client->Write("1"), 1);
    ASSERT_EQ(second->Write("2"), 1);
    ASSERT_TRUE(pair.clock.AdvanceToReminder());
    overtaken += pair.Read(*server) == "2" && pair.Read(*pair.server).empty();
  }
  EXPECT_NEAR(static_cast<double>(overtaken), kSeeds / 2.0, 30);  // six standard deviations
}

TEST(SimNetwork, AcceptsFailAsOftenAsAsked) {
  Pair pair(1);
  const auto second = pair.network.Connect(pair.listener->address(), 0);
  ASSERT_TRUE(second);
  pair.network.FailAccepts(EMFILE, 2);
  int error = 0;
  EXPECT_EQ(pair.listener->Accept(&error), nullptr);
  EXPECT_EQ(error, EAGAIN);  // it has not arrived: there is nothing to fail
  pair.PassAllTime();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.listener->Accept(&error), nullptr);
    EXPECT_EQ(error, EMFILE);
  }
  EXPECT_NE(pair.listener->Accept(&error), nullptr);
}

TEST(SimNetwork, ListenerOnEveryHost) {
  Pair pair(1);
  const auto listener = pair.network.Listen("0.0.0.0:7");
  ASSERT_TRUE(listener);
  EXPECT_TRUE(pair.network.Connect("127.0.0.1:7", 0));
  EXPECT_TRUE(pair.network.Connect("10.1.2.3:7", 0));
  EXPECT_FALSE(pair.network.Connect("127.0.0.1:8", 0));
  EXPECT_FALSE(pair.network.Connect("[::1]:7", 0));
}

// Goal: datagrams are lost, doubled and overtaken as often as the options say, and not otherwise.
TEST(SimNetwork, DatagramsAreLostDoubledAndOvertaken) {
  constexpr size_t kCount = 2000;
  const auto carry = [](const SimNetworkOptions& options) {
    SimClock clock;
    Trace trace;
    SimNetwork network(1, clock, trace, options);
    const auto server = network.BindDatagrams("0.0.0.0:7");
    const auto client = network.ConnectDatagrams("127.0.0.1:7");
    for (size_t i = 0; i < kCount; ++i) {
      const std::string bytes = std::to_string(i);
      const Datagram one{.peer = {}, .bytes = bytes};
      (*client)->Send({&one, 1});
    }
    std::vector<size_t> received;
    while (clock.AdvanceToReminder()) {
      for (const Datagram& one : (*server)->Receive())
        received.push_back(std::stoul(std::string(one.bytes)));
    }
    return received;
  };
  std::vector<size_t> all = carry({});
  EXPECT_FALSE(std::ranges::is_sorted(all));
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), kCount);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_NEAR(static_cast<double>(carry({.datagram_losses_ppm = 300'000}).size()), 1400, 100);
  EXPECT_NEAR(static_cast<double>(carry({.datagram_doubles_ppm = 300'000}).size()), 2600, 100);
}

// Goal: streams that are ready at the same time are reported in any order.
TEST(SimPoller, OrderOfEventsIsSeeded) {
  std::set<void*> first;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Pair pair(seed);
    const auto poller = pair.network.NewPoller();
    ASSERT_TRUE(poller->Add(*pair.client, &first, false, true).ok());
    ASSERT_TRUE(poller->Add(*pair.server, nullptr, false, true).ok());
    const auto ready = poller->Wait(0);
    ASSERT_EQ(ready.size(), 2);
    first.insert(ready[0].tag);
  }
  EXPECT_EQ(first.size(), 2);
}

TEST(SimPoller, TimeoutIsAReminder) {
  Pair pair(1);
  pair.PassAllTime();
  const auto poller = pair.network.NewPoller();
  const uint64_t now = pair.clock.MonotonicNs();
  EXPECT_TRUE(poller->Wait(0).empty());
  EXPECT_TRUE(poller->Wait(-1).empty());
  EXPECT_EQ(pair.clock.NextReminder(), std::nullopt);
  poller->Wake();
  EXPECT_TRUE(poller->Wait(3).empty());
  EXPECT_EQ(pair.clock.NextReminder(), std::nullopt);  // the wake-up ended it
  EXPECT_TRUE(poller->Wait(3).empty());
  EXPECT_EQ(pair.clock.NextReminder(), now + 3'000'000);
}

}  // namespace
}  // namespace skep
