// Tests that every engine must pass: the edges of keys, values, ranges, snapshots, functions.
#include <algorithm>
#include <random>

#include "base/random.h"
#include "base/sanitized.h"
#include "engine/batch_writer.h"
#include "engine/testing/conformance.h"

namespace skep {
namespace {

class EdgeConformance : public EngineConformance {
 protected:
  // Checks the whole keyspace, by one scan at `snapshot` or now, against the oracle.
  void ScanAll(SnapshotRef snapshot = {}) {
    Batch batch;
    batch.set_snapshot(snapshot);
    batch.Scan(Range::All());
    subject_.Run(batch);
  }
};

// Goal: keys and values may be empty and have any bytes, and are compared as unsigned bytes.
TEST_P(EdgeConformance, AnyBytesAreKeysAndValues) {
  const std::string keys[] = {"",
                              std::string(1, '\0'),
                              std::string(2, '\0'),
                              "a",
                              std::string("a\0", 2),
                              std::string("a\0b", 3),
                              "\x7f",
                              "\x80",
                              "\xff",
                              "\xff\xff",
                              "\r\n"};
  Batch batch;
  for (const std::string& key : keys) batch.Put(key, key);
  subject_.Run(batch);
  batch.Clear();
  for (const std::string& key : keys) batch.Get(key);
  subject_.Run(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.outcome(slot).value, keys[slot]);
  }
  if (traits_.ordered) ScanAll();
}

// Goal: the empty key is an item like any other when it is the only one and its value is not
// wanted, so that the item has no bytes at all.
TEST_P(EdgeConformance, AnItemOfNoBytes) {
  if (!traits_.ordered) GTEST_SKIP() << "no ranges";
  Batch batch;
  batch.Put("", "x");
  subject_.Run(batch);
  batch.Clear();
  batch.Scan(Range::All(), {.keys_only = true});
  subject_.Run(batch);
  ASSERT_EQ(batch.items(0).size(), 1u);
  EXPECT_EQ(batch.items(0).front().key, "");
  EXPECT_EQ(batch.items(0).front().value, "");
  EXPECT_FALSE(batch.outcome(0).more);
}

// Goal: a scan that has returned its whole range says that there is no more, though there are keys
// behind the range; one that has not says that there is more.
// Method: every limit around the number of keys in a range, forward and back.
TEST_P(EdgeConformance, AScanThatHasGivenAllSaysSo) {
  SKEP_NEEDS(ordered);
  Batch load;
  for (const char* key : {"a1", "b1", "b2", "b3", "c1"}) load.Put(key, "v");
  subject_.Run(load);
  for (const bool reverse : {false, true}) {
    for (uint32_t limit = 1; limit <= 4; ++limit) {
      Batch batch;
      const uint32_t slot =
          batch.Scan(Range::Between("b", "c"), {.limit = limit, .reverse = reverse});
      subject_.Run(batch);
      EXPECT_EQ(batch.items(slot).size(), std::min(limit, 3u));
      EXPECT_EQ(batch.outcome(slot).more, limit < 3) << limit;
    }
  }
}

// Goal: scans agree with the oracle, whatever sizes items have, whether they lie together, were
// written since, replaced or deleted, have deadlines or lie outside the node.
// Method: keys of one size with values of one size, which engines store most compactly; then writes
// that keep these sizes, and more and more that do not; after each step several scans in one batch,
// of short and long ranges, with and without an upper bound, both ways, with and without values,
// limits of items and bytes.
TEST_P(EdgeConformance, ScansOfItemsOfAllForms) {
  SKEP_NEEDS(ordered);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr uint64_t kKeys = 600;
  const auto key_of = [](uint64_t i) { return std::to_string(1000 + i); };
  const auto random_value = [&](int step) {
    const uint64_t size = random.Below(10) >= static_cast<uint64_t>(step) ? 8
                          : random.Chance(1, 20)                          ? 3000
                                                                          : random.Below(12);
    return std::string(size, static_cast<char>('a' + random.Below(26)));
  };
  Batch load;
  for (uint64_t i = 0; i < kKeys; i += 2) {
    load.Put(load.scratch().Copy(key_of(i)), load.scratch().Copy(random_value(0)));
  }
  subject_.Run(load);
  for (int step = 0; step < 10; ++step) {
    Batch writes;
    for (uint64_t i = random.Below(60); i > 0; --i) {
      std::string key = key_of(random.Below(kKeys));
      if (step > 6 && random.Chance(1, 5)) key += "longer";
      Request write = {.op = random.Chance(1, 4) ? Op::kDelete : Op::kPut,
                       .key = writes.scratch().Copy(key)};
      if (write.op == Op::kPut) write.value = writes.scratch().Copy(random_value(step));
      if (write.op == Op::kPut && step > 3 && random.Chance(1, 10)) {
        write.deadline_ms = Subject::kStartMs + 1000;
      }
      writes.Add(write);
    }
    subject_.Run(writes);
    Batch scans;
    if (random.Chance(1, 3)) scans.set_scan_bytes_max(random.Below(2000));
    for (int i = 0; i < 20; ++i) {
      const std::string_view lo = scans.scratch().Copy(key_of(random.Below(kKeys)));
      const std::string_view hi = scans.scratch().Copy(key_of(random.Below(kKeys)));
      ScanOptions options = {.reverse = random.Chance(1, 4), .keys_only = random.Chance(1, 4)};
      if (random.Chance(1, 2)) options.limit = static_cast<uint32_t>(random.Below(150));
      scans.Scan(random.Chance(1, 2) ? Range::From(lo) : Range::Between(lo, hi), options);
    }
    ASSERT_NO_FATAL_FAILURE(subject_.Run(scans));
  }
}

// Goal: the largest key and value that the traits name are stored; one byte more is refused, names
// the limit and changes nothing.
TEST_P(EdgeConformance, KeysAndValuesAtTheirLimits) {
  const std::string key(traits_.key_bytes_max + 1, 'k');
  const std::string_view key_at_limit = std::string_view(key).substr(1);
  Batch batch;
  batch.Put(key_at_limit, "1");
  batch.Get(key_at_limit);
  const uint32_t over[] = {batch.Put(key, "2"), batch.Get(key), batch.Delete(key),
                           batch.CompareAndSet(key, "1", "2")};
  subject_.Run(batch);
  for (const uint32_t slot : over) {
    EXPECT_EQ(batch.outcome(slot).status.code(), Code::kTooLarge);
    EXPECT_EQ(batch.outcome(slot).status.detail(), traits_.key_bytes_max);
  }
  if (traits_.ordered) ScanAll();
}

TEST_P(EdgeConformance, ValuesAtTheirLimit) {
  const std::string value(traits_.value_bytes_max + 1, 'v');
  const std::string_view value_at_limit = std::string_view(value).substr(1);
  Batch batch;
  batch.Put("a", value_at_limit);
  const uint32_t over = batch.Put("a", value);
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(over).status.code(), Code::kTooLarge);
  EXPECT_EQ(batch.outcome(over).status.detail(), traits_.value_bytes_max);
  if (!traits_.functions) return;
  batch.Clear();
  const uint32_t grown = batch.Apply("a", functions::kAppend, "x");
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(grown).status.code(), Code::kTooLarge);
}

// Goal: a batch of small requests cannot take any amount of memory.
// Method: one large value is read again and again; the first reads are answered, the last is not.
TEST_P(EdgeConformance, TheValuesOfABatchAreBounded) {
  if (kSanitized) GTEST_SKIP() << "a gigabyte and its shadow";
  if (!GetParam().in_process) GTEST_SKIP() << "a gigabyte through a socket";
  if (traits_.value_bytes_max < 1024) GTEST_SKIP() << "a gigabyte of very small values";
  const std::string value(traits_.value_bytes_max, 'v');
  Batch put;
  put.Put("a", value);
  engine_.gate().Wait(engine_.Execute(put));
  Batch batch;
  const auto fit = static_cast<uint32_t>(kAnswerBytesMax / value.size());
  for (uint32_t i = 0; i < fit + 2; ++i) batch.Get("a");
  engine_.Execute(batch);
  EXPECT_EQ(batch.outcome(fit - 1).verdict, Verdict::kDone);
  EXPECT_EQ(batch.outcome(fit + 1).status.code(), Code::kTooLarge);
  EXPECT_EQ(batch.outcome(fit + 1).status.detail(), kAnswerBytesMax);
}

// Goal: an atomic batch with one request over a limit changes nothing.
TEST_P(EdgeConformance, ALimitStopsAnAtomicBatch) {
  SKEP_NEEDS(atomic);
  Put("a", "1");
  const std::string long_key(traits_.key_bytes_max + 1, 'k');
  Batch batch(Batch::Kind::kAtomic);
  batch.Put("a", "2");
  batch.Put("b", "2");
  batch.Delete(long_key);
  subject_.Run(batch);
  EXPECT_FALSE(batch.applied());
  EXPECT_EQ(batch.outcome(0).verdict, Verdict::kAborted);
  EXPECT_EQ(batch.outcome(2).status.code(), Code::kTooLarge);
}

// Goal: every shape of range agrees with the oracle: empty, inverted, one key, prefixes that end in
// 0xff, bounds longer than any key; forward, reverse, from the floor, limited.
// Method: all pairs of bounds out of the keys themselves and their neighbours.
TEST_P(EdgeConformance, EveryShapeOfRange) {
  SKEP_NEEDS(ordered);
  const std::string too_long(traits_.key_bytes_max + 10, 'b');
  const std::vector<std::string> bounds = {
      "", "a", std::string("a\0", 2), "b", "bb", too_long, "c", "\xff", "\xff\xff", "\xff\xff\xff"};
  for (const std::string_view key : {"", "a", "b", "bb", "d", "\xff", "\xff\xff"}) {
    for (const std::string& lo : bounds) {
      Batch batch;
      for (const std::string& hi : bounds) {
        for (const Range& range :
             {Range::Between(lo, hi), Range::From(lo), PrefixRange(lo, batch.scratch())}) {
          batch.Scan(range);
          batch.Scan(range, {.limit = 2, .reverse = true});
          batch.Scan(range, {.limit = 1, .keys_only = true, .seek_floor = true});
          batch.Scan(range, {.seek_floor = true});
          batch.Count(range);
          batch.Count(range, 2);
        }
      }
      subject_.Run(batch);
      if (HasFatalFailure()) return;
    }
    Put(key, "1");
  }
}

// Goal: a count or delete in steps visits every key once, and no step more keys than it may.
TEST_P(EdgeConformance, RangesInSteps) {
  SKEP_NEEDS(ordered);
  SKEP_NEEDS(range_writes);
  constexpr uint32_t kStep = 7;
  constexpr int64_t kKeys = 100;
  for (int64_t i = 0; i < kKeys; ++i) Put("key" + std::to_string(i), "1");
  int64_t counted = 0;
  std::string from;
  for (bool more = true; more;) {
    Batch batch;
    batch.Count(Range::From(from), kStep);
    subject_.Run(batch);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_LE(batch.outcome(0).integer, kStep);
    counted += batch.outcome(0).integer;
    more = batch.outcome(0).more;
    from = batch.outcome(0).value;
  }
  EXPECT_EQ(counted, kKeys);
  int64_t deleted = 0;
  for (bool more = true; more;) {
    Batch batch;
    batch.DeleteRange(Range::All(), kStep);
    subject_.Run(batch);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_LE(batch.outcome(0).integer, kStep);
    deleted += batch.outcome(0).integer;
    more = batch.outcome(0).more;
  }
  EXPECT_EQ(deleted, kKeys);
}

// Goal: deleting everything, by the whole range at once, keeps the keys that snapshots see.
TEST_P(EdgeConformance, DeletingEverything) {
  SKEP_NEEDS(ordered);
  SKEP_NEEDS(range_writes);
  for (const bool pinned : {false, true}) {
    if (pinned && !traits_.snapshots) break;
    for (int i = 0; i < 50; ++i) Put("key" + std::to_string(i), "1");
    std::vector<SnapshotRef> snapshots;
    if (pinned) subject_.Open(snapshots);
    Batch batch;
    batch.DeleteRange(Range::All());
    subject_.Run(batch);
    EXPECT_EQ(batch.outcome(0).integer, 50);
    ScanAll();
    Put("key7", "2");
    if (pinned) ScanAll(snapshots[0]);
    if (pinned) subject_.Close(snapshots[0]);
    subject_.ExpectNoOldVersions();
  }
}

// Goal: a snapshot reads one state until its age limit, to the millisecond; then it says so, and
// may still be closed.
TEST_P(EdgeConformance, ASnapshotIsRevokedAtItsAge) {
  SKEP_NEEDS(snapshots);
  Put("a", "1");
  std::vector<SnapshotRef> snapshots;
  subject_.Open(snapshots);
  ASSERT_FALSE(HasFatalFailure());
  // Enough writes that the engine must keep something, though it may keep whole nodes.
  for (int i = 0; i < 200; ++i) Put("a", "2");
  EXPECT_GT(engine_.Statistics().old_versions, 0u);
  EXPECT_EQ(engine_.Statistics().oldest_snapshot, snapshots[0].version);
  Batch batch;
  batch.set_snapshot(snapshots[0]);
  batch.Get("a");
  subject_.Pass(Subject::kSnapshotAgeMsMax - 1);
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(0).value, "1");
  subject_.Pass(1);
  subject_.oracle().DropSnapshot(snapshots[0]);
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(0).status.code(), Code::kSnapshotTooOld);
  subject_.ExpectNoOldVersions();
  engine_.CloseSnapshot(snapshots[0]);
  subject_.ExpectNoOldVersions();
}

// Goal: one old snapshot costs one old value, or node, of each changed key, not one for each change
// since.
// Method: 500 changes of five values. An engine that keeps nodes has to replace each many times.
TEST_P(EdgeConformance, AnOldSnapshotCostsOneValueOfWhatChanged) {
  SKEP_NEEDS(snapshots);
  for (int i = 0; i < 10; ++i) Put("key" + std::to_string(i), "1");
  std::vector<SnapshotRef> snapshots;
  subject_.Open(snapshots);
  ASSERT_FALSE(HasFatalFailure());
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 5; ++i) Put("key" + std::to_string(i), std::to_string(round));
  }
  subject_.MaintainAll();
  EXPECT_LE(engine_.Statistics().old_versions, 5u);
  Batch batch;
  batch.set_snapshot(snapshots[0]);
  batch.Get("key3");
  subject_.Run(batch);
  subject_.Close(snapshots[0]);
  subject_.ExpectNoOldVersions();
}

// Goal: the built-in functions do what function.h says; an error changes nothing and reaches the
// caller.
TEST_P(EdgeConformance, Functions) {
  SKEP_NEEDS(functions);
  Put("word", "abc");
  Put("max", "9223372036854775807");
  Batch batch;
  const uint32_t fresh = batch.Apply("n", functions::kAddDecimal, "-5");
  const uint32_t sum = batch.Apply("n", functions::kAddDecimal, "7");
  const uint32_t not_a_number = batch.Apply("word", functions::kAddDecimal, "1");
  const uint32_t overflow = batch.Apply("max", functions::kAddDecimal, "1");
  const uint32_t length = batch.Apply("word", functions::kAppend, "de");
  const uint32_t reversed = batch.Apply("word", ReverseFunction(), "");
  const uint32_t failed = batch.Apply("word", ReverseFunction(), "fail");
  const uint32_t word = batch.Get("word");
  const uint32_t erased = batch.Apply("word", ReverseFunction(), "erase");
  const uint32_t gone = batch.Get("word");
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(fresh).integer, -5);
  EXPECT_EQ(batch.outcome(sum).integer, 2);
  EXPECT_EQ(batch.outcome(not_a_number).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(batch.outcome(overflow).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(batch.outcome(length).integer, 5);
  EXPECT_EQ(batch.outcome(reversed).value, "abcde");
  EXPECT_STREQ(batch.outcome(failed).status.what(), "told to fail");
  EXPECT_EQ(batch.outcome(word).value, "edcba");
  EXPECT_EQ(batch.outcome(erased).value, "edcba");
  EXPECT_EQ(batch.outcome(gone).verdict, Verdict::kAbsent);
}

// Goal: hints cost time, never correctness: fresh hints, stale ones and made-up ones.
TEST_P(EdgeConformance, Hints) {
  Hint hint;
  for (int round = 0; round < 20; ++round) {
    Batch batch;
    for (int i = 0; i < 20; ++i) {
      batch.Add({.op = Op::kPut,
                 .flags = Request::kWantHint,
                 .key = batch.scratch().Copy("key" + std::to_string(i * round)),
                 .value = "1",
                 .hint = hint});
    }
    batch.Add({.op = Op::kGet, .flags = Request::kWantHint, .key = "key1", .hint = hint});
    batch.Add({.op = Op::kGet, .key = "key1", .hint = {.bits = UINT64_MAX}});
    subject_.Run(batch);
    ASSERT_FALSE(HasFatalFailure());
    hint = batch.outcome(20).hint;
  }
}

// Goal: samples are uniform, and equal numbers on equal states choose the same key.
// Method: 64 keys, 200 expected draws of each; the bounds are ten standard deviations away.
TEST_P(EdgeConformance, Samples) {
  SKEP_NEEDS(samples);
  constexpr int kKeys = 64;
  constexpr int kDraws = 200 * kKeys;
  for (int i = 0; i < 3 * kKeys; ++i) Put("key" + std::to_string(i), "1");
  for (int i = kKeys; i < 3 * kKeys; ++i) {
    Batch batch;
    batch.Delete(batch.scratch().Copy("key" + std::to_string(i)));
    subject_.Run(batch);
  }
  const unsigned seed = PrintedSeed();
  std::mt19937_64 rng(seed);
  std::map<std::string, int, std::less<>> drawn;
  Batch batch;
  for (int i = 0; i < kDraws; ++i) batch.Sample(rng());
  subject_.Run(batch);
  Batch again;
  for (const Request& request : batch.requests()) again.Sample(request.random);
  subject_.Run(again);
  ASSERT_FALSE(HasFatalFailure());
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    ++drawn[std::string(batch.items(slot).front().key)];
    ASSERT_EQ(batch.items(slot).front().key, again.items(slot).front().key);
  }
  EXPECT_EQ(drawn.size(), kKeys);
  for (const auto& [key, times] : drawn) {
    EXPECT_GT(times, 60) << key << " seed " << seed;
    EXPECT_LT(times, 340) << key << " seed " << seed;
  }
}

// Goal: the gate calls back once, when the ticket is released; released() never goes back.
TEST_P(EdgeConformance, TicketsAndTheGate) {
  Version before = 0;
  for (int i = 0; i < 100; ++i) {
    Batch batch;
    batch.Put(batch.scratch().Copy("key" + std::to_string(i % 7)), "1");
    const Version ticket = engine_.Execute(batch);
    int calls = 0;
    engine_.gate().CallWhenReleased(ticket, [&] { ++calls; });
    engine_.gate().Wait(ticket);
    ASSERT_TRUE(engine_.gate().IsReleased(ticket));
    ASSERT_EQ(calls, 1);
    ASSERT_GE(ticket, before);
    ASSERT_GE(engine_.gate().released(), before);
    before = engine_.gate().released();
  }
}

// Goal: an empty batch is legal, and a batch may be executed again.
TEST_P(EdgeConformance, EmptyAndRepeatedBatches) {
  Batch batch;
  subject_.Run(batch);
  EXPECT_TRUE(batch.applied());
  batch.Put("a", "1");
  batch.Insert("a", "2", Request::kReturnPrevious);
  subject_.Run(batch);
  subject_.Run(batch);
  EXPECT_EQ(batch.outcome(1).verdict, Verdict::kExists);
  EXPECT_EQ(batch.outcome(1).value, "1");
}

INSTANTIATE_TEST_SUITE_P(Engines, EdgeConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep
