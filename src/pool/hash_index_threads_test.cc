// Clients in threads read the hash index while its server writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "pool/bucket_reader.h"
#include "pool/hash_index.h"
#include "pool/index_memory_test.h"

namespace skep::pool {
namespace {

constexpr uint32_t kKeys = 2000;
constexpr uint32_t kFirstKeys = 200;  // there before the clients
constexpr uint32_t kSteps = 100'000;
constexpr uint32_t kReaders = 2;
constexpr uint64_t kLimit = 40;  // L, in steps of the server

// Those that end in 0 are never removed.
bool IsKept(uint32_t key) { return key % 10 == 0; }

// Every other one of a few that are kept, so that clients meet writes.
uint32_t DrawKey(Random& random, uint32_t keys) {
  return static_cast<uint32_t>(random.Chance(1, 2) ? random.Below(5) * 10 : random.Below(keys));
}

// The step at which it was written is the version.
Slot SlotOf(const KeyDigest& digest, uint32_t key, uint32_t step) {
  return {digest.signature(), 1, static_cast<uint8_t>(step >> 15), key, step % kChunkUnits};
}
uint32_t StepOf(Slot slot) { return uint32_t{slot.gen()} << 15 | slot.unit(); }

class Server {
 public:
  Server() {
    for (uint32_t key = 0; key < kKeys; ++key) digests_.push_back(DigestAt(key));
    for (uint32_t key = 0; key < kFirstKeys; ++key) Set(key, 0);
  }

  const IndexMemory& memory() const { return memory_; }
  const KeyDigest& digest(uint32_t key) const { return digests_[key]; }
  // Its clock.
  uint64_t Now() const { return step_.load(std::memory_order_acquire); }
  bool HasEnded() const { return Now() == kSteps; }

  void Started() { started_.fetch_add(1); }

  // Ever more of the keys, so that the table grows all the time.
  void Serve() {
    while (started_ != kReaders) std::this_thread::yield();
    SeededRandom random(1);
    for (uint32_t step = 1; step <= kSteps; ++step) {
      const uint32_t keys = kFirstKeys + static_cast<uint32_t>(uint64_t{kKeys} * step / kSteps);
      const uint32_t key = DrawKey(random, std::min(keys, kKeys));
      if (IsKept(key) || random.Chance(2, 3)) {
        Set(key, step);
      } else {
        index_->Remove(digest(key));
      }
      index_->Maintain(step);
      step_.store(step, std::memory_order_release);
    }
    EXPECT_EQ(index_->Verify(), nullptr);
    EXPECT_GT(index_->buckets(), 100u);
  }

 private:
  void Set(uint32_t key, uint32_t step) {
    EXPECT_TRUE(index_->Set(digest(key), SlotOf(digest(key), key, step)));
  }

  IndexMemory memory_{1 << 10, 1 << 10};
  std::unique_ptr<HashIndex> index_ = memory_.Create({.first_depth = 0, .read_limit_ns = kLimit});
  std::vector<KeyDigest> digests_;
  std::atomic<uint64_t> step_{0};
  std::atomic<uint32_t> started_{0};
};

class Client {
 public:
  Client(Server& server, uint64_t seed) : server_(server), random_(seed), seen_(kKeys) {}

  void Run() {
    GetOne();
    server_.Started();
    while (!server_.HasEnded()) GetOne();
  }

 private:
  // Acquire: the read of what a link leads to, and of the clock, come after that of the words.
  BucketImage Read(const BucketAddress& at) const {
    BucketImage image;
    for (uint32_t i = 0; i <= kBucketSlots; ++i) {
      const auto& word = WordOf(server_.memory().At(at), i);
      WordOf(image, i) = word.load(std::memory_order_acquire);
    }
    return image;
  }

  void GetOne() {
    const uint32_t key = DrawKey(random_, kKeys);
    const uint64_t begin = server_.Now();
    const Slot slot = Get(key);
    if (server_.Now() - begin <= kLimit) Check(key, slot);  // R4
  }

  Slot Get(uint32_t key) {
    const uint64_t index = server_.digest(key).index;
    ChainReader reader(index, buckets_);
    for (;;) {
      const BucketImage image = Read(reader.next());
      const ChainReader::Step step = reader.Take(image);
      buckets_ = std::max(buckets_, reader.buckets());
      if (step == ChainReader::Step::kElsewhere) continue;
      const uint32_t candidates = CandidatesIn(image, index);
      for (uint32_t i = 0; i < kBucketSlots; ++i) {
        const Slot slot(image.slots[i]);
        if ((candidates >> i & 1) != 0 && slot.chunk() == key) return slot;
      }
      if (step == ChainReader::Step::kEnd) return Slot();
    }
  }

  void Check(uint32_t key, Slot slot) {
    if (!slot) {
      const bool was_there = key < kFirstKeys || seen_[key] != 0;
      EXPECT_FALSE(IsKept(key) && was_there) << "lost key " << key;
      return;
    }
    EXPECT_GE(StepOf(slot), seen_[key]) << "key " << key;
    seen_[key] = StepOf(slot);
  }

  Server& server_;
  SeededRandom random_;
  std::vector<uint32_t> seen_;
  uint64_t buckets_ = 1;
};

// Goal: no client sees a key go back in time, or misses one that is never removed, while the table
// grows under it; nothing is read or written but atomically.
// Method: the clock of the server and its clients is the number of the server's steps, so that how
// fast threads run decides nothing.
TEST(HashIndexThreads, ClientsSeeNothingGoBack) {
  Server server;
  std::vector<Client> clients;
  for (uint32_t i = 0; i < kReaders; ++i) clients.emplace_back(server, i);
  std::vector<std::jthread> threads;
  for (Client& client : clients) threads.emplace_back([&client] { client.Run(); });
  server.Serve();
  threads.clear();
}

}  // namespace
}  // namespace skep::pool
