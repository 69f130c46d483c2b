// Judges histories of a server part of whose GETs a program in the driver's hook answers, by the
// checker: GETs as datagrams between two network namespaces, beside all that connections can do.
// Needs root; else it is skipped, where the variable CI is set it fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/child_process.h"
#include "tests/linearizability/history_tally.h"
#include "tests/linearizability/play_round.h"
#include "tests/linearizability/resp_client.h"
#include "tests/linearizability/round_shape.h"
#include "tests/linearizability/rounds.h"
#include "tests/linearizability/store_client.h"
#include "tests/linearizability/store_for_tests.h"

namespace skep::linearizability {
namespace {

using Words = std::vector<std::string>;

// A network of its own: of a process, and gone with it.
class Namespace {
 public:
  Namespace()
      : holder_({"/usr/bin/unshare", "-n", "sh", "-c", "echo process $$; exec sleep infinity"}) {
    process_ = holder_.WaitFor("process ").value_or("");
  }
  const std::string& process() const { return process_; }
  std::string path() const { return "/proc/" + process_ + "/ns/net"; }
  Words Command(Words words) const {
    words.insert(words.begin(), {"/usr/bin/nsenter", "--net=" + path()});
    return words;
  }
  void Run(const std::string& command) const {
    const std::string whole = "nsenter --net=" + path() + " ip " + command;
    ASSERT_EQ(std::system(whole.c_str()), 0) << whole;
  }

 private:
  ChildProcess holder_;
  std::string process_;
};

class XdpHistories : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      if (std::getenv("CI") != nullptr) FAIL() << "needs root";
      GTEST_SKIP() << "needs root: network namespaces, and a program in a driver's hook";
    }
    ASSERT_NO_FATAL_FAILURE(MakeNetworks());
    ASSERT_NO_FATAL_FAILURE(StartServer());
  }
  void TearDown() override { std::remove(socket_.c_str()); }

  void MakeNetworks() {
    ASSERT_FALSE(theirs_.process().empty() || ours_.process().empty());
    theirs_.Run("link add server type veth peer name client netns " + ours_.process());
    theirs_.Run("address add 10.77.0.1/24 dev server");
    theirs_.Run("link set server up");
    ours_.Run("address add 10.77.0.2/24 dev client");
    ours_.Run("link set client up");
    // The sockets of this thread, and of those that it starts, are in the client's network.
    const FileDescriptor ours(open(ours_.path().c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(setns(ours.get(), CLONE_NEWNET), 0);
  }
  void StartServer() {
    helper_ = std::make_unique<ChildProcess>(
        theirs_.Command({SKEP_NETINDEX, "xdp", "--interface", "server", "--socket", socket_,
                         "--port", "7379", "--mode", "generic"}));
    ASSERT_TRUE(helper_->WaitFor("ready: ")) << helper_->output();
    server_ = std::make_unique<ChildProcess>(
        theirs_.Command({SKEP_SERVER, "--bind", "10.77.0.1", "--port", "7379", "--protected-mode",
                         "no", "--udp", "yes", "--workers", "3", "--xdp", socket_}));
    ASSERT_TRUE(server_->WaitFor("ready to accept")) << server_->output();
    auto store = Store::Connect(
        {.address = "10.77.0.1:7379", .connections = 2, .timeout_ms = 60'000, .datagrams = true});
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    store_ = std::move(*store);
  }
  std::unique_ptr<KvClient> NewClient() {
    return std::make_unique<StoreClient>(*store_, StoreForTests::EngineOf(*store_));
  }
  void RunRound(uint64_t seed, const RoundShape& shape) {
    Batch empty;
    empty.DeleteAll();
    ASSERT_TRUE(store_->Execute(empty).ok());
    const auto [history, check] = PlayRound(seed, shape, [&] { return NewClient(); });
    tally_.Add(history);
    const CheckResult result = CheckLinearizable(history, check);
    ASSERT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  }
  // The number behind `name` in INFO.
  uint64_t Told(const std::string& name) {
    RespConnection connection(SocketNetwork(), "10.77.0.1:7379");
    const auto reply = connection.Ask({"INFO", "xdp"});
    const std::string text(reply->text);
    const size_t at = text.find(name + ":");
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size() + 1));
  }

  const std::string socket_ = "/tmp/skep-xdp-histories-" + std::to_string(getpid());
  Namespace theirs_, ours_;
  std::unique_ptr<ChildProcess> helper_, server_;
  std::unique_ptr<Store> store_;
  HistoryTally tally_;
};

// Goal: the answers of server and hook together are linearizable: whatever is written, read as a
// range, deleted as a range or flushed between them.
// Method: short keys and values, which the hook takes, and mixes as in linearizability_test.cc
// without times. INFO must tell that the hook has answered, and that entries were made invalid.
TEST_F(XdpHistories, AreLinearizable) {
  constexpr uint64_t kRoundsMin = 40;
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  ForRounds(kRoundsMin, [&](uint64_t round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    RoundShape shape = ShapeOf(round);
    shape.mix.ticks = 0;
    shape.mix.value_bytes = {0};
    shape.pads_keys = false;
    RunRound(seed + round, shape);
  });
  std::cout << tally_ << "\n"
            << Told("xdp_hits") << " hits, " << Told("xdp_misses") << " misses, "
            << Told("xdp_fills") << " fills, " << Told("xdp_invalidations") << " invalidations\n";
  EXPECT_GT(Told("xdp_hits"), kRoundsMin);
  EXPECT_GT(Told("xdp_invalidations"), kRoundsMin);
  EXPECT_GT(Told("xdp_epoch"), kRoundsMin);
}

}  // namespace
}  // namespace skep::linearizability
