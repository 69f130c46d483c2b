// Tests values in pieces that threads change and read at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "engine/element_functions.h"
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

// Goal: pins that threads make and let go while others update, replace, delete and flush the value
// read one version each, and each piece is freed once, when neither tree nor pin needs it.
// Method: a value has one number at all its places. Each reader keeps some pins and looks at the
// oldest one last, when the value has changed many times; freed pieces hold other numbers by then.
TEST_P(PiecesThreads, APinKeepsOneVersion) {
  constexpr size_t kSize = 5 * kPieceBytes + 8;
  constexpr int kRounds = 300;
  constexpr size_t kPinsKept = 4;
  TestTree tree;
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kU8);
  const auto value_of = [](char number) { return std::string(kSize, number); };
  tree.Put("key", value_of('a'));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> torn{0};
  std::atomic<uint64_t> pinned{0};
  const auto check = [&](const PinnedValue& pin) {
    const char first = pin.From(0).front();
    for (size_t at = 0; at < pin.size();) {
      const std::string_view bytes = pin.From(at);
      if (bytes.front() != first || bytes.back() != first) ++torn;
      at += bytes.size();
    }
  };
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      std::deque<std::shared_ptr<const PinnedValue>> pins;
      Batch batch;
      while (!done) {
        batch.Clear();
        batch.Add({.op = Op::kGet, .flags = Request::kMayPin, .key = "key"});
        tree.Execute(batch);
        if (batch.outcome(0).pinned == 0) continue;
        ++pinned;
        pins.push_back(batch.pinned(0));
        if (pins.size() <= kPinsKept) continue;
        check(*pins.front());
        pins.pop_front();
      }
      for (const auto& pin : pins) check(*pin);
    });
  }
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < 2; ++writer) {
      writers.emplace_back([&, writer] {
        for (int round = 0; round < kRounds; ++round) {
          Batch batch(round % 2 == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
          const std::string value = value_of(static_cast<char>('a' + (2 * round + writer) % 26));
          if (round % 7 == 0) batch.Delete("key");
          if (round % 50 == 0) batch.DeleteAll();
          batch.Put("key", value, Request::kReturnPrevious | Request::kMayPin);
          tree.Execute(batch);
          const Outcome& put = batch.outcome(static_cast<uint32_t>(batch.size()) - 1);
          if (put.pinned != 0) check(*batch.pinned(static_cast<uint32_t>(batch.size()) - 1));
          // Each element becomes another one, at once or in two steps of one batch.
          Batch update(batch.kind());
          Scratch scratch;
          const std::string_view by = UpdateOperand({}, "\1", scratch);
          for (int step = 0; step <= round % 2; ++step) update.Apply("key", add, by);
          tree.Execute(update);
          tree.engine().Maintain(TestTree::kNowMs);
        }
      });
    }
  }
  done = true;
  readers.clear();
  EXPECT_EQ(torn, 0u);
  EXPECT_GT(pinned, 0u);
  tree.Delete("key");
  tree.ExpectNothingLeaked();
  EXPECT_LT(tree.allocated_bytes(), 2 * kSize / 4);
}

INSTANTIATE_TEST_SUITE_P(Layouts, PiecesThreads, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
