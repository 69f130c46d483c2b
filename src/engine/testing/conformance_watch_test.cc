// Tests that every engine must pass: watches (Engine::Watch, kRequireUnchanged) are exact: they see
// every change of their key, and nothing else.
#include <functional>

#include "base/sanitized.h"
#include "engine/testing/conformance.h"
#include "engine/testing/masked_engine.h"

namespace skep {
namespace {

class WatchConformance : public EngineConformance {
 protected:
  // Executes a batch of one condition; returns its outcome.
  Outcome Ask(std::string_view key, uint64_t watch) {
    Batch batch(Batch::Kind::kAtomic);
    batch.RequireUnchanged(key, watch);
    subject_.Run(batch);
    return batch.outcome(0);
  }
  bool IsUnchanged(std::string_view key, uint64_t watch) {
    return Ask(key, watch).verdict == Verdict::kDone;
  }
  Outcome Run(Batch::Kind kind, const std::function<void(Batch&)>& fill) {
    Batch batch(kind);
    fill(batch);
    subject_.Run(batch);
    Outcome out = batch.outcome(0);
    out.value = {};
    return out;
  }
};

// Goal: the watch knows whether its key has changed, whatever is done to the key, or beside it.
// Method: a table of operations, each with its answer for a present key and an absent one, for keys
// and values in every place, in batches of both kinds, and in the second of two parts.
TEST_P(WatchConformance, SeesEveryChangeAndNothingElse) {
  SKEP_NEEDS(atomic);
  struct Line {
    const char* what;
    bool if_present, if_absent;  // whether the operation changes the key
    bool atomic_only;
    std::function<void(Batch&, std::string_view key)> fill;
  };
  const std::string value = Long("1");
  const uint64_t later = subject_.now_ms() + 1'000'000;
  const std::vector<Line> lines = {
      {"nothing", false, false, false, [](Batch& b, auto) { b.Get("other"); }},
      {"get", false, false, false, [](Batch& b, auto key) { b.Get(key); }},
      {"put of the same value", true, true, false, [&](Batch& b, auto key) { b.Put(key, value); }},
      {"put of another key", false, false, false, [&](Batch& b, auto) { b.Put("other", value); }},
      {"insert", false, true, false, [](Batch& b, auto key) { b.Insert(key, "2"); }},
      {"update", true, false, false, [](Batch& b, auto key) { b.Update(key, "2"); }},
      {"delete", true, false, false, [](Batch& b, auto key) { b.Delete(key); }},
      {"compare-and-set", true, false, false,
       [&](Batch& b, auto key) { b.CompareAndSet(key, value, "2"); }},
      {"compare-and-set that fails", false, false, false,
       [](Batch& b, auto key) { b.CompareAndSet(key, "not it", "2"); }},
      {"put if equal", true, false, false,
       [&](Batch& b, auto key) {
         b.Add({.op = Op::kPut, .when = Request::kEquals, .key = key, .other = value});
       }},
      {"delete if different", false, false, false,
       [&](Batch& b, auto key) {
         b.Add({.op = Op::kDelete, .when = Request::kDiffers, .key = key, .other = value});
       }},
      {"put with a deadline that has passed", true, false, false,
       [](Batch& b, auto key) {
         b.Add({.op = Op::kPut, .key = key, .value = "2", .other = {}, .deadline_ms = 1});
       }},
      {"expire", true, false, false, [=](Batch& b, auto key) { b.Expire(key, later); }},
      {"expire that fails", false, false, false,
       [=](Batch& b, auto key) { b.Expire(key, later, Request::kHasDeadline); }},
      {"expire in the past", true, false, false, [](Batch& b, auto key) { b.Expire(key, 1); }},
      {"persist of one without a deadline", false, false, false,
       [](Batch& b, auto key) { b.Persist(key); }},
      {"delete all", true, false, false, [](Batch& b, auto) { b.DeleteAll(); }},
      {"move away", true, false, true, [](Batch& b, auto key) { b.Move(key, "target"); }},
      {"move onto itself", false, false, true, [](Batch& b, auto key) { b.Move(key, key); }},
      {"move onto it", true, true, true, [](Batch& b, auto key) { b.Move("other", key); }},
      {"move onto it, if it is absent", false, true, true,
       [](Batch& b, auto key) { b.Move("other", key, Request::kKeepExisting); }},
      {"move of an absent key onto it", false, false, true,
       [](Batch& b, auto key) { b.Move("not there", key); }},
      {"put and delete", true, true, true,
       [](Batch& b, auto key) {
         b.Put(key, "2");
         b.Delete(key);
       }},
      {"an aborted batch", false, false, true,
       [](Batch& b, auto key) {
         b.RequirePresent("not there");
         b.Put(key, "2");
       }},
      {"an undone part", false, false, true,
       [&](Batch& b, auto key) {
         b.Get("other");
         b.BeginPart();
         b.Put(key, "2");
         b.Delete(key);
         b.Put("word", "not a number");
         b.Add({.op = Op::kInsert, .when = Request::kEquals, .key = key});  // refused
       }},
      {"a part beside one that is undone", true, true, true,
       [&](Batch& b, auto key) {
         b.Get("other");
         b.BeginPart();
         b.RequirePresent("not there");
         b.BeginPart();
         b.Put(key, "2");
       }},
  };
  const std::vector<Line> functions_lines = {
      {"function that replaces", true, true, false,
       [](Batch& b, auto key) { b.Apply(key, functions::kAppend, "x"); }},
      {"function that keeps", false, false, false,
       [](Batch& b, auto key) { b.Apply(key, ReverseFunction(), "keep"); }},
      {"function that erases", true, false, false,
       [](Batch& b, auto key) { b.Apply(key, ReverseFunction(), "erase"); }},
      {"function that fails", false, false, false,
       [](Batch& b, auto key) { b.Apply(key, ReverseFunction(), "fail"); }},
  };
  const std::vector<Line> range_lines = {
      {"range delete over it", true, false, false,
       [](Batch& b, auto) { b.DeleteRange(Range::From("k")); }},
      {"range delete of all", true, false, false,
       [](Batch& b, auto) { b.DeleteRange(Range::All()); }},
      {"range delete up to it", false, false, false,
       [](Batch& b, auto key) { b.DeleteRange(Range::Between("", key)); }},
      {"range delete behind it", false, false, false,
       [](Batch& b, auto key) { b.DeleteRange(Range::From(KeyAfter(key, b.scratch()))); }},
      {"range delete that stops before it", false, false, false,
       [](Batch& b, auto) { b.DeleteRange(Range::From("a"), 1); }},
      {"range expiry over it", true, false, false,
       [=](Batch& b, auto) { b.ExpireRange(Range::From("k"), later); }},
      {"range expiry in the past", true, false, false,
       [](Batch& b, auto) { b.ExpireRange(Range::All(), 1); }},
      {"range expiry up to it", false, false, false,
       [=](Batch& b, auto key) { b.ExpireRange(Range::Between("", key), later); }},
      {"scan and count", false, false, false,
       [](Batch& b, auto) {
         b.Scan(Range::All());
         b.Count(Range::All());
       }},
  };
  std::vector<Line> all = lines;
  if (traits_.functions) all.insert(all.end(), functions_lines.begin(), functions_lines.end());
  if (traits_.ordered) all.insert(all.end(), range_lines.begin(), range_lines.end());
  const auto expires = [](const Line& line) {
    Batch batch(Batch::Kind::kAtomic);
    line.fill(batch, "key");
    return std::ranges::any_of(batch.requests(), [](const Request& r) {
      return r.op == Op::kExpire || r.op == Op::kExpireRange || r.deadline_ms != 0;
    });
  };
  if (!traits_.expiry) std::erase_if(all, expires);
  for (const Line& line : all) {
    for (const bool present : {true, false}) {
      for (const std::string& key : {std::string("key"), Long("key")}) {
        for (const Batch::Kind kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
          if (kind == Batch::Kind::kUnordered && line.atomic_only) continue;
          SCOPED_TRACE(testing::Message() << line.what << ", present " << present << ", key of "
                                          << key.size() << ", atomic " << int(kind));
          subject_.RunOne({.op = Op::kDeleteAll});
          Put("aa", "1");
          Put("other", "1");
          if (present) Put(key, value);
          const uint64_t watch = subject_.Watch(key);
          ASSERT_TRUE(IsUnchanged(key, watch));
          Run(kind, [&](Batch& b) { line.fill(b, key); });
          EXPECT_EQ(IsUnchanged(key, watch), !(present ? line.if_present : line.if_absent));
          subject_.Unwatch(watch);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  subject_.ExpectNoOldVersions();
}

// Goal: expiry changes a key that was watched before it, and no key that had expired by then;
// reclaiming an expired key changes nothing.
TEST_P(WatchConformance, Expiry) {
  SKEP_NEEDS(expiry);
  SKEP_NEEDS(atomic);
  for (const bool maintains : {false, true}) {
    SCOPED_TRACE(testing::Message() << "maintained: " << maintains);
    const uint64_t due = subject_.now_ms() + 10;
    Put("key", "1", due);
    Put("kept", "1", due);
    const uint64_t before = subject_.Watch("key");
    const uint64_t kept = subject_.Watch("kept");
    subject_.set_now_ms(due - 1);
    if (maintains) subject_.MaintainAll();
    EXPECT_TRUE(IsUnchanged("key", before));
    subject_.RunOne({.op = Op::kExpire, .key = "kept"});
    subject_.set_now_ms(due);
    const uint64_t after = subject_.Watch("key");
    if (maintains) subject_.MaintainAll();
    const Outcome out = Ask("key", before);
    EXPECT_EQ(out.verdict, Verdict::kMismatch);
    EXPECT_EQ(out.version, 0u);
    EXPECT_EQ(Ask("kept", kept).verdict, Verdict::kMismatch);
    EXPECT_EQ(Ask("kept", kept).version != 0, traits_.multi_version);
    EXPECT_TRUE(IsUnchanged("key", after));
    subject_.MaintainAll();
    EXPECT_TRUE(IsUnchanged("key", after));
    EXPECT_FALSE(IsUnchanged("key", before));
    // A clock that steps back does not bring the key back.
    subject_.set_now_ms(due - 1);
    EXPECT_FALSE(IsUnchanged("key", before));
    EXPECT_TRUE(IsUnchanged("key", after));
    // Deleting an expired key changes nothing; inserting it does.
    subject_.RunOne({.op = Op::kDelete, .key = "key"});
    if (traits_.ordered) {
      subject_.RunOne({.op = Op::kDeleteRange, .key = "key", .other = "kez"});
    }
    EXPECT_TRUE(IsUnchanged("key", after));
    subject_.RunOne({.op = Op::kInsert, .key = "key", .value = "2"});
    EXPECT_FALSE(IsUnchanged("key", after));
    for (const uint64_t watch : {before, after, kept}) subject_.Unwatch(watch);
    subject_.set_now_ms(due + 100);
  }
}

// Goal: a number that is no watch, or not any more, is refused, and the batch is not applied.
TEST_P(WatchConformance, UnknownWatches) {
  SKEP_NEEDS(atomic);
  const uint64_t watch = subject_.Watch("key");
  EXPECT_TRUE(IsUnchanged("key", watch));
  subject_.Unwatch(watch);
  subject_.Unwatch(watch);
  for (const uint64_t unknown : {watch, uint64_t{0}, UINT64_MAX}) {
    Batch batch(Batch::Kind::kAtomic);
    batch.Put("a", "1");
    batch.RequireUnchanged("key", unknown);
    subject_.Run(batch);
    EXPECT_FALSE(batch.applied());
    EXPECT_EQ(batch.outcome(1).verdict, Verdict::kRefused);
    EXPECT_EQ(batch.outcome(1).status.code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(Get("a"), std::nullopt);
  const std::string too_long(traits_.key_bytes_max + 1, 'k');
  EXPECT_EQ(engine_.Watch(too_long, subject_.now_ms()).error().code(), Code::kTooLarge);
}

// Goal: a watch is of one key, of one engine: it is refused for another key or engine, although
// nobody has written either key.
// Method: one case is an engine that begins after the first one has ended, as in a server that is
// started again: its numbers differ from those given out before.
TEST_P(WatchConformance, WatchesOfOthers) {
  SKEP_NEEDS(atomic);
  const uint64_t watch = subject_.Watch("key");
  EXPECT_EQ(Ask("other", watch).verdict, Verdict::kRefused);
  EXPECT_EQ(Ask("other", watch).status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(IsUnchanged("key", watch));
  for (int i = 0; i < 2; ++i) {
    MemoryBudget budget;
    const auto later = GetParam().Make(budget);
    const auto own = later->Watch("key", subject_.now_ms());
    ASSERT_TRUE(own.has_value());
    EXPECT_NE(*own, watch);
    Batch batch(Batch::Kind::kAtomic);
    batch.RequireUnchanged("key", watch);
    later->Execute(batch);
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kRefused);
  }
}

// Goal: watches count as memory: over the limit new ones are refused, and removed ones give their
// memory back.
TEST_P(WatchConformance, AreRefusedOverTheLimit) {
  SKEP_NEEDS(atomic);
  if (!GetParam().in_process) GTEST_SKIP() << "the server's limit";
  subject_.Unwatch(subject_.Watch("key"));  // the engine allocates some things only the first time
  const uint64_t before = subject_.budget().used();
  subject_.budget().set_limit(before + 100'000);
  std::vector<uint64_t> watches;
  for (int i = 0; i < 1000; ++i) {
    const auto watch = engine_.Watch("key" + std::to_string(i), subject_.now_ms());
    if (!watch) {
      EXPECT_EQ(watch.error().code(), Code::kOutOfMemory);
      break;
    }
    watches.push_back(*watch);
  }
  EXPECT_GT(watches.size(), 100u);
  EXPECT_LT(watches.size(), 1000u);
  EXPECT_FALSE(engine_.Watch("another key", subject_.now_ms()).has_value());
  for (const uint64_t watch : watches) engine_.Unwatch(watch);
  EXPECT_TRUE(engine_.Watch("another key", subject_.now_ms()).has_value());
}

TEST_P(WatchConformance, AnEngineWithoutAtomicBatchesHasNone) {
  EngineTraits traits = traits_;
  traits.atomic = false;
  MaskedEngine masked(GetParam().Make(subject_.budget()), traits);
  EXPECT_EQ(masked.Watch("key", Subject::kStartMs).error().code(), Code::kNotSupported);
  if (!traits_.atomic) {
    EXPECT_EQ(engine_.Watch("key", Subject::kStartMs).error().code(), Code::kNotSupported);
  }
}

// Goal: a transaction's own writes come after its conditions, and count for conditions of later
// parts and batches; the outcome has the version of the first change.
TEST_P(WatchConformance, OwnWritesAndParts) {
  SKEP_NEEDS(atomic);
  Put("key", "1");
  const uint64_t watch = subject_.Watch("key");
  Batch batch(Batch::Kind::kAtomic);
  batch.Put("key", "2");
  batch.RequireUnchanged("key", watch);
  batch.Get("key");
  subject_.Run(batch);
  EXPECT_TRUE(batch.applied());
  EXPECT_EQ(batch.outcome(2).value, "2");
  const Version first = batch.outcome(0).version;
  Put("key", "3");
  EXPECT_EQ(Ask("key", watch).verdict, Verdict::kMismatch);
  EXPECT_EQ(Ask("key", watch).version, first);
  subject_.Unwatch(watch);

  const uint64_t again = subject_.Watch("key");
  Batch parts(Batch::Kind::kAtomic);
  parts.RequireUnchanged("key", again);
  parts.BeginPart();
  parts.RequireUnchanged("key", again);
  parts.Put("key", "4");
  parts.BeginPart();
  parts.RequireUnchanged("key", again);
  parts.Put("key", "5");
  subject_.Run(parts);
  EXPECT_TRUE(parts.applied());
  EXPECT_EQ(parts.outcome(2).verdict, Verdict::kDone);
  EXPECT_EQ(parts.outcome(3).verdict, Verdict::kMismatch);
  EXPECT_EQ(Get("key"), "4");
  subject_.Unwatch(again);
}

// Goal: a batch that only reads may have such a condition too.
TEST_P(WatchConformance, AWatchedBatchThatOnlyReads) {
  SKEP_NEEDS(atomic);
  Put("a", "1");
  Put("b", "1");
  const uint64_t watch = subject_.Watch("a");
  Batch batch(Batch::Kind::kAtomic);
  batch.RequireUnchanged("a", watch);
  batch.Get("b");
  if (traits_.ordered) batch.Scan(Range::All());
  subject_.Run(batch);
  EXPECT_TRUE(batch.applied());
  EXPECT_EQ(batch.outcome(1).value, "1");
  Put("b", "2");
  subject_.Run(batch);
  EXPECT_TRUE(batch.applied());
  Put("a", "1");
  subject_.Run(batch);
  EXPECT_FALSE(batch.applied());
  EXPECT_EQ(batch.outcome(1).verdict, Verdict::kAborted);
  subject_.Unwatch(watch);
}

// Goal: watches are independent: many on one key, and many keys, of which each write touches its
// own.
TEST_P(WatchConformance, ManyWatches) {
  SKEP_NEEDS(atomic);
  constexpr int kKeys = Rounds(2000);
  const auto key_of = [](int i) { return "key" + std::to_string(i); };
  std::vector<uint64_t> watches;
  for (int i = 0; i < kKeys; ++i) watches.push_back(subject_.Watch(key_of(i)));
  const uint64_t again = subject_.Watch(key_of(7));
  Batch writes;
  for (int i = 0; i < kKeys; i += 7) writes.Put(writes.scratch().Copy(key_of(i)), "1");
  subject_.Run(writes);
  Batch parts(Batch::Kind::kAtomic);
  for (int i = 0; i < kKeys; ++i) {
    parts.BeginPart();
    parts.RequireUnchanged(parts.scratch().Copy(key_of(i)), watches[static_cast<size_t>(i)]);
  }
  subject_.Run(parts);
  for (int i = 0; i < kKeys; ++i) {
    const Verdict verdict = parts.outcome(static_cast<uint32_t>(i)).verdict;
    ASSERT_EQ(verdict, i % 7 == 0 ? Verdict::kMismatch : Verdict::kDone) << i;
  }
  EXPECT_FALSE(IsUnchanged(key_of(7), again));
  const uint64_t fresh = subject_.Watch(key_of(7));
  EXPECT_TRUE(IsUnchanged(key_of(7), fresh));
  EXPECT_NE(fresh, again);
  for (const uint64_t watch : watches) subject_.Unwatch(watch);
  EXPECT_TRUE(IsUnchanged(key_of(7), fresh));
}

INSTANTIATE_TEST_SUITE_P(Engines, WatchConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep
