// Random schedules: several threads, readers that stall, memory that is allocated again at once.
//
// SKEP_TREE_TEST_ROUNDS (1) multiplies the operations of each thread.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/sanitized.h"
#include "btree/testing/tree_test_history.h"
#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

constexpr int kOperations = kSanitized ? 800 : 6000;
constexpr int kThreads = 4;

struct Mix {
  const char* name;
  BtreeOptions btree;
  uint64_t keys;
};

constexpr Mix kMixes[] = {
    {"FewKeysNoLog", {.node_bytes = 2048, .log_bytes = 0}, 12},
    {"FewKeys", {.node_bytes = 2048, .log_bytes = 512}, 12},
    {"SomeKeys", {.node_bytes = 2048, .log_bytes = 64}, 100},
    {"ManyKeysNoLog", {.node_bytes = 2048, .log_bytes = 0}, 1000},
    {"ManyKeys", {.node_bytes = 2048, .log_bytes = 512}, 1000},
    {"LargeNodes", {.node_bytes = 8192, .log_bytes = 512}, 300},
};

void PrintTo(const Mix& mix, std::ostream* os) { *os << mix.name; }

// Stops threads for a while at some of the sync points. Thread-safe.
class Stalls {
 public:
  Stalls(Core& core, uint64_t seed) : seed_(seed) {
    core.hook = {.call = [](void* stalls, SyncPoint) { static_cast<Stalls*>(stalls)->Reach(); },
                 .context = this};
  }

 private:
  void Reach() {
    thread_local SeededRandom random(seed_ + threads_.fetch_add(1));
    const uint64_t lot = random.Below(16000);
    if (lot < 100) std::this_thread::yield();
    if (lot < 8) std::this_thread::sleep_for(std::chrono::microseconds(random.Below(300)));
    if (lot == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }

  const uint64_t seed_;
  std::atomic<uint64_t> threads_{0};
};

// One thread's operations. Every value is written once, so that a history tells all writes apart.
class Worker {
 public:
  Worker(TestTree& tree, const Mix& mix, int number, uint64_t seed)
      : tree_(tree), mix_(mix), number_(number), random_(seed) {}

  void Run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) Step();
    for (const SnapshotRef snapshot : snapshots_) {
      Batch batch;
      batch.set_snapshot(snapshot);
      batch.Scan(Range::All(), {.reverse = random_.Chance(1, 2)});
      Execute(batch);
      tree_.CloseSnapshot(snapshot);
    }
  }
  const History& history() const { return history_; }

 private:
  void Step() {
    const uint64_t lot = random_.Below(100);
    if (lot < 45) return Write();
    if (lot < 60) return Get();
    if (lot < 72) return ReadRange();
    if (lot < 76) return DeleteRange();
    if (lot < 88) return WriteAtomic();
    if (lot < 93) return ReadAtomic();
    if (lot < 98) return UseSnapshot();
    tree_.engine().Maintain(TestTree::kNowMs);
  }

  void Execute(Batch& batch) {
    const Version released = tree_.engine().gate().released();
    const Version ticket = tree_.Execute(batch);
    if (random_.Chance(1, 2)) tree_.engine().gate().Wait(ticket);
    if (tree_.engine().traits().multi_version) history_.Note(batch, ticket, released);
  }

  // Some keys are too long for a node and begin alike.
  std::string KeyOf(uint64_t number) const {
    std::string key = number % 5 == 3 ? std::string(600, 'k') : "key";
    return key + std::to_string(number);
  }
  std::string_view Key(Batch& batch, uint64_t* number = nullptr) {
    const uint64_t n = random_.Below(mix_.keys);
    if (number != nullptr) *number = n;
    return batch.scratch().Copy(KeyOf(n));
  }
  std::string_view Value(Batch& batch) {
    const uint64_t lot = random_.Below(50);
    const uint64_t bytes = lot == 0 ? 3000 : lot < 10 ? 200 : random_.Below(60);
    return batch.scratch().Copy(std::to_string(number_) + "." + std::to_string(++values_) +
                                std::string(bytes, '.'));
  }

  void Write() {
    Batch batch;
    AddWrite(batch);
    uint64_t number = 0;
    if (random_.Chance(1, 4)) {
      // The hint may be as old as the thread.
      batch.Add({.op = Op::kPut,
                 .flags = Request::kReturnPrevious,
                 .key = Key(batch, &number),
                 .value = Value(batch),
                 .hint = HintOf(number)});
    }
    Execute(batch);
  }

  void AddWrite(Batch& batch) {
    const std::string_view key = Key(batch);
    const uint8_t previous = random_.Chance(3, 4) ? Request::kReturnPrevious : 0;
    switch (random_.Below(8)) {
      case 0:
        batch.Insert(key, Value(batch), previous);
        return;
      case 1:
        batch.Update(key, Value(batch), previous);
        return;
      case 2:
      case 3:
        batch.Delete(key, previous);
        return;
      case 4:
        if (const auto seen = seen_.find(key); seen != seen_.end()) {
          batch.CompareAndSet(key, batch.scratch().Copy(seen->second), Value(batch));
          return;
        }
        [[fallthrough]];
      default:
        batch.Put(key, Value(batch), previous);
    }
  }

  void Get() {
    Batch batch;
    uint64_t number = 0;
    const std::string_view key = Key(batch, &number);
    const bool hinted = random_.Chance(1, 2);
    batch.Add({.op = Op::kGet,
               .flags = Request::kWantHint,
               .key = key,
               .hint = hinted ? HintOf(number) : Hint{}});
    Execute(batch);
    const Outcome& outcome = batch.outcome(0);
    // The first hint of a key stays.
    hints_.try_emplace(number, outcome.hint);
    if (outcome.present) seen_[std::string(key)] = outcome.value;
  }
  Hint HintOf(uint64_t number) const {
    const auto hint = hints_.find(number);
    return hint == hints_.end() ? Hint{} : hint->second;
  }

  Range ARange(Batch& batch) {
    Range range;
    if (random_.Chance(4, 5)) range.lo = Key(batch);
    if (random_.Chance(3, 4)) {
      range.hi = Key(batch);
      range.unbounded = false;
    }
    if (!range.unbounded && range.hi < range.lo) std::swap(range.lo, range.hi);
    return range;
  }
  uint32_t Limit() {
    return random_.Chance(2, 3) ? static_cast<uint32_t>(random_.Below(30)) : kNoLimit;
  }
  void AddRead(Batch& batch) {
    switch (random_.Below(4)) {
      case 0:
        batch.Get(Key(batch));
        return;
      case 1:
        batch.Count(ARange(batch), Limit());
        return;
      default:
        batch.Scan(ARange(batch), {.limit = Limit(), .reverse = random_.Chance(1, 2)});
    }
  }
  void ReadRange() {
    Batch batch;
    AddRead(batch);
    Execute(batch);
  }

  void DeleteRange() {
    Batch batch;
    if (random_.Chance(1, 10)) {
      batch.DeleteAll();
    } else if (random_.Chance(1, 3)) {
      batch.DeleteRange(ARange(batch), Limit());
    } else {
      const uint64_t from = random_.Below(mix_.keys);
      const std::string_view lo = batch.scratch().Copy(KeyOf(from));
      batch.DeleteRange(Range::Between(lo, batch.scratch().Copy(KeyOf(from + 3))));
    }
    Execute(batch);
  }

  void WriteAtomic() {
    Batch batch(Batch::Kind::kAtomic);
    for (uint64_t left = 2 + random_.Below(8); left > 0; --left) AddWrite(batch);
    if (random_.Chance(1, 8)) batch.DeleteRange(ARange(batch), Limit());
    if (random_.Chance(1, 8)) batch.RequirePresent(Key(batch));
    Execute(batch);
  }
  void ReadAtomic() {
    Batch batch(Batch::Kind::kAtomic);
    for (uint64_t left = 1 + random_.Below(6); left > 0; --left) AddRead(batch);
    Execute(batch);
  }

  void UseSnapshot() {
    if (!tree_.engine().traits().snapshots) return;
    if (snapshots_.size() < 3 && random_.Chance(1, 4)) {
      snapshots_.push_back(tree_.OpenSnapshot());
    }
    if (snapshots_.empty()) return;
    const auto which =
        snapshots_.begin() + static_cast<ptrdiff_t>(random_.Below(snapshots_.size()));
    Batch batch;
    batch.set_snapshot(*which);
    for (uint64_t left = 1 + random_.Below(3); left > 0; --left) AddRead(batch);
    Execute(batch);
    if (random_.Chance(1, 8)) {
      tree_.CloseSnapshot(*which);
      snapshots_.erase(which);
    }
  }

  TestTree& tree_;
  const Mix& mix_;
  const int number_;
  SeededRandom random_;
  uint64_t values_ = 0;
  History history_;
  State seen_;  // values that keys had at some time
  std::map<uint64_t, Hint> hints_;
  std::vector<SnapshotRef> snapshots_;
};

unsigned PrintedSeed() {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  return seed;
}

class RandomSchedules : public OnEachLayoutWith<Mix> {
 protected:
  // Runs the mix and returns the history of all threads.
  History Run(TestTree& tree, uint64_t seed) {
    Stalls stalls(tree.core(), seed);
    std::vector<Worker> workers;
    for (int i = 0; i < kThreads; ++i) workers.emplace_back(tree, GetCase(), i, seed + 100 + i);
    {
      std::vector<std::jthread> threads;
      for (Worker& worker : workers) {
        threads.emplace_back([&worker] { worker.Run(kOperations * RoundsOfTests()); });
      }
    }
    tree.core().hook = {};
    tree.MaintainAll();
    History all;
    for (const Worker& worker : workers) all.Join(worker.history());
    return all;
  }
};

// Goal: under any schedule every result is that of one sequence, in the order of versions, which
// respects the order of released versions; snapshots keep what they saw; nothing is lost or left
// over.
// Method: the threads' results are replayed. Stalls at sync points hold back what others retire.
TEST_P(RandomSchedules, AreOneSequence) {
  const unsigned seed = PrintedSeed();
  TestTree tree(GetCase().btree);
  History history = Run(tree, seed);
  const State state = history.Replay();
  ASSERT_FALSE(HasFailure()) << "seed " << seed;
  tree.ExpectHolds(state);
  tree.ExpectNothingLeaked();
}

// Goal: a tree without versions stays sound, too, and gives all memory back.
TEST_P(RandomSchedules, LeaveASoundTreeWithoutVersions) {
  const unsigned seed = PrintedSeed();
  BtreeOptions options = GetCase().btree;
  options.multi_version = false;
  TestTree tree(options);
  Run(tree, seed);
  tree.ExpectHolds(tree.Contents());
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Mixes, RandomSchedules, EachLayoutWith(kMixes), LayoutAndCaseName<Mix>);

}  // namespace
}  // namespace skep::btree
