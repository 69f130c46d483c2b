// Tests values in pieces: what is read of them, what a change of a part costs, and that nothing of
// them is lost or freed too early.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "engine/element_functions.h"
#include "engine/string_functions.h"

namespace skep::btree {
namespace {

// The sizes around each limit.
std::vector<size_t> SizesOfInterest() {
  std::vector<size_t> sizes;
  for (const size_t limit : {kContiguousMax, 5 * kPieceBytes, 6 * kPieceBytes, 64 * kPieceBytes}) {
    for (const size_t size : {limit - 1, limit, limit + 1}) sizes.push_back(size);
  }
  return sizes;
}

using Snapshot = std::pair<SnapshotRef, State>;

class InPieces : public OnEachLayout {
 protected:
  // Executes a function in a batch of its own. Returns its integer.
  int64_t Apply(std::string_view key, const Function* function, std::string_view operand) {
    Batch batch;
    batch.Apply(key, function, operand);
    tree_.Execute(batch);
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone);
    return batch.outcome(0).integer;
  }
  int64_t SetRange(std::string_view key, size_t offset, std::string_view bytes) {
    Scratch scratch;
    return Apply(key, functions::kSetRange, SetRangeOperand(offset, bytes, scratch));
  }

  // Whether the tree is sound and has this state, and each snapshot its own.
  bool Holds(const State& state, const std::vector<Snapshot>& snapshots) {
    return tree_.engine().Verify() == nullptr && tree_.Contents() == state &&
           std::ranges::all_of(snapshots, [&](const auto& snapshot) {
             return tree_.Contents(snapshot.first) == snapshot.second;
           });
  }

  // A random number below the bound.
  size_t Below(size_t bound) { return random_() % bound; }

  std::mt19937_64 random_{20};
  TestTree tree_;
};

// Goal: a value is read as it was stored, by every way of reading, whatever its size.
TEST_P(InPieces, AreReadAsTheyWereStored) {
  State state;
  for (const size_t size : SizesOfInterest()) {
    const std::string key = "key" + std::to_string(size);
    state[key] = BytesOfSize(size, size);
    ASSERT_EQ(tree_.Put(key, state[key]).verdict, Verdict::kDone);
  }
  ASSERT_TRUE(tree_.Contents() == state);
  for (const auto& [key, value] : state) {
    ASSERT_TRUE(tree_.Get(key) == value);
    Batch batch;
    batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
    batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = 1, .key = key});
    batch.Add({.op = Op::kGet, .type = 1, .key = key});
    batch.CompareAndSet(key, value, value);
    batch.Put(key, value, Request::kReturnPrevious);
    tree_.Execute(batch);
    EXPECT_EQ(batch.outcome(0).integer, static_cast<int64_t>(value.size()));
    EXPECT_EQ(batch.outcome(1).value, "");
    EXPECT_EQ(batch.outcome(2).status.code(), Code::kWrongType);
    EXPECT_EQ(batch.outcome(3).verdict, Verdict::kDone);
    EXPECT_TRUE(batch.outcome(4).value == value);
  }
  Batch sample;
  sample.Sample(7);
  tree_.Execute(sample);
  ASSERT_EQ(sample.items(0).size(), 1u);
  for (const Item& item : sample.items(0)) EXPECT_TRUE(item.value == state[std::string(item.key)]);
  tree_.DeleteRange(Range::All());
  tree_.ExpectHolds({});
  tree_.ExpectNothingLeaked();
}

// Remembers the state without the keys that are absent, which have no bytes in the model.
Snapshot SnapshotOf(TestTree& tree, State state) {
  std::erase_if(state, [](const auto& item) { return item.second.empty(); });
  return {tree.OpenSnapshot(), std::move(state)};
}

// Goal: functions, deadlines and moves change a value in pieces as they do any other; each snapshot
// sees the bytes of its version, and nothing is left in the end.
// Method: random changes of a few keys, one by one and in atomic batches, beside a plain model.
TEST_P(InPieces, ChangeAsOneStringDoes) {
  State model;
  std::vector<Snapshot> snapshots;
  const auto key_at = [](size_t i) { return "key" + std::to_string(i); };
  for (int step = 0; step < 300 * RoundsOfTests() && !HasFailure(); ++step) {
    const std::string key = key_at(Below(4));
    std::string& value = model[key];
    Batch batch(Below(3) == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    const std::string bytes =
        BytesOfSize(1 + Below(Below(4) == 0 ? 3 * kPieceBytes : 40), random_());
    const size_t offset = Below(value.size() + (Below(8) == 0 ? 3 * kPieceBytes : 1));
    const auto write = [&](size_t at, std::string_view what) {
      if (value.size() < at + what.size()) value.resize(at + what.size());
      value.replace(at, what.size(), what);
    };
    switch (Below(9)) {
      case 0:
        value =
            BytesOfSize(Below(2) == 0 ? kContiguousMax - 20 + Below(60) : 1 + Below(300000), step);
        batch.Put(key, value);
        break;
      case 1:
        batch.Apply(key, functions::kAppend, bytes);
        value += bytes;
        break;
      case 2:
      case 3:
        batch.Apply(key, functions::kSetRange, SetRangeOperand(offset, bytes, batch.scratch()));
        write(offset, bytes);
        break;
      case 4: {
        const bool bit = Below(2) == 1;
        batch.Apply(key, functions::kSetBit, SetBitOperand(offset * 8 + 3, bit, batch.scratch()));
        write(offset, value.size() > offset ? value.substr(offset, 1) : std::string(1, '\0'));
        value[offset] = static_cast<char>((value[offset] & ~16) | (bit ? 16 : 0));
        break;
      }
      case 5:
        batch.Expire(key, TestTree::kNowMs + 1000 + step);
        break;
      case 6:
        batch.Delete(key);
        model.erase(key);
        break;
      case 7: {
        const std::string to = key_at(Below(4));
        const bool moves = to != key && !value.empty() && batch.kind() == Batch::Kind::kAtomic;
        if (!moves) break;
        batch.Move(key, batch.scratch().Copy(to));
        model[to] = value;
        model.erase(key);
        break;
      }
      default:
        snapshots.push_back(SnapshotOf(tree_, model));
        if (snapshots.size() > 3) {
          tree_.CloseSnapshot(snapshots.front().first);
          snapshots.erase(snapshots.begin());
        }
        break;
    }
    if (model.contains(key) && model[key].empty()) model.erase(key);
    if (!batch.empty()) tree_.Execute(batch);
    if (step % 16 == 0) tree_.MaintainAll();
    ASSERT_TRUE(Holds(model, snapshots)) << step;
  }
  for (const auto& [at, state] : snapshots) tree_.CloseSnapshot(at);
  tree_.ExpectNothingLeaked();
}

// Goal: the requests of an atomic batch see what earlier ones have made of a value in pieces, and
// what a part has done is taken back with it.
TEST_P(InPieces, AreChangedByAtomicBatches) {
  const std::string value = BytesOfSize(300'000, 1);
  tree_.Put("a", value);
  tree_.Put("b", value);
  Batch batch(Batch::Kind::kAtomic);
  batch.Apply("a", functions::kAppend, "first");
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = "a"});
  batch.GetRange("a", {.first = -6, .last = -1});
  batch.Apply("a", functions::kAppend, "second");
  batch.BeginPart();
  batch.Apply("b", functions::kAppend, "taken back");
  batch.Expire("b", TestTree::kNowMs + 5);
  batch.RequireAbsent("a");
  batch.BeginPart();
  batch.Apply("b", functions::kSetRange, SetRangeOperand(10, "stays", batch.scratch()));
  batch.Move("b", "c");
  batch.Get("c");
  batch.BeginPart();
  batch.Move("a", "b");
  batch.Move("b", "a");
  batch.Scan(Range::All());
  tree_.Execute(batch);
  const std::string in_a = value + "firstsecond";
  const std::string in_c = std::string(value).replace(10, 5, "stays");
  EXPECT_EQ(batch.outcome(1).integer, 300'005);
  EXPECT_EQ(batch.outcome(2).value, value.substr(299'999) + "first");
  EXPECT_EQ(batch.outcome(3).integer, static_cast<int64_t>(in_a.size()));
  EXPECT_EQ(batch.outcome(6).verdict, Verdict::kExists);
  EXPECT_TRUE(batch.outcome(9).value == in_c);
  State scanned;
  for (const Item& item : batch.items(12)) scanned.emplace(item.key, item.value);
  const State expected = {{"a", in_a}, {"c", in_c}};
  EXPECT_TRUE(scanned == expected);
  EXPECT_TRUE(Holds(expected, {}));
  tree_.ExpectNothingLeaked();
}

// Random requests of an atomic batch about one key, beside a string.
struct Changes {
  // Appends a request, and does the same to the string.
  void Add(Batch& batch, const std::string& key, std::mt19937_64& random) {
    const auto below = [&](size_t bound) { return random() % bound; };
    const size_t at_end = below(3) == 0 ? value.size() : below(value.size());
    const size_t offset = below(3) == 0 ? at_end / kPieceBytes * kPieceBytes : at_end;
    const size_t size = below(2) == 0 ? 1 + below(40) : 1 + below(4 * kPieceBytes);
    const std::string_view bytes = batch.scratch().Copy(BytesOfSize(size, random()));
    using Returns = UpdateOptions::Returns;
    const auto update = [&](const Function* function, Returns returns, std::string_view operand) {
      return batch.Apply(key, function,
                         UpdateOperand({.returns = returns}, operand, batch.scratch()));
    };
    switch (below(9)) {
      case 0:
        batch.Apply(key, functions::kAppend, bytes);
        value += bytes;
        break;
      case 1:
      case 2: {
        const size_t at = offset + (below(6) == 0 ? below(3 * kPieceBytes) : 0);
        batch.Apply(key, functions::kSetRange, SetRangeOperand(at, bytes, batch.scratch()));
        value.resize(std::max(value.size(), at + size));
        value.replace(at, size, bytes);
        break;
      }
      case 3: {
        const uint32_t slot = update(add, Returns::kNew, "\x03");
        for (char& byte : value) byte = static_cast<char>(byte + 3);
        returned.emplace_back(slot, value);
        break;
      }
      case 4:
        returned.emplace_back(update(max, Returns::kOld, "\xf0"), value);
        for (char& byte : value) byte = static_cast<char>(std::max<uint8_t>(byte, 0xf0));
        break;
      case 5: {
        uint64_t all = 0;
        for (const char byte : value) all += static_cast<uint8_t>(byte);
        returned.emplace_back(batch.Apply(key, sum, {}),
                              std::string(reinterpret_cast<char*>(&all), sizeof(all)));
        break;
      }
      case 6:
        returned.emplace_back(batch.Get(key), value);
        break;
      case 7: {
        const size_t count = 1 + below(40'000);
        const auto first = static_cast<int64_t>(offset);
        const auto last = static_cast<int64_t>(offset + count - 1);
        returned.emplace_back(batch.GetRange(key, {.first = first, .last = last}),
                              value.substr(std::min(offset, value.size()), count));
        break;
      }
      default:
        // Reads the value whole, and stores the same.
        batch.CompareAndSet(key, batch.scratch().Copy(value), batch.scratch().Copy(value));
        break;
    }
  }

  std::string value;
  std::vector<std::pair<uint32_t, std::string>> returned;  // what slots return
  const Function* add = FindFunction(FunctionKind::kUpdate, "add", Element::kU8);
  const Function* max = FindFunction(FunctionKind::kUpdate, "max", Element::kU8);
  const Function* sum = FindFunction(FunctionKind::kReduce, "sum", Element::kU8);
};

// Goal: however many changes an atomic batch makes of one value in pieces, each sees those before
// it, those of a part that is not applied are taken back, and the tree is left with what a plain
// string has.
// Method: random batches of random changes beside a plain model; parts fail at random. Lengths and
// offsets meet the ends of pieces; edits are of a byte, of whole pieces, and of more.
TEST_P(InPieces, ChangeManyTimesInOneBatch) {
  State model;
  std::vector<Snapshot> snapshots;
  for (int round = 0; round < 40 * RoundsOfTests() && !HasFailure(); ++round) {
    const std::string key = "key" + std::to_string(Below(2));
    if (model[key].size() < 2 * kPieceBytes || Below(8) == 0) {
      model[key] = BytesOfSize(kContiguousMax - 20 + Below(20 * kPieceBytes), random_());
      ASSERT_EQ(tree_.Put(key, model[key]).verdict, Verdict::kDone);
    }
    Batch batch(Batch::Kind::kAtomic);
    Changes changes = {.value = model[key]};
    for (size_t part = 0, parts = 1 + Below(4); part < parts; ++part) {
      if (part > 0) batch.BeginPart();
      const Changes before = changes;
      for (size_t i = 0, count = 1 + Below(6); i < count; ++i) changes.Add(batch, key, random_);
      if (part > 0 && Below(3) == 0) {
        batch.RequireAbsent(key);
        changes = before;
      }
    }
    tree_.Execute(batch);
    ASSERT_TRUE(batch.applied());
    for (const auto& [slot, bytes] : changes.returned) {
      ASSERT_EQ(batch.outcome(slot).verdict, Verdict::kDone);
      ASSERT_TRUE(batch.outcome(slot).value == bytes) << round << " slot " << slot;
    }
    model[key] = changes.value;
    if (round % 8 == 0) snapshots.push_back(SnapshotOf(tree_, model));
    ASSERT_TRUE(Holds(model, snapshots)) << round;
  }
  for (const auto& [at, state] : snapshots) tree_.CloseSnapshot(at);
  tree_.ExpectNothingLeaked();
}

// Goal: the changes of one value in a batch take the pieces that they touch and a table in each
// part (edited_pieces.h), and an update of a vector stores the pieces whose elements have changed.
TEST_P(InPieces, ABatchAndAnUpdateCopyWhatTheyTouch) {
  constexpr size_t kSize = size_t{32} << 20;
  std::string value(kSize, '\5');
  value[kSize / 2] = '\1';
  value[kSize - 1] = '\1';
  tree_.Put("key", value);
  Batch batch(Batch::Kind::kAtomic);
  constexpr size_t kChanges = 50;
  for (size_t i = 0; i < kChanges; ++i) {
    if (i % 10 == 9) batch.BeginPart();
    batch.Apply("key", functions::kSetRange, SetRangeOperand(i * 7, "x", batch.scratch()));
  }
  tree_.Execute(batch);
  // The five changes of the parts after the first one copy the piece again.
  EXPECT_LE(batch.answer_bytes(), 6 * kPieceBytes);
  const size_t each = 2 * kPieceBytes + kSize / kPieceBytes * 8 + 100;
  EXPECT_LE(batch.work_bytes(), kChanges * each + 6 * kPieceBytes);

  const Function* const max = FindFunction(FunctionKind::kUpdate, "max", Element::kU8);
  tree_.MaintainAll();
  const SnapshotRef snapshot = tree_.OpenSnapshot();
  const uint64_t before = tree_.allocated_bytes();
  Scratch scratch;
  Apply("key", max, UpdateOperand({}, "\2", scratch));
  EXPECT_LE(tree_.allocated_bytes() - before, 2 * (kPieceBytes + 16) + (32 << 10) + 2 * 4096);
  tree_.CloseSnapshot(snapshot);
  for (size_t i = 0; i < kChanges; ++i) value[i * 7] = 'x';
  value[kSize / 2] = value[kSize - 1] = '\2';
  EXPECT_TRUE(tree_.Get("key") == value);
}

// Goal: a change of a few bytes stores the pieces that it touches and a table, however large the
// value is (pieces.h), and a new deadline stores no bytes at all.
// Method: a snapshot keeps what is replaced, so what the arena holds more is what was stored.
TEST_P(InPieces, AChangeStoresWhatItTouches) {
  constexpr size_t kSize = size_t{64} << 20;
  constexpr size_t kTableBytes = 64 << 10;  // as the arena has it
  constexpr size_t kNodesMax = 2 * 4096;
  ASSERT_EQ(tree_.Put("key", std::string(kSize - 100, 'v')).verdict, Verdict::kDone);
  const auto stored_by = [&](const auto& change) {
    tree_.MaintainAll();
    const SnapshotRef snapshot = tree_.OpenSnapshot();
    const uint64_t before = tree_.allocated_bytes();
    change();
    const uint64_t stored = tree_.allocated_bytes() - before;
    tree_.CloseSnapshot(snapshot);
    return stored;
  };
  const size_t one = kTableBytes + kPieceBytes + kOutsideHeaderBytes + kNodesMax;
  EXPECT_LE(stored_by([&] { Apply("key", functions::kAppend, "tail"); }), one);
  EXPECT_LE(stored_by([&] { SetRange("key", kSize / 2, "x"); }), one);
  EXPECT_LE(stored_by([&] {
              Batch batch(Batch::Kind::kAtomic);
              batch.Apply("key", functions::kAppend, "tail");
              tree_.Execute(batch);
            }),
            one);
  EXPECT_LE(stored_by([&] { SetRange("key", 1000 * kPieceBytes - 1, "xy"); }), one + kPieceBytes);
  EXPECT_LE(stored_by([&] {
              Scratch scratch;
              Apply("key", functions::kSetBit, SetBitOperand(kSize, true, scratch));
            }),
            one);
  EXPECT_LE(
      stored_by([&] { tree_.Do({.op = Op::kExpire, .key = "key", .deadline_ms = 9'000'000}); }),
      kNodesMax);
}

// Goal: a value in pieces does not grow beyond the limit of the engine, and is as it was.
TEST_P(InPieces, StayWithinTheLimitOfTheEngine) {
  const std::string value(size_t{64} << 20, 'v');
  tree_.Put("key", value);
  Batch batch;
  batch.Apply("key", functions::kAppend, "x");
  batch.Apply("key", functions::kSetRange, SetRangeOperand(value.size(), "x", batch.scratch()));
  batch.Apply("key", functions::kSetBit, SetBitOperand(value.size() * 8, true, batch.scratch()));
  tree_.Execute(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.outcome(slot).status.code(), Code::kTooLarge) << slot;
  }
  EXPECT_TRUE(tree_.Get("key") == value);
}

// Goal: whichever allocation of a change fails, the change is done as a whole or refused, and then
// the value is as it was.
TEST_P(InPieces, AreAsTheyWereWhenMemoryFails) {
  const std::string bytes = BytesOfSize(2 * kPieceBytes, 2);
  for (const Batch::Kind kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
    bool refused = true;
    for (uint64_t n = 1; refused && !HasFailure(); ++n) {
      std::string value = BytesOfSize(kContiguousMax + 1, n);
      tree_.Put("key", value);
      tree_.MaintainAll();
      const SnapshotRef snapshot = tree_.OpenSnapshot();  // so that there is nothing to be freed
      Batch batch(kind);
      batch.Apply("key", functions::kAppend, bytes);
      tree_.core().arena.FailAt(n);
      tree_.Execute(batch);
      tree_.core().arena.FailAt(0);
      refused = batch.outcome(0).verdict == Verdict::kRefused;
      if (!refused) value += bytes;
      EXPECT_TRUE(tree_.Get("key") == value) << n;
      tree_.CloseSnapshot(snapshot);
      EXPECT_STREQ(tree_.engine().Verify(), nullptr) << n;
      ASSERT_LT(n, 100u);
    }
  }
  tree_.ExpectNothingLeaked();
}

INSTANTIATE_TEST_SUITE_P(Layouts, InPieces, EachLayout(), LayoutName);

}  // namespace
}  // namespace skep::btree
