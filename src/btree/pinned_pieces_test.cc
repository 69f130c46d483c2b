// Tests pinned values: what they read, what they cost, and how long they keep which bytes.
#include "btree/pinned_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "engine/string_functions.h"

namespace skep::btree {
namespace {

using Pin = std::shared_ptr<const PinnedValue>;

// All bytes of a pinned value, in the pieces in which it gives them.
std::string BytesOf(const PinnedValue& value) {
  std::string bytes;
  while (bytes.size() < value.size()) bytes += value.From(bytes.size());
  return bytes;
}

Request GetPinned(std::string_view key) {
  return {.op = Op::kGet, .flags = Request::kMayPin, .key = key};
}

class Pinned : public OnEachLayout {
 protected:
  // The pin of a request that must have one.
  Pin PinOf(const Request& request, Batch::Kind kind = Batch::Kind::kUnordered) {
    Batch batch(kind);
    batch.Add(request);
    tree_.Execute(batch);
    const Outcome& outcome = batch.outcome(0);
    EXPECT_TRUE(outcome.value.empty());
    EXPECT_NE(outcome.pinned, 0u);
    return outcome.pinned == 0 ? nullptr : batch.pinned(0);
  }

  TestTree tree_;
};

// Goal: a value and each part of it are read as they were stored, whatever their size; what is not
// longer than a block is not pinned.
TEST_P(Pinned, AreReadAsTheyWereStored) {
  for (const size_t size : {kContiguousMax - 1, kContiguousMax, kContiguousMax + 1,
                            5 * kPieceBytes - 1, 5 * kPieceBytes, 5 * kPieceBytes + 1}) {
    const std::string value = BytesOfSize(size, size);
    tree_.Put("key", value);
    const auto last = static_cast<int64_t>(size) - 1;
    const auto piece = static_cast<int64_t>(kPieceBytes);
    for (const ByteRange part : {ByteRange{0, last},
                                 {1, last},
                                 {0, last - 1},
                                 {piece - 1, last},
                                 {piece, last},
                                 {piece + 1, -2},
                                 {piece - 1, piece},
                                 {9, 5}}) {
      Batch batch;
      batch.Add(GetPinned("key"));
      batch.Add({.op = Op::kGet,
                 .flags = Request::kMayPin | Request::kByteRange,
                 .key = "key",
                 .bytes = part});
      tree_.Execute(batch);
      const auto [begin, end] = part.Of(size);
      EXPECT_EQ(batch.outcome(0).pinned != 0, size > kContiguousMax);
      EXPECT_EQ(batch.outcome(1).pinned != 0,
                end - begin > kContiguousMax && size > kContiguousMax);
      for (const uint32_t slot : {0u, 1u}) {
        const Outcome& outcome = batch.outcome(slot);
        const std::string_view wanted =
            std::string_view(value).substr(slot == 0 ? 0 : begin, slot == 0 ? size : end - begin);
        const std::string seen =
            outcome.pinned != 0 ? BytesOf(*batch.pinned(slot)) : std::string(outcome.value);
        ASSERT_TRUE(seen == wanted) << size << " " << begin << " " << end;
      }
    }
  }
  tree_.Delete("key");
  tree_.ExpectNothingLeaked();
}

// Goal: the value before a write may be pinned, by every write that returns it, in batches of both
// kinds, and only if the write returns it.
TEST_P(Pinned, ValuesBeforeAWrite) {
  constexpr uint8_t kFlags = Request::kReturnPrevious | Request::kMayPin;
  const std::string value = BytesOfSize(7 * kPieceBytes + 5, 1);
  for (const Batch::Kind kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
    for (const Op op : {Op::kPut, Op::kInsert, Op::kUpdate, Op::kDelete, Op::kExpire}) {
      tree_.Put("key", value);
      const Pin pin = PinOf({.op = op,
                             .flags = kFlags,
                             .key = "key",
                             .value = "new",
                             .deadline_ms = op == Op::kExpire ? TestTree::kNowMs + 1000 : 0},
                            kind);
      ASSERT_TRUE(pin != nullptr && BytesOf(*pin) == value) << static_cast<int>(op);
    }
    // A condition about the bytes sees them all, and they are told as ever.
    tree_.Put("key", value);
    Batch batch(kind);
    batch.CompareAndSet("key", value, "other");
    batch.Add({.op = Op::kDelete, .flags = kFlags, .type = 1, .key = "absent"});
    tree_.Execute(batch);
    EXPECT_EQ(batch.outcome(0).pinned, 0u);
    EXPECT_EQ(batch.outcome(1).pinned, 0u);
    EXPECT_EQ(tree_.Get("key"), kind == Batch::Kind::kUnordered ? "other" : "other");
    tree_.Put("key", value);
    Batch of_type(kind);
    of_type.Add({.op = Op::kDelete, .flags = kFlags, .type = 1, .key = "key"});
    tree_.Execute(of_type);
    EXPECT_EQ(of_type.outcome(0).status.code(), Code::kWrongType);
    EXPECT_EQ(of_type.outcome(0).pinned, 0u);
  }
  tree_.Delete("key");
  tree_.ExpectNothingLeaked();
}

// Goal: who asks for the length alone gets no bytes, neither copied nor pinned.
TEST_P(Pinned, OfALengthAlone) {
  constexpr size_t kSize = 9 * kPieceBytes;
  tree_.Put("key", BytesOfSize(kSize, 3));
  for (const auto kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
    for (const uint32_t flags : {0u, uint32_t{Request::kMayPin}}) {
      Batch batch(kind);
      batch.Add({.op = Op::kGet,
                 .flags = static_cast<decltype(Request::flags)>(Request::kNoValue | flags),
                 .key = "key"});
      tree_.Execute(batch);
      EXPECT_EQ(batch.outcome(0).integer, int64_t{kSize});
      EXPECT_EQ(batch.outcome(0).pinned, 0u);
      EXPECT_TRUE(batch.outcome(0).value.empty());
      EXPECT_LT(batch.answer_bytes(), kSize);
    }
  }
}

// Goal: an atomic batch sees what it has changed itself, pinned or not.
TEST_P(Pinned, InABatchThatChangesTheValue) {
  const std::string value = BytesOfSize(9 * kPieceBytes, 2);
  tree_.Put("key", value);
  Batch batch(Batch::Kind::kAtomic);
  batch.Add(GetPinned("key"));
  batch.Apply("key", functions::kAppend, "tail");
  batch.Add(GetPinned("key"));
  batch.Add(
      {.op = Op::kDelete, .flags = Request::kReturnPrevious | Request::kMayPin, .key = "key"});
  batch.Add(GetPinned("key"));
  tree_.Execute(batch);
  ASSERT_NE(batch.outcome(0).pinned, 0u);
  EXPECT_TRUE(BytesOf(*batch.pinned(0)) == value);
  EXPECT_TRUE(batch.outcome(2).value == value + "tail");
  EXPECT_TRUE(batch.outcome(3).value == value + "tail");
  EXPECT_EQ(batch.outcome(4).verdict, Verdict::kAbsent);
}

// Goal: a pin keeps the bytes of its value whatever happens to the key, and nothing else: other
// versions are freed beside it, and its own bytes once it has gone.
// Method: random pins of random values, which are changed in part, replaced, deleted and flushed;
// each pin is compared with the value that it was made of. In the end the arena has what it had.
TEST_P(Pinned, KeepTheirBytesAndNothingElse) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto below = [&](size_t bound) { return random() % bound; };
  tree_.MaintainAll();
  const uint64_t empty_bytes = tree_.allocated_bytes();
  State model;
  std::vector<std::pair<Pin, std::string>> pins;
  for (int step = 0; step < 200 * RoundsOfTests(); ++step) {
    const std::string key = "key" + std::to_string(below(3));
    std::string& value = model[key];
    const size_t what = below(8);
    if (what < 2 || value.empty()) {
      value = BytesOfSize(kContiguousMax + 1 + below(4 * kPieceBytes), random());
      tree_.Put(key, value);
    } else if (what < 4) {
      const size_t at = below(value.size() - 3);
      Batch batch(below(2) == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      batch.Apply(key, functions::kSetRange, SetRangeOperand(at, "new", batch.scratch()));
      tree_.Execute(batch);
      value.replace(at, 3, "new");
    } else if (what < 7) {
      const auto kind = below(2) == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered;
      pins.emplace_back(PinOf(GetPinned(key), kind), value);
    } else if (below(4) == 0) {
      tree_.DeleteRange(Range::All());
      model.clear();
    } else {
      tree_.Delete(key);
      value.clear();
    }
    if (below(4) == 0) tree_.MaintainAll();
    if (!pins.empty() && below(4) == 0) {
      const size_t i = below(pins.size());
      ASSERT_TRUE(BytesOf(*pins[i].first) == pins[i].second) << step;
      pins.erase(pins.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  tree_.DeleteRange(Range::All());
  tree_.MaintainAll();
  size_t pinned = 0;
  for (const auto& [pin, value] : pins) {
    ASSERT_TRUE(BytesOf(*pin) == value);
    pinned += value.size() + 2 * kPieceBytes;
  }
  constexpr size_t kNodesMax = 64 * 1024;
  EXPECT_LE(tree_.allocated_bytes(), empty_bytes + pinned * 9 / 8 + kNodesMax);
  EXPECT_EQ(tree_.engine().Verify(), nullptr);
  pins.clear();
  EXPECT_EQ(tree_.engine().Verify(), nullptr);
  tree_.MaintainAll();
  EXPECT_LE(tree_.allocated_bytes(), empty_bytes + kNodesMax);
  tree_.ExpectNothingLeaked();
}

// Goal: a pin costs a line for each piece instead of a copy, so that a batch of many reads of the
// largest value is done within a small limit of work; and what a batch returns has a limit.
TEST_P(Pinned, CostALineForEachPiece) {
  constexpr size_t kSize = size_t{64} << 20;
  tree_.Put("key", std::string(kSize, 'v'));
  const auto read = [&](size_t returned_bytes_max) {
    Batch batch;
    for (int i = 0; i < 12; ++i) batch.Add(GetPinned("key"));
    batch.set_returned_bytes_max(returned_bytes_max);
    tree_.Execute(batch);
    EXPECT_EQ(batch.answer_bytes(), 0u);
    EXPECT_LE(batch.work_bytes(), 12 * PiecesOf(kSize) * kPinWorkBytes);
    size_t done = 0;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Outcome& outcome = batch.outcome(slot);
      done += outcome.pinned != 0 ? 1 : 0;
      if (outcome.pinned == 0) {
        EXPECT_EQ(outcome.status.code(), Code::kTooLarge);
      }
    }
    EXPECT_EQ(batch.pinned_bytes(), done * kSize);
    return done;
  };
  EXPECT_EQ(read(kAnswerBytesMax), 12u);
  EXPECT_EQ(read(3 * kSize), 4u);  // the limit is passed by one value
}

INSTANTIATE_TEST_SUITE_P(Layouts, Pinned, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
