#include "bench/net/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/network.h"
#include "base/network_address.h"
#include "bench/expiry_test_server.h"
#include "bench/resp_pipeline.h"

namespace skep::bench {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

NetOptions SmallOptions(const ExpiryTestServer& server) {
  return {.port = server.port(),
          .connections = 3,
          .depth = 4,
          .records = 1000,
          .load = true,
          .warm_up_seconds = 0,
          .seconds = 0,
          .ops = 3000};
}

// Returns a run of the options on a server without faults.
std::expected<NetReport, std::string> RunWith(auto change) {
  ExpiryTestServer server({});
  NetOptions options = SmallOptions(server);
  change(options);
  return RunNet(options);
}

std::string ProblemOf(auto change) {
  const auto report = RunWith(change);
  return report ? "ran" : report.error();
}

// Goal: a closed loop answers each operation once, and counts it by its kind.
TEST(Net, ClosedLoop) {
  ExpiryTestServer server({});
  NetOptions options = SmallOptions(server);
  options.get_percent = 50;
  // The test's server has no MSET.
  options.load = false;
  const auto report = RunNet(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  const NetFigures& figures = report->run->figures;
  EXPECT_GE(figures.ops, 3000u);
  // Requests under way at the end are answered, too.
  const uint64_t answered = figures.tally.hits + figures.tally.misses + figures.tally.stored;
  EXPECT_GE(answered, figures.ops);
  EXPECT_LE(answered, figures.ops + options.connections * options.depth);
  EXPECT_GE(figures.latency_ns.count(), figures.ops);
  EXPECT_LE(figures.latency_ns.count(), answered);
  EXPECT_GT(figures.tally.stored, 1000u);
  EXPECT_GT(figures.tally.misses, 0u);
  EXPECT_EQ(figures.tally.errors, 0u);
  EXPECT_EQ(figures.late_ns.count(), 0u);
  EXPECT_GT(figures.generator_cpu, 0);
  EXPECT_FALSE(figures.server_cpu_seconds.has_value());
}

// Goal: an open loop sends exactly the scheduled requests, also if the server is slower.
TEST(Net, OpenLoop) {
  ExpiryTestServer server({});
  NetOptions options = SmallOptions(server);
  options.load = false;
  options.rate = 2000;
  options.ops = 0;
  options.seconds = 0.25;
  options.get_percent = 0;
  const auto report = RunNet(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  const NetFigures& figures = report->run->figures;
  EXPECT_EQ(figures.latency_ns.count(), 500u);
  EXPECT_EQ(figures.late_ns.count(), 500u);
  EXPECT_EQ(figures.tally.stored, 500u);
}

// Goal: in an open loop a stall slows every request that was meant to be sent during it, though
// only one for each connection was under way.
// Method: 1000 requests a second and a stall of 200 ms, which a key with a deadline causes: of
// those meant for its first half each must have taken at least 100 ms, whatever the machine does.
TEST(Net, AnOpenLoopCountsWhatAStallHeldUp) {
  constexpr uint64_t kStallMs = 200;
  ExpiryTestServer server({.reclaim_delay_ms = 60'000, .stall_ms = kStallMs});
  auto connection = StreamConnection::Connect(AddressOf("127.0.0.1", server.port()));
  ASSERT_TRUE(connection.has_value());
  RespPipeline pipeline(std::move(*connection));
  const uint64_t deadline_ms = SystemClock().WallUs() / 1000 + 500;
  AppendCommand(pipeline.out(), {"SET", "key", "value", "PXAT", std::to_string(deadline_ms)});
  ASSERT_EQ(pipeline.NextReply().value_or(""), "+OK\r\n");

  NetOptions options = SmallOptions(server);
  options.load = false;
  options.get_percent = 0;
  options.depth = 1;
  options.rate = 1000;
  options.ops = 0;
  options.seconds = 2;
  const auto report = RunNet(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  const Histogram& latency = report->run->figures.latency_ns;
  EXPECT_EQ(latency.count(), 2000u);
  constexpr double kHeldUp = kStallMs / 2 - 2;
  EXPECT_GE(latency.Quantile(1 - kHeldUp / 2000), kStallMs / 2 * 1'000'000);
  EXPECT_GE(report->run->figures.late_ns.max(), kStallMs / 2 * 1'000'000);
}

// Goal: datagrams without an answer are counted, and the run goes on and ends.
// Method: a socket that answers nothing, and one that answers every second datagram of a lane.
TEST(Net, CountsDatagramsThatGetLost) {
  for (const bool answers_some : {false, true}) {
    auto socket = SocketNetwork().BindDatagrams("127.0.0.1:0");
    ASSERT_TRUE(socket.has_value());
    const Address address = (*socket)->address();
    std::atomic<bool> over{false};
    std::thread server([&] {
      const auto poller = SocketNetwork().NewPoller();
      SKEP_CHECK(poller->Add(**socket, nullptr).ok());
      for (uint64_t count = 0; !over.load();) {
        poller->Wait(20);
        for (const Datagram& datagram : (*socket)->Receive()) {
          if (!answers_some || ++count % 2 == 0) continue;
          const std::string reply = std::string(datagram.bytes.substr(0, 8)) + "END\r\n";
          const Datagram one{.peer = datagram.peer, .bytes = reply};
          (*socket)->Send({&one, 1});
        }
      }
    });
    const auto report = RunNet({.protocol = "memcached-text",
                                .port = static_cast<uint16_t>(std::stoi(address.substr(10))),
                                .udp = true,
                                .connections = 2,
                                .depth = 8,
                                .records = 100,
                                .seconds = 1});
    over = true;
    server.join();
    ASSERT_TRUE(report.has_value()) << report.error();
    const NetFigures& figures = report->run->figures;
    EXPECT_GT(figures.tally.lost, 0u);
    EXPECT_EQ(figures.tally.misses > 0, answers_some);
    EXPECT_EQ(figures.ops > 0, answers_some);
  }
}

// Goal: a read-modify-write is one operation of two requests.
TEST(Net, ReadModifyWrite) {
  ExpiryTestServer server({});
  NetOptions options = SmallOptions(server);
  options.load = false;
  options.workload = "f";
  options.depth = 1;
  const auto report = RunNet(options);
  ASSERT_TRUE(report.has_value()) << report.error();
  const NetFigures& figures = report->run->figures;
  const uint64_t reads = figures.tally.hits + figures.tally.misses;
  EXPECT_GE(reads, figures.ops);
  EXPECT_LE(reads, figures.ops + 2 * options.connections);
  EXPECT_GT(figures.tally.stored, 1000u);
  EXPECT_LT(figures.tally.stored, 2000u);
}

// Goal: a refused operation ends the run with the server's text, unless refusals are allowed.
TEST(Net, EndsWithTheServersError) {
  ExpiryTestServer server({});
  NetOptions options = SmallOptions(server);
  options.load = false;
  options.get_percent = 0;
  ASSERT_TRUE(RunNet(options).has_value());
  options.get_percent = 100;
  options.value_bytes = 17;
  options.records = 10;
  const auto report = RunNet(options);
  EXPECT_THAT(report ? "ran" : report.error(), HasSubstr("another size"));
  options.allow_errors = true;
  const auto counted = RunNet(options);
  ASSERT_TRUE(counted.has_value()) << counted.error();
  EXPECT_GT(counted->run->figures.tally.errors, 0u);
}

// Goal: a server that disconnects, does not exist or speaks another protocol is reported.
TEST(Net, SaysWhyARunIsImpossible) {
  ExpiryTestServer gone({.hangs_up = true});
  NetOptions options = SmallOptions(gone);
  options.load = false;
  const auto report = RunNet(options);
  EXPECT_THAT(report ? "ran" : report.error(), AnyOf(HasSubstr("closed"), HasSubstr("reset")));
  EXPECT_THAT(ProblemOf([](auto& o) { o.unix_path = "/nonexistent/socket"; }),
              HasSubstr("connecting"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.unix_path = std::string(200, 'x'); }),
              HasSubstr("too long"));
  // The generator takes the reply to MSET for that to INFO.
  EXPECT_THAT(ProblemOf([](auto&) {}), HasSubstr("no answer to what was asked: \"$"));
}

// Goal: wrong options are named, not run.
TEST(Net, RefusesWrongOptions) {
  EXPECT_THAT(ProblemOf([](auto& o) { o.connections = 0; }), HasSubstr("--connections"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.depth = 0; }), HasSubstr("--depth"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.group = 0; }), HasSubstr("--group"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.get_percent = 101; }), HasSubstr("--get-percent"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.scan_items = kScanItemsMax + 1; }), HasSubstr("--scan"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.records = 0; }), HasSubstr("--records"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.key_bytes = 7; }), HasSubstr("--key-size"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.seconds = -1; }), HasSubstr("--seconds"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.warm_up_seconds = -1; }), HasSubstr("--warm-up"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.ops = 0, o.load = false; }), HasSubstr("--load"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.curve = {0}; }), HasSubstr("--curve"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.curve = {50}, o.rate = 5; }), HasSubstr("--rate"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.curve = {50}; }), HasSubstr("--seconds"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.workload = "hot3"; }), HasSubstr("--workload"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.protocol = "gopher"; }), HasSubstr("--protocol"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.udp = true, o.load = true; }), HasSubstr("--load"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.udp = true, o.load = false; }), HasSubstr("datagrams"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.udp = true, o.load = false, o.unix_path = "/x"; }),
              HasSubstr("--udp"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.cpu = 100'000; }), HasSubstr("--cpu"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.workload = "f", o.group = 2; }), HasSubstr("--group"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.workload = "e", o.protocol = "memcached-meta"; }),
              HasSubstr("no command"));
  EXPECT_THAT(ProblemOf([](auto& o) { o.scan_command = ScanCommand::kZrangebylex; }),
              HasSubstr("no command"));
}

}  // namespace
}  // namespace skep::bench
