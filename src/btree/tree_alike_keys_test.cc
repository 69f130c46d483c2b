// Random histories over keys that are hard to tell apart by a few of their bytes.
//
// SKEP_TREE_TEST_ROUNDS (1) multiplies the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "base/random.h"
#include "base/sanitized.h"
#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

constexpr int kSteps = kSanitized ? 300 : 2500;

std::string Digits(uint64_t number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
}

// A set of keys: the key of each number. Different numbers may have one key.
struct KeySet {
  const char* name;
  std::string (*key_of)(uint64_t number);
};

constexpr KeySet kKeySets[] = {
    {"ACommonPrefix", [](uint64_t n) { return std::string(100, 'p') + Digits(n); }},
    {"APrefixBeyondAByte", [](uint64_t n) { return std::string(400, 'p') + Digits(n); }},
    {"ALateDifference",
     [](uint64_t n) { return std::string(20, 'm') + Digits(n) + std::string(12, 'z'); }},
    // The ends of a node have no prefix in common, and the keys between are alike.
    {"OutliersAround",
     [](uint64_t n) {
       return (n % 50 == 0 ? Digits(n) : std::string(1, 'm')) + std::string(20, 'm') + Digits(n);
     }},
    // A search takes zeros for the bytes behind a key's end.
    {"ZerosOnly", [](uint64_t n) { return std::string(n % 300, '\0'); }},
    {"ZerosBehind", [](uint64_t n) { return Digits(n / 8) + std::string(n % 8, '\0'); }},
    {"LargestBytes", [](uint64_t n) { return std::string(n % 12, '\xff') + Digits(n); }},
    {"MixedSizes",
     [](uint64_t n) { return Digits(n * n % 1000) + std::string(n % 7 == 0 ? 600 : n % 40, 'x'); }},
};

struct Nodes {
  const char* name;
  BtreeOptions options;
};
constexpr Nodes kNodes[] = {
    {"SmallNodes", kSmallNodes},
    {"NoLog", {.node_bytes = 2048, .log_bytes = 0}},
    {"LargeNodes", {.node_bytes = 32768, .log_bytes = 2048}},
};

struct Case {
  std::string name;
  KeySet keys;
  Nodes nodes;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const KeySet& keys : kKeySets) {
    for (const Nodes& nodes : kNodes) {
      cases.push_back({std::string(keys.name) + nodes.name, keys, nodes});
    }
  }
  return cases;
}

using Items = std::vector<std::pair<std::string, std::string>>;

// A tree, the content it must have, and one thread that changes both.
class AlikeHistory {
 public:
  AlikeHistory(const Case& c, uint64_t seed)
      : keys_(c.keys), random_(seed), tree_(c.nodes.options) {}

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      ASSERT_NO_FATAL_FAILURE(Step());
      if (step == steps / 2) OpenSnapshot();
      if (step % 500 == 0) {
        ASSERT_NO_FATAL_FAILURE(tree_.ExpectHolds(state_));
      }
    }
    ASSERT_NO_FATAL_FAILURE(tree_.ExpectHolds(state_));
    EXPECT_EQ(tree_.Contents(snapshot_), at_snapshot_);
    EXPECT_EQ(tree_.Contents(snapshot_, true), at_snapshot_);
    tree_.CloseSnapshot(snapshot_);
    tree_.ExpectNothingLeaked();
  }

 private:
  static constexpr uint64_t kNumbers = 3000;

  void Step() {
    const uint64_t lot = random_.Below(100);
    if (lot < 55) return Write();
    if (lot < 75) return Get();
    if (lot < 97) return Scan();
    DeleteRange();
  }

  // A random key, now and then near the one before, so that a leaf's log has many items.
  std::string Key() {
    if (random_.Chance(1, 10)) near_ = random_.Below(kNumbers);
    return keys_.key_of((near_ + random_.Below(random_.Chance(1, 2) ? 20 : kNumbers)) % kNumbers);
  }
  // A random value, half of the time of one size.
  std::string Value() {
    const uint64_t lot = random_.Below(200);
    std::string value = std::to_string(++values_);
    value.resize(lot < 100 ? 8 : lot < 199 ? 8 + lot % 30 : 3000, '.');
    return value;
  }
  std::string_view Kept(Batch& batch, const std::string& bytes) {
    return batch.scratch().Copy(bytes);
  }

  void Write() {
    Batch batch(random_.Chance(1, 4) ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    std::vector<std::optional<std::string>> expected;
    for (uint64_t left = 1 + random_.Below(12); left > 0; --left) {
      const std::string key = Key();
      const auto held = state_.find(key);
      expected.push_back(held == state_.end() ? std::nullopt : std::optional(held->second));
      if (random_.Chance(1, 3)) {
        batch.Delete(Kept(batch, key), Request::kReturnPrevious);
        state_.erase(key);
      } else {
        const std::string value = Value();
        batch.Put(Kept(batch, key), Kept(batch, value), Request::kReturnPrevious);
        state_[key] = value;
      }
    }
    tree_.Execute(batch);
    for (uint32_t i = 0; i < expected.size(); ++i) {
      const Outcome& outcome = batch.outcome(i);
      ASSERT_EQ(outcome.present, expected[i].has_value());
      if (expected[i]) {
        ASSERT_EQ(outcome.value, *expected[i]);
      }
    }
  }

  void Get() {
    Batch batch;
    std::vector<std::string> keys;
    for (uint64_t left = 1 + random_.Below(30); left > 0; --left) {
      keys.push_back(random_.Chance(3, 4) ? Key() : Bound());
      batch.Get(Kept(batch, keys.back()));
    }
    tree_.Execute(batch);
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const auto held = state_.find(keys[i]);
      ASSERT_EQ(batch.outcome(i).present, held != state_.end());
      if (held != state_.end()) {
        ASSERT_EQ(batch.outcome(i).value, held->second);
      }
    }
  }

  void Scan() {
    std::string lo = Bound();
    std::string hi = Bound();
    if (hi < lo) std::swap(lo, hi);
    const bool reverse = random_.Chance(1, 2);
    const bool unbounded = random_.Chance(1, 4);
    const uint64_t limit = random_.Below(60);
    auto begin = state_.lower_bound(lo);
    const bool floor = !reverse && random_.Chance(1, 3);
    if (floor) {
      const auto after = state_.upper_bound(lo);
      if (after != state_.begin()) begin = std::prev(after);
    }
    Items expected(begin, unbounded ? state_.end() : state_.lower_bound(hi));
    if (reverse) std::ranges::reverse(expected);
    if (expected.size() > limit) expected.resize(limit);
    Batch batch;
    batch.Scan(unbounded ? Range::From(lo) : Range::Between(lo, hi),
               {.limit = static_cast<uint32_t>(limit), .reverse = reverse, .seek_floor = floor});
    tree_.Execute(batch);
    Items items;
    for (const Item& item : batch.items(0)) items.emplace_back(item.key, item.value);
    ASSERT_EQ(items, expected);
  }
  // A random bound: a key of the set, or a key that is cut or longer.
  std::string Bound() {
    std::string bound = Key();
    if (random_.Chance(1, 4)) bound.resize(random_.Below(bound.size() + 1));
    if (random_.Chance(1, 4)) bound += random_.Chance(1, 2) ? '\0' : '\xff';
    return bound;
  }

  void DeleteRange() {
    const std::string lo = Bound();
    auto end = state_.lower_bound(lo);
    for (uint64_t left = random_.Below(random_.Chance(1, 10) ? 500 : 10); left > 0; --left) {
      if (end != state_.end()) ++end;
    }
    const bool unbounded = end == state_.end();
    const std::string hi = unbounded ? "" : end->first;
    state_.erase(state_.lower_bound(lo), end);
    tree_.DeleteRange(unbounded ? Range::From(lo) : Range::Between(lo, hi));
  }

  void OpenSnapshot() {
    snapshot_ = tree_.OpenSnapshot();
    at_snapshot_ = state_;
  }

  const KeySet keys_;
  SeededRandom random_;
  TestTree tree_;
  State state_;
  uint64_t near_ = 0;
  uint64_t values_ = 0;
  SnapshotRef snapshot_;
  State at_snapshot_;
};

class AlikeKeys : public OnEachLayoutWith<Case> {};

// Goal: a tree has the right content, however alike its keys are: puts, deletes, range deletes,
// gets and scans both ways, from bounds that are keys or not, and a snapshot.
// Method: one thread's random batches, each result compared with a map's. Keys that differ in few
// bytes, in nodes that split often and in nodes that have hundreds of items.
TEST_P(AlikeKeys, AgreeWithAMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  AlikeHistory history(GetCase(), seed);
  history.Run(kSteps * RoundsOfTests());
}

INSTANTIATE_TEST_SUITE_P(Sets, AlikeKeys, EachLayoutWith(Cases()), LayoutAndCaseName<Case>);

}  // namespace
}  // namespace skep::btree
