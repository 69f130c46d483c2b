// Tests the tree's shape: whatever the order and the length of keys, it agrees with a std::map,
// keeps its invariants after every step, and its nodes are neither too many nor too empty.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "btree/testing/tree_test_tree.h"

namespace skep::btree {
namespace {

// A kind of keys, ascending.
struct Shape {
  const char* name;
  std::string (*key)(const Geometry& geometry, uint32_t number);
  size_t (*value_bytes)(const Geometry& geometry, uint32_t number);
};

std::string Digits(uint32_t number) {
  std::string digits = std::to_string(number);
  return std::string(6 - digits.size(), '0') + digits;
}

constexpr Shape kShapes[] = {
    {"Short", [](const Geometry&, uint32_t n) { return Digits(n); },
     [](const Geometry&, uint32_t n) -> size_t { return n % 40; }},
    // A full leaf has seven of these items.
    {"Maximal",
     [](const Geometry& g, uint32_t n) {
       return std::string(g.key_inline_max() - 6, 'k') + Digits(n);
     },
     [](const Geometry& g, uint32_t) -> size_t { return g.value_inline_max(); }},
    // Separators do not fit into a node, and the bytes of them that it holds are equal.
    {"LongAndAlike",
     [](const Geometry& g, uint32_t n) {
       return std::string(g.key_inline_max() + 200, 'k') + Digits(n);
     },
     [](const Geometry&, uint32_t n) -> size_t { return n % 3 == 0 ? 700 : 7; }},
    // The longest key, or a part of it, is a prefix of the next.
    {"Nested", [](const Geometry&, uint32_t n) { return std::string(n * 5, '\0'); },
     [](const Geometry&, uint32_t) -> size_t { return 20; }},
    {"MixedLengths",
     [](const Geometry& g, uint32_t n) {
       return Digits(n) + std::string(n % 7 * g.key_inline_max() / 5, '\xff');
     },
     [](const Geometry& g, uint32_t n) -> size_t { return n % 11 * g.value_inline_max() / 9; }},
};

struct Order {
  const char* name;
  // The numbers below `count` in the order in which their keys are put.
  std::vector<uint32_t> (*numbers)(uint32_t count, std::mt19937_64& rng);
};

void PrintTo(const Shape& shape, std::ostream* os) { *os << shape.name; }
void PrintTo(const Order& order, std::ostream* os) { *os << order.name; }

std::vector<uint32_t> Ascending(uint32_t count, std::mt19937_64&) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}
std::vector<uint32_t> Descending(uint32_t count, std::mt19937_64& rng) {
  std::vector<uint32_t> numbers = Ascending(count, rng);
  std::ranges::reverse(numbers);
  return numbers;
}
std::vector<uint32_t> AtRandom(uint32_t count, std::mt19937_64& rng) {
  std::vector<uint32_t> numbers = Ascending(count, rng);
  std::ranges::shuffle(numbers, rng);
  return numbers;
}
// From both ends to the middle: every item but the first two comes between two others.
std::vector<uint32_t> Inwards(uint32_t count, std::mt19937_64&) {
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < count; ++i) numbers.push_back(i % 2 == 0 ? i / 2 : count - 1 - i / 2);
  return numbers;
}
// Every seventh number from 0 on, then from 1 on and so on: every leaf in turn.
std::vector<uint32_t> InStrides(uint32_t count, std::mt19937_64&) {
  std::vector<uint32_t> numbers;
  for (uint32_t first = 0; first < 7; ++first) {
    for (uint32_t i = first; i < count; i += 7) numbers.push_back(i);
  }
  return numbers;
}

constexpr Order kOrders[] = {{"Ascending", Ascending},
                             {"Descending", Descending},
                             {"AtRandom", AtRandom},
                             {"Inwards", Inwards},
                             {"InStrides", InStrides}};

constexpr BtreeOptions kNodes[] = {{.node_bytes = 2048, .log_bytes = 0},
                                   {.node_bytes = 2048, .log_bytes = 512},
                                   {.node_bytes = 8192, .log_bytes = 512}};

std::mt19937_64 PrintedRandom() {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  return std::mt19937_64(seed);
}

using SmallTree = std::tuple<NodeLayout, BtreeOptions, Shape, Order>;

class TreeStructure : public testing::TestWithParam<SmallTree> {
 protected:
  // Enough keys for some leaves of any shape, or three levels of short keys in small nodes.
  static constexpr uint32_t kKeys = 90;

  void ExpectSound() {
    ASSERT_STREQ(tree_.engine().Verify(), nullptr);
    ASSERT_EQ(tree_.engine().Statistics().items, state_.size());
  }
  void Put(uint32_t number) {
    const std::string key = shape_.key(geometry_, number);
    const std::string value(shape_.value_bytes(geometry_, number),
                            static_cast<char>('a' + ++puts_ % 26));
    ASSERT_EQ(tree_.Put(key, value).verdict, Verdict::kDone);
    state_[key] = value;
    ExpectSound();
  }
  void Delete(uint32_t number) {
    const std::string key = shape_.key(geometry_, number);
    ASSERT_EQ(tree_.Delete(key).verdict, Verdict::kDone);
    state_.erase(key);
    ASSERT_EQ(tree_.Get(key), std::nullopt);
    ExpectSound();
  }

  const LayoutOfTest layout_{std::get<0>(GetParam())};
  const BtreeOptions options_ = std::get<1>(GetParam());
  const Geometry geometry_ = {.node_bytes = options_.node_bytes,
                              .log_bytes_max = options_.log_bytes};
  const Shape shape_ = std::get<2>(GetParam());
  const Order order_ = std::get<3>(GetParam());
  TestTree tree_{options_};
  State state_;
  uint32_t puts_ = 0;
};

// Goal: a tree of any keys in any order agrees with std::map, and has every invariant after every
// step.
// Method: all keys are put in one order, replaced in another, and deleted in the first one.
TEST_P(TreeStructure, AgreesWithMapAtEveryStep) {
  std::mt19937_64 rng = PrintedRandom();
  for (const uint32_t number : order_.numbers(kKeys, rng)) Put(number);
  tree_.ExpectHolds(state_);
  for (const uint32_t number : AtRandom(kKeys / 2, rng)) Put(number);
  tree_.ExpectHolds(state_);
  const uint64_t leaves = tree_.Statistics().leaves;
  for (const uint32_t number : order_.numbers(kKeys, rng)) {
    Delete(number);
    if (state_.size() == kKeys / 2) tree_.ExpectHolds(state_);
    if (HasFatalFailure()) return;
  }
  tree_.ExpectHolds({});
  tree_.ExpectNothingLeaked();
  EXPECT_EQ(tree_.Statistics().leaves, 1u) << "of " << leaves;
}

std::string SmallTreeName(const testing::TestParamInfo<SmallTree>& info) {
  const auto& [layout, options, shape, order] = info.param;
  return std::string(shape.name) + order.name + std::to_string(options.node_bytes) + "_" +
         std::to_string(options.log_bytes) + "_" + NameOf(layout);
}

INSTANTIATE_TEST_SUITE_P(All, TreeStructure,
                         testing::Combine(EachLayout(), testing::ValuesIn(kNodes),
                                          testing::ValuesIn(kShapes), testing::ValuesIn(kOrders)),
                         SmallTreeName);

// A larger tree of small items.
class TreeShape : public OnEachLayoutWith<Order> {
 protected:
  static constexpr BtreeOptions kOptions = {.node_bytes = 2048, .log_bytes = 128};
  static constexpr uint32_t kKeys = 20'000;

  static std::string Key(uint32_t number) { return "key:" + Digits(number); }
  void Put(uint32_t number) { tree_.Put(Key(number), std::string(32, 'v')); }
  // How full the nodes are, as a part of full nodes.
  double Fill() {
    const TreeStatistics s = tree_.Statistics();
    return static_cast<double>(s.used_bytes) /
           static_cast<double>((s.leaves + s.inner_nodes) * kOptions.node_bytes);
  }

  TestTree tree_{kOptions};
};

// Goal: nodes are used as a B+tree's are: random orders fill about two thirds, even splits of
// ascending ones half; buffers are not much longer than their content; joins keep up with deletes,
// so that after deletes the tree is a smaller tree.
// Method: the numbers of nodes after inserts, after 90 % were deleted, and after all were.
TEST_P(TreeShape, FollowsTheNumberOfKeys) {
  std::mt19937_64 rng = PrintedRandom();
  const bool is_random = GetCase().numbers == AtRandom;
  for (const uint32_t number : GetCase().numbers(kKeys, rng)) Put(number);
  const TreeStatistics full = tree_.Statistics();
  EXPECT_GE(Fill(), is_random ? 0.6 : 0.45);
  constexpr uint32_t kRound = 32 + 256;  // the front, and to whole units
  EXPECT_LE(full.node_bytes, full.used_bytes + full.leaves * (kOptions.log_bytes + kRound) +
                                 full.inner_nodes * kRound);
  EXPECT_EQ(full.height, 3u);
  EXPECT_LE(full.inner_nodes, 1 + full.leaves / 20);

  std::vector<uint32_t> doomed = AtRandom(kKeys, rng);
  doomed.resize(kKeys * 9 / 10);
  for (const uint32_t number : doomed) tree_.Delete(Key(number));
  const TreeStatistics left = tree_.Statistics();
  EXPECT_LE(left.leaves, full.leaves / 3);
  EXPECT_GE(Fill(), 0.25);
  EXPECT_LE(left.height, 3u);
  ASSERT_STREQ(tree_.engine().Verify(), nullptr);

  for (uint32_t number = 0; number < kKeys; ++number) tree_.Delete(Key(number));
  EXPECT_EQ(tree_.Statistics().height, 1u);
  tree_.ExpectHolds({});
  tree_.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Orders, TreeShape, EachLayoutWith(kOrders), LayoutAndCaseName<Order>);

class AtomicStructure : public OnEachLayout {};

// Goal: an atomic batch may need any number of new leaves at one place, or empty any number.
// Method: thousands of keys between two neighbours, with a condition that fails, then without one;
// then the same keys deleted by another batch. A snapshot in between sees all or none.
TEST_P(AtomicStructure, ThousandsOfKeysBetweenTwoNeighbours) {
  constexpr uint32_t kKeys = 5000;
  const std::string value_of_all(60, 'v');
  TestTree tree(BtreeOptions{.node_bytes = 2048, .log_bytes = 64});
  State state = {{"a", "1"}, {"b", "2"}};
  for (const auto& [key, value] : state) tree.Put(key, value);
  const auto run = [&](Op op, bool holds) {
    Batch batch(Batch::Kind::kAtomic);
    batch.RequireValue("b", holds ? "2" : "3");
    for (uint32_t i = 0; i < kKeys; ++i) {
      // Some keys are longer than a node takes.
      const std::string key = std::string("a").append(Digits(i)).append(i % 50 == 0 ? 300 : 0, 'x');
      batch.Add({.op = op, .key = batch.scratch().Copy(key), .value = value_of_all});
      if (!holds) continue;
      if (op == Op::kPut) state[key] = value_of_all;
      if (op == Op::kDelete) state.erase(key);
    }
    tree.Execute(batch);
    EXPECT_EQ(batch.applied(), holds);
    tree.ExpectHolds(state);
  };
  const SnapshotRef before = tree.OpenSnapshot();
  run(Op::kPut, false);
  EXPECT_EQ(tree.Statistics().leaves, 1u);
  run(Op::kPut, true);
  EXPECT_EQ(state.size(), kKeys + 2);
  EXPECT_GE(tree.Statistics().height, 3u);
  const SnapshotRef between = tree.OpenSnapshot();
  const uint64_t leaves = tree.Statistics().leaves;
  run(Op::kDelete, true);
  EXPECT_EQ(tree.Contents(before).size(), 2u);
  EXPECT_EQ(tree.Contents(between).size(), kKeys + 2);
  EXPECT_EQ(tree.Contents(between, true).size(), kKeys + 2);
  tree.CloseSnapshot(before);
  tree.CloseSnapshot(between);
  tree.ExpectNothingLeaked();
  EXPECT_LE(tree.Statistics().leaves, leaves / 10);
}

INSTANTIATE_TEST_SUITE_P(Layouts, AtomicStructure, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
