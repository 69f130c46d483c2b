// Tests that a client which reads the leaves of its server believes nothing of a server that was
// killed, whose memory it still has, once the next one has answered a write.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/temporary_directory_test.h"
#include "skep/store.h"
#include "tests/linearizability/child_process.h"

namespace skep::linearizability {
namespace {

class OneSidedCrash : public testing::TestWithParam<const char*> {
 protected:
  static constexpr size_t kKeys = 4;
  static constexpr uint64_t kLives = 8;

  // Numbers of a key's writes: told to have been done, and begun.
  struct Key {
    std::string name;
    std::atomic<uint64_t> told = 0;
    std::atomic<uint64_t> begun = 0;
  };

  void Start();
  std::unique_ptr<Store> Connect(bool reads) const;
  void Write(Store& store, uint64_t seed);
  void Read(Store& store);
  uint64_t Answered(Store& store) const;

  TemporaryDirectory directory_;
  const std::string address_ = FreeAddress();
  const std::string place_ = std::string(GetParam()) == "mem"
                                 ? "mem:unix:" + directory_.path() + "/leaves"
                                 : "tcp:" + FreeAddress();
  std::optional<ChildProcess> server_;
  std::array<Key, kKeys> keys_;
  std::atomic<bool> is_over_ = false;
};

void OneSidedCrash::Start() {
  server_.emplace(std::vector<std::string>{
      SKEP_SERVER, "--port", address_.substr(address_.find(':') + 1), "--dir",
      directory_.path() + "/data", "--share-leaves", place_, "--workers", "2"});
  ASSERT_TRUE(server_->WaitFor("ready to accept connections on ")) << server_->output();
}

std::unique_ptr<Store> OneSidedCrash::Connect(bool reads) const {
  ConnectOptions options{.address = address_, .timeout_ms = 60'000};
  if (reads) options.one_sided = place_;
  auto store = Store::Connect(options);
  SKEP_CHECK(store.has_value());
  return std::move(*store);
}

// Counts up. A write without an answer may take effect later, but not after one of the same key
// that was begun later and answered.
void OneSidedCrash::Write(Store& store, uint64_t seed) {
  std::mt19937_64 rng(seed);
  while (!is_over_) {
    Key& key = keys_[rng() % kKeys];
    const uint64_t number = ++key.begun;
    if (store.Put(key.name, std::to_string(number)).ok()) key.told = number;
  }
}

// A value that is read is not older than what was told before the call, nor newer than what was
// begun before its end.
void OneSidedCrash::Read(Store& store) {
  while (!is_over_ && !testing::Test::HasFailure()) {
    std::array<uint64_t, kKeys> least;
    Batch batch;
    for (size_t i = 0; i < kKeys; ++i) {
      least[i] = keys_[i].told;
      batch.Get(keys_[i].name);
    }
    if (!store.Execute(batch).ok()) continue;
    for (uint32_t i = 0; i < kKeys; ++i) {
      const Outcome& outcome = batch.outcome(i);
      if (outcome.verdict == Verdict::kRefused) continue;
      const uint64_t seen = outcome.present ? std::stoull(std::string(outcome.value)) : 0;
      ASSERT_GE(seen, least[i]);
      ASSERT_LE(seen, keys_[i].begun);
    }
  }
}

uint64_t OneSidedCrash::Answered(Store& store) const {
  for (const auto& keyspace : store.Statistics().keyspaces) {
    for (const auto& [name, value] : keyspace.details) {
      if (name == "one_sided_answered") return value;
    }
  }
  return 0;
}

// Goal: as above, while the server is killed and started again on its directory and its place.
// Method: one thread counts keys up, others read them one-sided in a loop. Each life lasts until
// readers have read a good deal in it.
TEST_P(OneSidedCrash, NothingOfADeadServerIsBelieved) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  for (size_t i = 0; i < kKeys; ++i) keys_[i].name = "key" + std::to_string(i);
  ASSERT_NO_FATAL_FAILURE(Start());
  const auto writer = Connect(false);
  const std::array<std::unique_ptr<Store>, 2> readers = {Connect(true), Connect(true)};
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { Write(*writer, seed); });
  for (const auto& reader : readers) threads.emplace_back([&] { Read(*reader); });
  for (uint64_t life = 0; life < kLives && !HasFailure(); ++life) {
    for (const auto& reader : readers) {
      const uint64_t answered = Answered(*reader);
      while (Answered(*reader) < answered + 200 && !HasFailure()) std::this_thread::yield();
    }
    EXPECT_TRUE(server_->Kill()) << server_->output();
    Start();
  }
  is_over_ = true;
}

INSTANTIATE_TEST_SUITE_P(Fabrics, OneSidedCrash, testing::Values("mem", "tcp"));

}  // namespace
}  // namespace skep::linearizability
