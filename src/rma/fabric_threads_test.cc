// Endpoints of mem and tcp in threads of their own, for ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "rma/testing/fabric_world.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

constexpr uint64_t kWords = 512;
// A number that was written in two parts is no multiple of it.
constexpr uint64_t kBytesAlike = 0x0101010101010101;

class FabricThreads : public testing::TestWithParam<FabricBackend> {
 protected:
  void SetUp() override {
    auto memory = SharedMemory::Create(kWords * 8, SharedPages::kPlain);
    ASSERT_TRUE(memory);
    memory_ = std::make_unique<SharedMemory>(std::move(*memory));
    auto target = world_->fabric().Open(
        {.listen = world_->NewAddress(), .regions = {{memory_.get(), Access::kReadWrite}}});
    ASSERT_TRUE(target);
    target_ = std::move(*target);
    address_ = target_->address();
  }

  // An endpoint that is connected to the target, which somebody polls.
  std::pair<std::unique_ptr<Endpoint>, PeerId> Connect() {
    auto endpoint = std::move(*world_->fabric().Open({}));
    const auto peer = endpoint->Connect(address_, 10'000);
    EXPECT_TRUE(peer);
    EXPECT_EQ(AwaitEvent(*endpoint).kind, Kind::kJoined);
    return {std::move(endpoint), *peer};
  }
  static Event AwaitEvent(Endpoint& endpoint) {
    for (;;) {
      const auto events = endpoint.Poll(-1);
      if (events.empty()) continue;
      EXPECT_EQ(events.size(), 1u);
      return events.front();
    }
  }
  // Polls the target until nobody needs it any more; answers calls with what they say.
  void Serve() {
    while (!is_done_) {
      for (const Event& event : target_->Poll(-1)) {
        if (event.kind == Kind::kRequest) target_->Reply(event.peer, event.token, event.bytes);
      }
    }
  }
  void Stop() {
    is_done_ = true;
    target_->Wake();
  }
  std::span<uint64_t> words() {
    return {reinterpret_cast<uint64_t*>(memory_->begin()), size_t{kWords}};
  }

  std::unique_ptr<FabricWorld> world_ = GetParam().make();
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<Endpoint> target_;
  Address address_;
  std::atomic<bool> is_done_ = false;
};

// Goal: words are read and written whole (F1) by peers and by the process whose memory it is, all
// at once. libfabric over TCP alone does not promise it (ofi_fabric.h): there all operations end.
TEST_P(FabricThreads, WordsAreWhole) {
  const int rounds = Rounds(5000);
  const bool are_whole = GetParam().name != "OfiTcp";
  std::atomic<int> broken = 0;
  const auto check = [&](uint64_t word) {
    broken += word % kBytesAlike == 0 || !are_whole ? 0 : 1;
  };
  const auto work = [&](Operation::Kind kind) {
    const auto [endpoint, peer] = Connect();
    std::vector<uint64_t> local(kWords);
    for (int round = 1; round <= rounds; ++round) {
      if (kind == Operation::Kind::kWrite) local.assign(kWords, round % 256 * kBytesAlike);
      const Operation operation = {.kind = kind, .bytes = kWords * 8, .local = local.data()};
      endpoint->Post(peer, 0, {&operation, 1});
      const Event event = AwaitEvent(*endpoint);
      if (event.kind != Kind::kDone || !event.status.ok()) ++broken;
      for (const uint64_t word : local) check(word);
    }
  };
  std::thread server([&] { Serve(); });
  std::thread writer(work, Operation::Kind::kWrite);
  std::thread other_writer(work, Operation::Kind::kWrite);
  std::thread reader(work, Operation::Kind::kRead);
  for (int round = 0; round < rounds; ++round) {
    for (uint64_t& word : words()) {
      const std::atomic_ref shared(word);
      check(shared.load(std::memory_order_relaxed));
      if (round % 16 == 0) shared.store(kBytesAlike, std::memory_order_relaxed);
    }
  }
  writer.join();
  other_writer.join();
  reader.join();
  Stop();
  server.join();
  EXPECT_EQ(broken, 0);
}

// Goal: what a peer wrote before a flag is there for whoever sees the flag, when the writer waited
// for kDone of the first before it posted the second (F2, F3); in both directions.
TEST_P(FabricThreads, FlagsComeAfterWhatTheyTellOf) {
  constexpr uint64_t kData = 8;
  constexpr uint64_t kFlag = 100;
  const uint64_t rounds = Rounds(5000);
  std::thread server([&] { Serve(); });
  std::thread writer([&] {
    const auto [endpoint, peer] = Connect();
    for (uint64_t round = 1; round <= rounds; ++round) {
      for (const uint64_t word : {kData, kFlag}) {
        const Operation operation = {.kind = Operation::Kind::kWrite,
                                     .offset = word * 8,
                                     .bytes = 8,
                                     .local = const_cast<uint64_t*>(&round)};
        endpoint->Post(peer, 0, {&operation, 1});
        EXPECT_TRUE(AwaitEvent(*endpoint).status.ok());
      }
    }
  });
  std::atomic<int> broken = 0;
  std::thread reader([&] {
    const auto [endpoint, peer] = Connect();
    uint64_t flag = 0;
    uint64_t data = 0;
    while (flag < rounds) {
      for (const auto& [word, to] : {std::pair(kFlag, &flag), std::pair(kData, &data)}) {
        const Operation operation = {.offset = word * 8, .bytes = 8, .local = to};
        endpoint->Post(peer, 0, {&operation, 1});
        EXPECT_TRUE(AwaitEvent(*endpoint).status.ok());
      }
      if (data < flag) ++broken;
    }
  });
  for (uint64_t flag = 0; flag < rounds;) {
    flag = std::atomic_ref(words()[kFlag]).load(std::memory_order_acquire);
    if (std::atomic_ref(words()[kData]).load(std::memory_order_relaxed) < flag) ++broken;
    std::this_thread::yield();
  }
  writer.join();
  reader.join();
  Stop();
  server.join();
  EXPECT_EQ(broken, 0);
}

// Goal: Wake of another thread ends a Poll that waits for ever, every time.
TEST_P(FabricThreads, WakeEndsAPoll) {
  std::atomic<int> polls = 0;
  std::thread poller([&] {
    while (!is_done_) {
      target_->Poll(-1);
      ++polls;
    }
  });
  for (int i = 0; i < 1000; ++i) {
    const int before = polls;
    target_->Wake();
    while (polls == before) std::this_thread::yield();
  }
  Stop();
  poller.join();
}

// Goal: many callers in threads of their own get their own replies.
TEST_P(FabricThreads, CallersInThreads) {
  std::thread server([&] { Serve(); });
  std::vector<std::thread> callers;
  std::atomic<int> broken = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      const auto [endpoint, peer] = Connect();
      for (uint64_t call = 0; call < Rounds(uint64_t{2000}); ++call) {
        const std::string request = std::to_string(i) + "/" + std::to_string(call);
        endpoint->Call(peer, call, request);
        const Event event = AwaitEvent(*endpoint);
        if (event.kind != Kind::kReply || event.token != call || event.bytes != request) ++broken;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  Stop();
  server.join();
  EXPECT_EQ(broken, 0);
}

INSTANTIATE_TEST_SUITE_P(Sockets, FabricThreads, testing::ValuesIn(SocketBackends()),
                         [](const auto& backend) { return backend.param.name; });
INSTANTIATE_TEST_SUITE_P(Ofi, FabricThreads, testing::ValuesIn(OfiBackends()),
                         [](const auto& backend) { return backend.param.name; });

}  // namespace
}  // namespace skep::rma
