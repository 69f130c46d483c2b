// Tests values in pieces that threads change and read at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "engine/string_functions.h"

namespace skep::btree {
namespace {

class PiecesThreads : public OnEachLayout {};

// Goal: a read sees one version of a value in pieces, whole, while others change parts of it; and
// what was replaced is freed in the end, and not before.
// Method: each change writes one number near the beginning, in the middle and near the end, by one
// operation on fields of bits, or lengthens the value. Readers, some at snapshots, compare the
// three.
TEST_P(PiecesThreads, AReadSeesOneVersion) {
  constexpr uint64_t kPlaces[] = {8, 3 * kPieceBytes + 100, 6 * kPieceBytes - 4};
  constexpr int kChanges = 400;
  TestTree tree;
  tree.Put("key", std::string(6 * kPieceBytes, '\0'));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> torn{0};
  const auto look = [&](SnapshotRef at) {
    Batch batch;
    batch.set_snapshot(at);
    batch.Get("key");
    batch.GetRange("key", {.first = 8, .last = static_cast<int64_t>(kPlaces[2]) + 3});
    tree.Execute(batch);
    const std::string_view value = batch.outcome(0).value;
    const std::string_view part = batch.outcome(1).value;
    for (const uint64_t place : kPlaces) {
      if (value.substr(place, 4) != value.substr(8, 4)) ++torn;
      if (part.substr(place - 8, 4) != part.substr(0, 4)) ++torn;
    }
  };
  std::vector<std::jthread> threads;
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      while (!done) {
        if (reader == 0) {
          look({});
          continue;
        }
        const SnapshotRef at = tree.OpenSnapshot();
        look(at);
        tree.CloseSnapshot(at);
      }
    });
  }
  std::vector<std::jthread> writers;
  for (uint32_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      for (int change = 0; change < kChanges; ++change) {
        Batch batch;
        char fields[std::size(kPlaces) * kBitFieldBytes];
        for (size_t i = 0; i < std::size(kPlaces); ++i) {
          WriteBitFieldOperation({.kind = BitFieldOperation::Kind::kSet,
                                  .bits = 32,
                                  .offset = kPlaces[i] * 8,
                                  .value = 2 * change + writer},
                                 fields + i * kBitFieldBytes);
        }
        batch.Apply("key", functions::kBitField, {fields, sizeof(fields)});
        if (change % 8 == 0) batch.Apply("key", functions::kAppend, "tail");
        tree.Execute(batch);
        if (change % 16 == 0) tree.engine().Maintain(TestTree::kNowMs);
      }
    });
  }
  writers.clear();
  done = true;
  threads.clear();
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(tree.Get("key")->size(), 6 * kPieceBytes + 2 * kChanges / 8 * 4);
  tree.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, PiecesThreads, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
