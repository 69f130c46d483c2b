// Tests that every engine must pass: keys that expire, as readers and writers see them.
//
// Every batch is also checked against the oracle (Subject::Run); a test spells out only what it is
// about.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/testing/conformance.h"

namespace skep {
namespace {

// Lengths of keys and values that an engine may keep in different places.
struct Shape {
  const char* name;
  bool long_keys;
  bool long_values;
};
constexpr Shape kShapes[] = {
    {"short", false, false}, {"long keys", true, false}, {"long values", false, true}};

class ExpiryConformance : public EngineConformance {
 protected:
  void SetUp() override { SKEP_NEEDS(expiry); }

  using Keys = std::vector<std::string>;
  using Pairs = std::map<std::string, std::pair<std::string, uint64_t>>;  // value, deadline

  // Times of a test are in milliseconds since its last NewRound().
  void At(uint64_t ms) { subject_.set_now_ms(Time(ms)); }
  uint64_t Time(uint64_t ms) const { return start_ms_ + ms; }
  void NewRound(const Shape& shape) {
    shape_ = shape;
    subject_.RunOne({.op = Op::kDeleteAll});
    start_ms_ = subject_.now_ms();
  }

  std::string Key(std::string_view text) const {
    return shape_.long_keys ? Long(text) : std::string(text);
  }
  std::string Value(std::string_view text) const {
    return shape_.long_values ? Long(text) : std::string(text);
  }

  Outcome Expire(std::string_view key, uint64_t deadline_ms, uint8_t when = 0) {
    return subject_.RunOne(
        {.op = Op::kExpire, .when = when, .key = key, .other = {}, .deadline_ms = deadline_ms});
  }

  static Keys KeysOf(const Batch& batch, uint32_t slot) {
    Keys keys;
    for (const Item& item : batch.items(slot)) keys.emplace_back(item.key);
    return keys;
  }

  // Expects exactly these keys, ascending, at a snapshot or now.
  void ExpectKeys(const Keys& keys, SnapshotRef at = {});
  // Expects exactly these keys now, asked for by samples and by conditions.
  void ExpectDrawnAndPresent(const Keys& keys);

  Shape shape_ = kShapes[0];
  uint64_t start_ms_ = Subject::kStartMs;
};

void ExpiryConformance::ExpectKeys(const Keys& keys, SnapshotRef at) {
  Batch gets;
  gets.set_snapshot(at);
  for (const std::string& key : keys) gets.Get(key);
  subject_.Run(gets);
  for (uint32_t i = 0; i < keys.size(); ++i) EXPECT_EQ(gets.outcome(i).verdict, Verdict::kDone);
  if (!traits_.ordered) return;
  Batch ranges;
  ranges.set_snapshot(at);
  const uint32_t forward = ranges.Scan(Range::All());
  const uint32_t backward = ranges.Scan(Range::All(), {.reverse = true});
  const uint32_t floor = ranges.Scan(Range::From("\xff"), {.limit = 1, .seek_floor = true});
  const uint32_t count = ranges.Count(Range::All());
  subject_.Run(ranges);
  EXPECT_EQ(KeysOf(ranges, forward), keys);
  EXPECT_EQ(KeysOf(ranges, backward), Keys(keys.rbegin(), keys.rend()));
  EXPECT_EQ(KeysOf(ranges, floor), keys.empty() ? keys : Keys{keys.back()});
  EXPECT_EQ(ranges.outcome(count).integer, static_cast<int64_t>(keys.size()));
}

void ExpiryConformance::ExpectDrawnAndPresent(const Keys& keys) {
  Batch samples;
  for (uint64_t i = 0; i < 64; ++i) samples.Sample(i << 58);
  subject_.Run(samples);
  for (uint32_t slot = 0; slot < samples.size(); ++slot) {
    const Keys drawn = KeysOf(samples, slot);
    EXPECT_EQ(drawn.empty(), keys.empty() || !traits_.samples);
    EXPECT_TRUE(drawn.empty() || std::ranges::find(keys, drawn[0]) != keys.end());
  }
  if (!traits_.atomic) return;
  Batch conditions(Batch::Kind::kAtomic);
  for (const std::string& key : keys) conditions.RequirePresent(key);
  if (traits_.ordered && keys.empty()) conditions.RequireEmpty(Range::All());
  subject_.Run(conditions);
  EXPECT_TRUE(conditions.applied());
}

// Goal: a key is gone at its millisecond and not before, for every kind of reader, wherever it is
// kept, whether it was reclaimed meanwhile or not.
TEST_P(ExpiryConformance, GoneAtItsMillisecond) {
  for (const Shape& shape : kShapes) {
    for (const bool maintains : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.name << ", maintained: " << maintains);
      NewRound(shape);
      const std::string a = Key("a");
      const std::string b = Key("b");
      const std::string c = Key("c");
      Put(c, Value("3"), Time(20));
      Put(a, Value("1"), Time(10));
      Put(b, Value("2"));
      const std::pair<uint64_t, Keys> expected[] = {{0, {a, b, c}}, {9, {a, b, c}}, {10, {b, c}},
                                                    {11, {b, c}},   {19, {b, c}},   {20, {b}}};
      for (const auto& [ms, keys] : expected) {
        SCOPED_TRACE(testing::Message() << "after " << ms << " ms");
        At(ms);
        if (maintains) subject_.MaintainAll();
        if (maintains) subject_.ExpectReclaimed();
        ExpectKeys(keys);
        ExpectDrawnAndPresent(keys);
        if (HasFailure()) return;
      }
    }
  }
}

// Goal: a pair iterator also returns expired keys, with their deadlines, and does not change them:
// a log may have changes that were made before the deadline. Keys that were reclaimed before it was
// opened are not returned.
TEST_P(ExpiryConformance, AWalkKnowsNoTime) {
  const auto walk_all = [&]() -> std::optional<Pairs> {
    const auto walk = engine_.OpenPairIterator(subject_.now_ms());
    if (!walk) {
      EXPECT_EQ(walk.error().code(), Code::kNotSupported);
      return std::nullopt;
    }
    EXPECT_EQ((*walk)->now_ms(), subject_.now_ms());
    Pairs pairs;
    for (auto next = (*walk)->Next(); !next->empty(); next = (*walk)->Next()) {
      for (const Pair& pair : *next) {
        pairs[std::string(pair.key)] = {std::string(pair.value), pair.deadline_ms};
      }
    }
    return pairs;
  };
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    NewRound(shape);
    Put(Key("a"), Value("1"), Time(10));
    Put(Key("b"), Value("2"));
    Put(Key("c"), Value("3"), Time(30));
    At(20);
    ExpectKeys({Key("b"), Key("c")});
    const auto before = walk_all();
    if (!before) return;
    const Pairs all = {{Key("a"), {Value("1"), Time(10)}},
                       {Key("b"), {Value("2"), 0}},
                       {Key("c"), {Value("3"), Time(30)}}};
    EXPECT_EQ(*before, all);
    ExpectKeys({Key("b"), Key("c")});
    subject_.MaintainAll();
    EXPECT_FALSE(walk_all()->contains(Key("a")));
  }
}

// Goal: an expired key is absent for every write, and nothing of it is left.
TEST_P(ExpiryConformance, WritersFindItAbsent) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    NewRound(shape);
    const std::string key = Key("key");
    const auto expired = [&] {
      Put(key, Value("1"), subject_.now_ms() + 1);
      subject_.Pass(1);
    };
    const auto verdict = [&](const Request& request) {
      expired();
      const Outcome& out = subject_.RunOne(request);
      EXPECT_FALSE(out.present);
      EXPECT_EQ(out.deadline_ms, 0u);
      EXPECT_EQ(out.value, "");
      return out.verdict;
    };
    const auto flag = Request::kReturnPrevious;
    EXPECT_EQ(verdict({.op = Op::kUpdate, .flags = flag, .key = key, .value = "2"}),
              Verdict::kAbsent);
    EXPECT_EQ(verdict({.op = Op::kDelete, .flags = flag, .key = key}), Verdict::kAbsent);
    EXPECT_EQ(verdict({.op = Op::kExpire, .key = key, .other = {}, .deadline_ms = Time(1000)}),
              Verdict::kAbsent);
    EXPECT_EQ(verdict({.op = Op::kExpire, .key = key}), Verdict::kAbsent);
    EXPECT_EQ(Get(key), std::nullopt);
    EXPECT_EQ(verdict({.op = Op::kInsert, .flags = flag, .key = key, .value = "2"}),
              Verdict::kDone);
    EXPECT_EQ(Get(key), "2");
    EXPECT_EQ(
        verdict(
            {.op = Op::kPut, .key = key, .value = "3", .other = {}, .deadline_ms = kKeepDeadline}),
        Verdict::kDone);
    EXPECT_EQ(DeadlineOf(key), 0u);
    if (traits_.ordered) {
      expired();
      EXPECT_EQ(subject_.RunOne({.op = Op::kDeleteRange, .flags = Request::kNoUpperBound}).integer,
                0);
      EXPECT_EQ(subject_
                    .RunOne({.op = Op::kExpireRange,
                             .flags = Request::kNoUpperBound,
                             .other = {},
                             .deadline_ms = Time(1000)})
                    .integer,
                0);
    }
    expired();
    EXPECT_EQ(subject_.RunOne({.op = Op::kDeleteAll}).integer, 0);
    EXPECT_EQ(Get(key), std::nullopt);
  }
}

// Goal: a counter that has expired begins anew, and lives without a deadline.
TEST_P(ExpiryConformance, AnExpiredCounterBeginsAnew) {
  SKEP_NEEDS(functions);
  Put("n", "5", Time(10));
  Batch batch;
  batch.Apply("n", functions::kAddDecimal, "2");
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(0).integer, 7);
  EXPECT_EQ(DeadlineOf("n"), Time(10));
  At(10);
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(0).integer, 2);
  EXPECT_FALSE(batch.outcome(0).present);
  EXPECT_EQ(DeadlineOf("n"), 0u);
}

// Goal: which writes keep the deadline and which drop it.
TEST_P(ExpiryConformance, WhatKeepsTheDeadline) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    NewRound(shape);
    const std::string key = Key("key");
    const std::string value = Value("1");
    const auto deadline_after = [&](const Request& request) {
      Put(key, value, Time(10));
      const Outcome& out = subject_.RunOne(request);
      EXPECT_EQ(out.verdict, Verdict::kDone);
      EXPECT_EQ(out.deadline_ms, Time(10));
      return DeadlineOf(key);
    };
    for (const Op op : {Op::kPut, Op::kUpdate}) {
      EXPECT_EQ(deadline_after({.op = op, .key = key, .value = "2"}), 0u);
      for (const uint64_t given : {Time(5), Time(20), kDeadlineMax}) {
        EXPECT_EQ(
            deadline_after({.op = op, .key = key, .value = "2", .other = {}, .deadline_ms = given}),
            given);
      }
      EXPECT_EQ(deadline_after({.op = op,
                                .when = Request::kEquals,
                                .key = key,
                                .value = Value("3"),
                                .other = value,
                                .deadline_ms = kKeepDeadline}),
                Time(10));
    }
    EXPECT_EQ(deadline_after({.op = Op::kExpire, .key = key, .other = {}, .deadline_ms = Time(7)}),
              Time(7));
    EXPECT_EQ(Get(key), value);
    EXPECT_EQ(deadline_after({.op = Op::kExpire, .when = Request::kHasDeadline, .key = key}), 0u);
    EXPECT_EQ(Get(key), value);
    if (!traits_.functions) continue;
    EXPECT_EQ(deadline_after(
                  {.op = Op::kApply, .key = key, .value = "more", .function = functions::kAppend}),
              Time(10));
    EXPECT_EQ(Get(key), value + "more");
  }
}

// Goal: each condition of kExpire, and two together, for every order of old and new deadline.
// Method: a table of NX, XX, GT, LT as Redis has them; the rest is the oracle's.
TEST_P(ExpiryConformance, WhenOfExpire) {
  constexpr uint8_t kNX = Request::kHasNoDeadline;
  constexpr uint8_t kXX = Request::kHasDeadline;
  constexpr uint8_t kGT = Request::kLater;
  constexpr uint8_t kLT = Request::kEarlier;
  const struct {
    uint64_t has;
    uint64_t gets;
    std::vector<uint8_t> done;
  } lines[] = {
      {0, Time(20), {0, kNX, kLT, kNX | kLT}}, {Time(20), Time(10), {0, kXX, kLT, kXX | kLT}},
      {Time(20), Time(20), {0, kXX}},          {Time(20), Time(30), {0, kXX, kGT, kXX | kGT}},
      {Time(20), 0, {0, kXX, kGT, kXX | kGT}}, {0, 0, {0, kNX}},
  };
  for (const auto& line : lines) {
    for (int bits = 0; bits < 16; ++bits) {
      const auto when = static_cast<uint8_t>(bits * Request::kHasNoDeadline);
      SCOPED_TRACE(testing::Message() << line.has << " " << line.gets << " when " << int{when});
      Put("key", "1", line.has);
      const Outcome out = Expire("key", line.gets, when);
      const bool done = std::ranges::find(line.done, when) != line.done.end();
      EXPECT_EQ(out.verdict, done ? Verdict::kDone : Verdict::kMismatch);
      EXPECT_EQ(out.deadline_ms, line.has);
      EXPECT_EQ(out.version != 0, done && traits_.multi_version);
      EXPECT_EQ(DeadlineOf("key"), done ? line.gets : line.has);
      if (!traits_.ordered) continue;
      Put("key", "1", line.has);
      const Outcome range = subject_.RunOne({.op = Op::kExpireRange,
                                             .flags = Request::kNoUpperBound,
                                             .when = when,
                                             .other = {},
                                             .deadline_ms = line.gets});
      EXPECT_EQ(range.integer, done ? 1 : 0);
    }
  }
}

// Goal: a deadline that is not after now deletes, at once and for good.
TEST_P(ExpiryConformance, ADeadlineThatHasPassedDeletes) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    NewRound(shape);
    const std::string key = Key("key");
    for (const uint64_t deadline_ms : {uint64_t{1}, Time(0) - 1, Time(0)}) {
      EXPECT_EQ(Put(key, Value("1"), deadline_ms).verdict, Verdict::kDone);
      EXPECT_EQ(Get(key), std::nullopt);
      Put(key, Value("1"));
      EXPECT_EQ(Put(key, Value("2"), deadline_ms).verdict, Verdict::kDone);
      EXPECT_EQ(Get(key), std::nullopt);
      Put(key, Value("1"));
      const Outcome out = subject_.RunOne({.op = Op::kExpire,
                                           .flags = Request::kReturnPrevious,
                                           .key = key,
                                           .other = {},
                                           .deadline_ms = deadline_ms});
      EXPECT_EQ(out.verdict, Verdict::kDone);
      EXPECT_TRUE(out.present);
      EXPECT_EQ(Get(key), std::nullopt);
      EXPECT_EQ(items(), 0u);
    }
  }
}

// Goal: the latest possible deadline can be set and lasts until its millisecond; one later is
// refused, and so is kKeepDeadline with kExpire.
TEST_P(ExpiryConformance, TheLatestDeadline) {
  if (!GetParam().in_process) GTEST_SKIP() << "no clock tells that time";
  Put("a", "1", kDeadlineMax);
  const Outcome out = Put("b", "1", kDeadlineMax + 1);
  EXPECT_EQ(out.status.code(), Code::kInvalidArgument);
  EXPECT_EQ(out.status.detail(), kDeadlineMax);
  EXPECT_EQ(Expire("a", kDeadlineMax + 1).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Expire("a", kKeepDeadline).status.code(), Code::kInvalidArgument);
  subject_.set_now_ms(kDeadlineMax - 1);
  subject_.MaintainAll();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), std::nullopt);
  subject_.set_now_ms(kDeadlineMax);
  EXPECT_EQ(Get("a"), std::nullopt);
  subject_.MaintainAll();
  EXPECT_EQ(items(), 0u);
}

// Goal: a snapshot's now is that of its opening. A snapshot opened before the deadline sees the key
// even after it, whatever was reclaimed or written meanwhile; one opened after does not.
TEST_P(ExpiryConformance, ASnapshotHasTheTimeOfItsOpening) {
  SKEP_NEEDS(snapshots);
  for (const Shape& shape : kShapes) {
    for (const bool maintains : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.name << ", maintained: " << maintains);
      NewRound(shape);
      const std::string a = Key("a");
      const std::string b = Key("b");
      Put(a, Value("1"), Time(10));
      Put(b, Value("2"), Time(20));
      std::vector<SnapshotRef> snapshots;
      const auto pass = [&](uint64_t ms) {
        At(ms);
        if (maintains) subject_.MaintainAll();
      };
      At(9);
      subject_.Open(snapshots);
      pass(10);
      subject_.Open(snapshots);
      pass(20);
      subject_.Open(snapshots);
      Put(a, "new", Time(30));
      pass(30);
      subject_.Open(snapshots);
      pass(40);
      ASSERT_EQ(snapshots.size(), 4u);
      ExpectKeys({a, b}, snapshots[0]);
      ExpectKeys({b}, snapshots[1]);
      ExpectKeys({}, snapshots[2]);
      ExpectKeys({}, snapshots[3]);
      ExpectKeys({});
      for (const SnapshotRef snapshot : snapshots) subject_.Close(snapshot);
      subject_.ExpectNoOldVersions();
      EXPECT_EQ(items(), 0u);
      if (HasFailure()) return;
    }
  }
}

// Goal: a clock that steps back does not bring back keys that a batch, a snapshot, or maintenance
// has seen as gone.
TEST_P(ExpiryConformance, AClockThatStepsBackResurrectsNothing) {
  for (const char* const seen_by : {"batch", "snapshot", "maintenance"}) {
    const bool by_snapshot = seen_by == std::string_view("snapshot");
    if (by_snapshot && !traits_.snapshots) continue;
    SCOPED_TRACE(seen_by);
    subject_.Pass(1000);
    NewRound(kShapes[0]);
    Put("a", "1", Time(10));
    Put("b", "1", Time(20));
    At(12);
    std::vector<SnapshotRef> snapshots;
    if (by_snapshot) {
      subject_.Open(snapshots);
    } else if (seen_by == std::string_view("maintenance")) {
      subject_.MaintainAll();
    } else {
      ASSERT_EQ(Get("b"), "1");  // the time is seen, not the single key
    }
    At(5);
    ExpectKeys({"b"});
    ExpectDrawnAndPresent({"b"});
    EXPECT_EQ(subject_.RunOne({.op = Op::kInsert, .key = "a", .value = "2"}).verdict,
              Verdict::kDone);
    if (traits_.ordered) {
      Put("c", "1", Time(13));
      Put("d", "1");
      At(12);
      Put("d", "1", Time(14));
      At(15);
      ASSERT_EQ(Get("a"), "2");
      At(5);
      EXPECT_EQ(subject_.RunOne({.op = Op::kDeleteRange, .key = "c", .other = "e"}).integer, 0);
      EXPECT_EQ(subject_.RunOne({.op = Op::kDelete, .key = "d"}).verdict, Verdict::kAbsent);
    }
    // A deadline between the two times has passed.
    Put("b", "2", Time(11));
    ExpectKeys({"a"});
    At(0);
    subject_.MaintainAll();
    ExpectKeys({"a"});
    for (const SnapshotRef snapshot : snapshots) subject_.Close(snapshot);
    At(12);
  }
}

// Goal: kExpireRange changes the present keys that its conditions allow, from the lower bound on,
// as many as the limit allows, and tells where to go on.
TEST_P(ExpiryConformance, RangesInSteps) {
  SKEP_NEEDS(ordered);
  constexpr int64_t kKeys = 60;
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    NewRound(shape);
    for (int64_t i = 0; i < kKeys; ++i) {
      Put(Key("key" + std::to_string(100 + i)), Value("1"), i % 3 == 0 ? Time(50) : 0);
    }
    int64_t changed = 0;
    std::string from;
    int steps = 0;
    for (bool more = true; more; ++steps) {
      Batch batch;
      batch.Add({.op = Op::kExpireRange,
                 .flags = Request::kNoUpperBound,
                 .when = Request::kHasNoDeadline,
                 .limit = 7,
                 .key = from,
                 .other = {},
                 .deadline_ms = Time(20)});
      subject_.Run(batch);
      ASSERT_FALSE(HasFatalFailure());
      changed += batch.outcome(0).integer;
      more = batch.outcome(0).more;
      from = batch.outcome(0).value;
    }
    EXPECT_EQ(changed, kKeys * 2 / 3);
    EXPECT_GE(steps, changed / 7);
    At(19);
    EXPECT_EQ(subject_.RunOne({.op = Op::kCount, .flags = Request::kNoUpperBound}).integer, kKeys);
    At(20);
    EXPECT_EQ(subject_.RunOne({.op = Op::kCount, .flags = Request::kNoUpperBound}).integer,
              kKeys / 3);
    // The new deadline has passed: the keys are deleted.
    EXPECT_EQ(subject_
                  .RunOne({.op = Op::kExpireRange,
                           .flags = Request::kNoUpperBound,
                           .other = {},
                           .deadline_ms = Time(20)})
                  .integer,
              kKeys / 3);
    ExpectKeys({});
    subject_.MaintainAll();
    EXPECT_EQ(items(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ExpiryConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep
