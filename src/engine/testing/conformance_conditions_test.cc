// Tests that every engine must pass: operations with conditions, moves, atomic batches in parts.
//
// Every batch is also checked against the oracle (Subject::Run); a test spells out only what it is
// about.
#include <functional>

#include "engine/testing/conformance.h"

namespace skep {
namespace {

class ConditionConformance : public EngineConformance {
 protected:
  // Executes an atomic batch that `fill` fills, and leaves it in batch_ to be read.
  void Atomic(const std::function<void(Batch&)>& fill) {
    batch_.Clear();
    fill(batch_);
    subject_.Run(batch_);
  }
  Verdict verdict(uint32_t slot) const { return batch_.outcome(slot).verdict; }

  void ExpectAborted(uint32_t first, uint32_t last) {
    for (uint32_t slot = first; slot <= last; ++slot) {
      EXPECT_EQ(verdict(slot), Verdict::kAborted) << "slot " << slot;
    }
  }

  Batch batch_{Batch::Kind::kAtomic};
};

// Goal: each condition of `when` on a value, for each operation that may have it, on a key that
// equals, differs, or is absent; where the condition does not hold nothing is stored, and the
// outcome has the value that was seen.
TEST_P(ConditionConformance, WhenOfValues) {
  const std::string old_value = Long("old");
  const Digest old_digest = DigestOf(old_value);
  const struct {
    Request::When when;
    Verdict if_equal, if_different, if_absent, put_if_absent;
  } lines[] = {
      {Request::kEquals, Verdict::kDone, Verdict::kMismatch, Verdict::kAbsent, Verdict::kAbsent},
      {Request::kDiffers, Verdict::kMismatch, Verdict::kDone, Verdict::kAbsent, Verdict::kDone},
      {Request::kDigestEquals, Verdict::kDone, Verdict::kMismatch, Verdict::kAbsent,
       Verdict::kAbsent},
      {Request::kDigestDiffers, Verdict::kMismatch, Verdict::kDone, Verdict::kAbsent,
       Verdict::kDone},
  };
  for (const auto& line : lines) {
    for (const Op op : {Op::kPut, Op::kUpdate, Op::kDelete}) {
      SCOPED_TRACE(testing::Message() << "when " << int{line.when} << " op " << int(op));
      const auto run = [&] {
        Request r{.op = op, .when = line.when, .key = "key"};
        if (op != Op::kDelete) r.value = "new";
        const bool by_digest = line.when >= Request::kDigestEquals;
        if (by_digest) r.digest = old_digest;
        if (!by_digest) r.other = old_value;
        return subject_.RunOne(r);
      };
      const auto after = [&](Verdict verdict, std::optional<std::string> before) {
        if (verdict != Verdict::kDone) return before;
        return op == Op::kDelete ? std::nullopt : std::optional<std::string>("new");
      };
      for (const std::string& value : {old_value, std::string("other"), std::string()}) {
        Put("key", value);
        const Verdict expected = value == old_value ? line.if_equal : line.if_different;
        const Outcome out = run();
        EXPECT_EQ(out.verdict, expected);
        EXPECT_EQ(out.value, expected == Verdict::kMismatch ? value : "");
        EXPECT_EQ(Get("key"), after(expected, value));
      }
      subject_.RunOne({.op = Op::kDelete, .key = "key"});
      const Verdict if_absent = op == Op::kPut ? line.put_if_absent : line.if_absent;
      EXPECT_EQ(run().verdict, if_absent);
      EXPECT_EQ(Get("key"), after(if_absent, std::nullopt));
    }
  }
}

// Goal: an operation whose `when` does not hold does not fail its batch.
TEST_P(ConditionConformance, WhenStopsNoBatch) {
  SKEP_NEEDS(atomic);
  Put("a", "1");
  Atomic([](Batch& b) {
    b.CompareAndSet("a", "2", "3");
    b.CompareAndSet("b", "2", "3");
    b.Put("c", "3");
  });
  EXPECT_TRUE(batch_.applied());
  EXPECT_EQ(verdict(0), Verdict::kMismatch);
  EXPECT_EQ(batch_.outcome(0).value, "1");
  EXPECT_EQ(verdict(1), Verdict::kAbsent);
  EXPECT_EQ(Get("c"), "3");
}

// Goal: a condition that an operation cannot have is refused, and changes nothing.
TEST_P(ConditionConformance, MalformedRequests) {
  Put("a", "1");
  Batch batch;
  const auto both = static_cast<uint8_t>(Request::kEquals | Request::kDigestEquals);
  batch.Add({.op = Op::kPut, .when = both, .key = "a", .value = "2"});
  batch.Add({.op = Op::kInsert, .when = Request::kEquals, .key = "a", .value = "2"});
  batch.Add({.op = Op::kGet, .when = Request::kDiffers, .key = "a"});
  batch.Add({.op = Op::kPut, .when = Request::kLater, .key = "a", .value = "2"});
  batch.Add({.op = Op::kExpire, .when = Request::kEquals, .key = "a"});
  batch.Move("a", "b");
  batch.RequireAbsent("b");
  batch.RequireEmpty(Range::All());
  batch.RequireUnchanged("a", 1);
  subject_.Run(batch);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.outcome(slot).verdict, Verdict::kRefused) << slot;
  }
  Batch parts;
  parts.Put("a", "2");
  parts.BeginPart();
  parts.Get("a");
  subject_.Run(parts);
  for (uint32_t slot = 0; slot < parts.size(); ++slot) {
    EXPECT_EQ(parts.outcome(slot).status.code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(Get("a"), "1");
}

// Goal: each condition that does not hold stops the batch, is named, and says what it saw.
TEST_P(ConditionConformance, AConditionSaysWhatItSaw) {
  SKEP_NEEDS(atomic);
  const std::string seen = Long("seen");
  const std::string a = Long("a");
  Put(a, seen);
  const struct {
    std::function<void(Batch&)> require;
    Verdict verdict;
    std::string value;
  } lines[] = {
      {[&](Batch& b) { b.RequireAbsent(a); }, Verdict::kExists, ""},
      {[&](Batch& b) { b.RequirePresent("c"); }, Verdict::kAbsent, ""},
      {[&](Batch& b) { b.RequireValue(a, "2"); }, Verdict::kMismatch, seen},
      {[&](Batch& b) { b.RequireValue("c", "2"); }, Verdict::kAbsent, ""},
      {[&](Batch& b) { b.RequireDigest(a, DigestOf("2")); }, Verdict::kMismatch, seen},
      {[&](Batch& b) { b.RequireDigest("c", DigestOf("")); }, Verdict::kAbsent, ""},
      {[&](Batch& b) { b.RequireEmpty(Range::All()); }, Verdict::kMismatch, a},
  };
  for (const auto& line : lines) {
    Atomic([&](Batch& b) {
      b.Put("b", "1");
      b.RequirePresent(a);
      line.require(b);
      b.RequirePresent("also not there");
      b.Delete(a);
    });
    const bool needs_order = batch_.requests()[2].op == Op::kRequireEmpty;
    if (needs_order && !traits_.ordered) continue;
    EXPECT_FALSE(batch_.applied());
    EXPECT_EQ(verdict(2), line.verdict);
    EXPECT_EQ(batch_.outcome(2).value, line.value);
    ExpectAborted(0, 1);
    ExpectAborted(3, 4);
    EXPECT_EQ(Get("b"), std::nullopt);
    EXPECT_EQ(Get(a), seen);
  }
}

// Goal: conditions are judged against the state before the batch, wherever they stand in it.
TEST_P(ConditionConformance, ConditionsComeFirst) {
  SKEP_NEEDS(atomic);
  Put("a", "1");
  Atomic([&](Batch& b) {
    b.Delete("a");
    b.Put("b", "2");
    b.RequireValue("a", "1");
    b.RequireAbsent("b");
    if (traits_.ordered) b.RequireEmpty(Range::From("b"));
  });
  EXPECT_TRUE(batch_.applied());
  Atomic([](Batch& b) {
    b.Delete("b");
    b.RequireAbsent("b");
  });
  EXPECT_FALSE(batch_.applied());
  EXPECT_EQ(Get("b"), "2");
}

// Goal: a range is empty exactly if it has no key; deleted and expired keys and keys beside it do
// not count, whatever snapshots keep.
TEST_P(ConditionConformance, RequireEmpty) {
  SKEP_NEEDS(expiry);
  SKEP_NEEDS(atomic);
  SKEP_NEEDS(ordered);
  const auto is_empty = [&](const Range& range) {
    Atomic([&](Batch& b) {
      b.RequireEmpty(range);
      b.Put("~witness", "1");
    });
    subject_.RunOne({.op = Op::kDelete, .key = "~witness"});
    return verdict(0) == Verdict::kDone;
  };
  EXPECT_TRUE(is_empty(Range::All()));
  std::vector<SnapshotRef> snapshots;
  for (int i = 0; i < 200; ++i) Put(std::string("c").append(std::to_string(i)), "1");
  Put("e", "1", subject_.now_ms() + 10);
  if (traits_.snapshots) subject_.Open(snapshots);
  EXPECT_FALSE(is_empty(Range::All()));
  EXPECT_EQ(batch_.outcome(0).value, "c0");
  EXPECT_TRUE(is_empty(Range::Between("", "c0")));
  EXPECT_FALSE(is_empty(Range::Between("", std::string_view("c0\0", 3))));
  EXPECT_TRUE(is_empty(Range::Between("c99x", "e")));
  EXPECT_TRUE(is_empty(Range::Between("e", "c")));
  EXPECT_FALSE(is_empty(Range::Between("e", "f")));
  EXPECT_FALSE(is_empty(Range::From("e")));
  EXPECT_TRUE(is_empty(Range::From("e0")));
  subject_.RunOne({.op = Op::kDeleteRange, .key = "c", .other = "d"});
  EXPECT_TRUE(is_empty(Range::Between("", "e")));
  EXPECT_FALSE(is_empty(Range::All()));
  EXPECT_EQ(batch_.outcome(0).value, "e");
  subject_.Pass(10);
  EXPECT_TRUE(is_empty(Range::All()));
  for (const SnapshotRef snapshot : snapshots) {
    Batch at_snapshot(Batch::Kind::kAtomic);
    at_snapshot.set_snapshot(snapshot);
    at_snapshot.RequireEmpty(Range::From("d"));
    subject_.Run(at_snapshot);
    EXPECT_FALSE(at_snapshot.applied());
    EXPECT_EQ(at_snapshot.outcome(0).value, "e");
    subject_.Close(snapshot);
  }
}

// Goal: a move gives value and deadline to the other key and leaves nothing, for every shape of
// key and value.
TEST_P(ConditionConformance, Moves) {
  SKEP_NEEDS(atomic);
  const uint64_t deadline_ms = traits_.expiry ? subject_.now_ms() + 10 : 0;
  const uint64_t later_ms = traits_.expiry ? deadline_ms + 5 : 0;
  const std::string huge(std::min<size_t>(100'000, traits_.value_bytes_max), 'v');
  for (const std::string& from : {std::string("from"), Long("from"), std::string()}) {
    for (const std::string& to : {std::string("to"), Long("to")}) {
      for (const std::string& value : {std::string("1"), Long("1"), huge}) {
        for (const bool exists : {false, true}) {
          SCOPED_TRACE(testing::Message() << from.size() << " to " << to.size() << ", value "
                                          << value.size() << ", exists " << exists);
          Put(from, value, deadline_ms);
          if (exists) Put(to, Long("old"), later_ms);
          Atomic([&](Batch& b) { b.Move(from, to, Request::kKeepExisting); });
          EXPECT_EQ(verdict(0), exists ? Verdict::kExists : Verdict::kDone);
          if (exists) {
            EXPECT_EQ(Get(to), Long("old"));
            EXPECT_EQ(Get(from), value);
            Atomic([&](Batch& b) { b.Move(from, to); });
            EXPECT_EQ(verdict(0), Verdict::kDone);
          }
          EXPECT_EQ(Get(from), std::nullopt);
          EXPECT_EQ(Get(to), value);
          EXPECT_EQ(DeadlineOf(to), deadline_ms);
          EXPECT_EQ(items(), 1u);
          subject_.RunOne({.op = Op::kDelete, .key = to});
        }
      }
    }
  }
  subject_.ExpectNoOldVersions();
}

// Goal: moves of absent keys, onto the key itself, over expired keys; in a row within a batch; and
// the deadline goes with the value.
TEST_P(ConditionConformance, MovesAtTheEdges) {
  SKEP_NEEDS(expiry);
  SKEP_NEEDS(atomic);
  Atomic([](Batch& b) { b.Move("a", "b"); });
  EXPECT_EQ(verdict(0), Verdict::kAbsent);
  EXPECT_TRUE(batch_.applied());
  Put("a", "1", subject_.now_ms() + 10);
  Put("b", "2", subject_.now_ms() + 5);
  Atomic([](Batch& b) {
    b.Move("a", "a");
    b.Move("a", "a", Request::kKeepExisting);
  });
  EXPECT_EQ(verdict(0), Verdict::kDone);
  EXPECT_EQ(batch_.outcome(0).version, 0u);
  EXPECT_EQ(verdict(1), Verdict::kExists);
  EXPECT_EQ(Get("a"), "1");
  subject_.Pass(5);
  Atomic([](Batch& b) {
    b.Move("b", "c");                          // "b" has expired
    b.Move("a", "b", Request::kKeepExisting);  // over a key that has expired
    b.Move("b", "c");
    b.Put("b", "3");
    b.Move("c", "d");
    b.Get("d");
  });
  EXPECT_EQ(verdict(0), Verdict::kAbsent);
  EXPECT_EQ(verdict(1), Verdict::kDone);
  EXPECT_EQ(batch_.outcome(5).value, "1");
  EXPECT_EQ(Get("b"), "3");
  EXPECT_EQ(Get("c"), std::nullopt);
  subject_.Pass(5);
  EXPECT_EQ(Get("d"), std::nullopt);
  EXPECT_EQ(Get("b"), "3");
  subject_.MaintainAll();
  EXPECT_EQ(items(), 1u);
  const std::string too_long(traits_.key_bytes_max + 1, 'k');
  for (const auto& [from, to] : {std::pair("b", std::string_view(too_long)),
                                 std::pair(too_long.c_str(), std::string_view("b"))}) {
    Atomic([&, from = std::string_view(from), to = to](Batch& b) { b.Move(from, to); });
    EXPECT_EQ(batch_.outcome(0).status.code(), Code::kTooLarge);
  }
}

// Goal: each part is all or nothing by itself, judged against what the parts before have left.
TEST_P(ConditionConformance, EachPartIsAllOrNothing) {
  SKEP_NEEDS(atomic);
  const std::string too_long(traits_.key_bytes_max + 1, 'k');
  Atomic([&](Batch& b) {
    b.RequireAbsent("a");  // 0
    b.Put("a", "1");
    b.BeginPart();
    b.RequireValue("a", "1");  // 2
    b.Put("b", "2");
    b.BeginPart();
    b.Put("a", "wrong");  // 4
    b.RequireAbsent("b");
    b.BeginPart();
    b.Put("c", "wrong");  // 6
    b.Delete("a");
    b.Get(too_long);
    b.BeginPart();
    b.BeginPart();
    b.Get("a");  // 9
    b.Get("b");
    b.Get("c");
    b.Move("a", "d");
  });
  EXPECT_TRUE(batch_.applied());
  for (const uint32_t slot : {0u, 1u, 2u, 3u, 9u, 10u, 12u}) {
    EXPECT_EQ(verdict(slot), Verdict::kDone) << slot;
  }
  EXPECT_EQ(verdict(4), Verdict::kAborted);
  EXPECT_EQ(verdict(5), Verdict::kExists);
  ExpectAborted(6, 7);
  EXPECT_EQ(batch_.outcome(8).status.code(), Code::kTooLarge);
  EXPECT_EQ(batch_.outcome(9).value, "1");
  EXPECT_EQ(batch_.outcome(10).value, "2");
  EXPECT_EQ(verdict(11), Verdict::kAbsent);
  EXPECT_EQ(Get("d"), "1");
  EXPECT_EQ(items(), 2u);
}

// Goal: if the requests before the first part fail, no part is applied, whatever they have written.
TEST_P(ConditionConformance, TheFirstPartGuardsAll) {
  SKEP_NEEDS(atomic);
  Atomic([](Batch& b) {
    b.Put("a", "1");
    b.RequirePresent("a");
    b.BeginPart();
    b.Put("b", "1");
    b.BeginPart();
    b.RequirePresent("a");
  });
  EXPECT_FALSE(batch_.applied());
  EXPECT_EQ(verdict(1), Verdict::kAbsent);
  ExpectAborted(0, 0);
  ExpectAborted(2, 3);
  EXPECT_EQ(items(), 0u);
  // A first part without requests guards nothing.
  Atomic([](Batch& b) {
    b.BeginPart();
    b.RequirePresent("a");
    b.Put("c", "1");
    b.BeginPart();
    b.Put("b", "1");
  });
  EXPECT_TRUE(batch_.applied());
  EXPECT_EQ(Get("c"), std::nullopt);
  EXPECT_EQ(Get("b"), "1");
}

// Goal: a part that has written before it fails leaves nothing: no key, no version, no byte.
// Method: puts, deletes, moves, range deletes and new deadlines, of values in every place, before a
// function that fails; with and without a snapshot, and with a part that is applied beside it.
TEST_P(ConditionConformance, APartIsUndone) {
  SKEP_NEEDS(atomic);
  SKEP_NEEDS(functions);
  const std::string huge(1 << 20, 'h');
  for (int i = 0; i < 40; ++i) {
    Put("key" + std::to_string(i), i % 2 == 0 ? "1" : Long("1"),
        i % 3 == 0 ? subject_.now_ms() + 1000 : 0);
  }
  const auto run = [&](bool fails) {
    Atomic([&](Batch& b) {
      b.BeginPart();
      b.Put("key1", huge);
      b.Put("new", huge);
      b.Put(b.scratch().Copy(Long("new")), "1");
      b.Delete("key2");
      b.Insert("key2", huge);
      b.Delete("key3");
      b.Move("key4", "key5");
      b.Move("key5", "moved");
      b.Expire("key6", subject_.now_ms() + 500);
      b.Expire("key7", 1);
      if (traits_.ordered) b.DeleteRange(Range::Between("key1", "key2"));
      if (traits_.ordered) b.ExpireRange(Range::From("key3"), subject_.now_ms() + 700);
      b.Apply("key8", functions::kAppend, "more");
      b.DeleteAll();
      b.Put("key9", huge);
      b.Apply("key9", ReverseFunction(), fails ? "fail" : "keep");
      b.BeginPart();
      b.Apply("counter", functions::kAddDecimal, "1");
    });
  };
  for (const bool pinned : {false, true}) {
    std::vector<SnapshotRef> snapshots;
    if (pinned && traits_.snapshots) subject_.Open(snapshots);
    run(true);
    subject_.MaintainAll();
    const EngineStatistics before = engine_.Statistics();
    for (int i = 0; i < 20; ++i) run(true);
    subject_.MaintainAll();
    const EngineStatistics after = engine_.Statistics();
    EXPECT_EQ(after.items, 41u);
    EXPECT_EQ(after.items, before.items);
    EXPECT_LE(after.bytes, before.bytes + huge.size());
    if (snapshots.empty()) {
      EXPECT_EQ(after.old_versions, 0u);
    }
    for (const SnapshotRef snapshot : snapshots) subject_.Close(snapshot);
  }
  EXPECT_EQ(Get("counter"), "42");
  run(false);
  EXPECT_EQ(items(), 2u);
  subject_.ExpectNoOldVersions();
}

// Goal: deadlines that an undone part has set or removed do not count, those from before do.
TEST_P(ConditionConformance, AnUndonePartLeavesDeadlinesAsTheyWere) {
  SKEP_NEEDS(expiry);
  SKEP_NEEDS(atomic);
  const uint64_t now_ms = subject_.now_ms();
  for (const std::string_view key : {"kept", "persisted", "moved"}) Put(key, "1", now_ms + 10);
  Put("plain", "1");
  Atomic([&](Batch& b) {
    b.BeginPart();
    b.Expire("plain", now_ms + 5);
    b.Expire("kept", now_ms + 5);
    b.Persist("persisted");
    b.Move("moved", "elsewhere");
    b.Add({.op = Op::kPut, .key = "new", .value = "1", .other = {}, .deadline_ms = now_ms + 5});
    b.Apply("plain", ReverseFunction(), "fail");
  });
  subject_.set_now_ms(now_ms + 9);
  subject_.MaintainAll();
  subject_.ExpectReclaimed();
  EXPECT_EQ(items(), 4u);
  subject_.set_now_ms(now_ms + 10);
  EXPECT_EQ(Get("persisted"), std::nullopt);
  subject_.MaintainAll();
  subject_.ExpectReclaimed();
  EXPECT_EQ(items(), 1u);
  EXPECT_EQ(Get("plain"), "1");
}

// Goal: many parts, some applied and some not, see what the parts before have left.
// Method: three rounds over 100 keys; every third part wants its key absent, so it is applied only
// in the first round.
TEST_P(ConditionConformance, ManyParts) {
  SKEP_NEEDS(atomic);
  constexpr int kKeys = 100;
  Atomic([](Batch& b) {
    for (int i = 0; i < 3 * kKeys; ++i) {
      b.BeginPart();
      const std::string_view key = b.scratch().Copy("key" + std::to_string(i % kKeys));
      b.Put(key, b.scratch().Copy(std::to_string(i)));
      if (i % 3 == 0) b.RequireAbsent(key);
    }
  });
  EXPECT_TRUE(batch_.applied());
  EXPECT_EQ(items(), static_cast<uint64_t>(kKeys));
  EXPECT_EQ(Get("key0"), "200");
  EXPECT_EQ(Get("key1"), "101");  // part 201 is a third one
}

INSTANTIATE_TEST_SUITE_P(Engines, ConditionConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep
