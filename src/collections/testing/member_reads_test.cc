// Reads of members of large collections, found where they lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collections/member_calls.h"
#include "collections/testing/collection_world_test.h"
#include "collections/testing/half_published_test.h"

namespace skep::collections {
namespace {

constexpr int kFields = 2000;

std::string Field(int i) { return "field:" + std::to_string(10'000 + i); }

std::string ValueText(std::string_view value) { return TextsOperand({std::string(value)}); }

class MemberReadsTest : public testing::TestWithParam<std::string> {
 protected:
  MemberReadsTest() : world_(256, GetParam()) {}

  Engine& engine() { return world_.engine(); }
  // Makes a large hash of which hints tell the segments; every field has the value.
  void MakeHash(const std::string& key, const std::string& value) {
    Words words;
    for (int i = 0; i < kFields; ++i) {
      words.push_back(Field(i));
      words.push_back(value);
    }
    Call(engine(), key, "hash-set", TextsOperand(words));
    for (int round = 0; round < 3; ++round) Get(key, 0, 1000);
  }
  // Reads fields by a call each, in one batch; their values, as texts.
  std::vector<std::string> Get(const std::string& key, int first, int count) {
    Batch batch;
    for (int i = 0; i < count; ++i) {
      batch.Apply(key, Named("hash-get"), batch.scratch().Copy(TextsOperand({Field(first + i)})));
    }
    engine().AwaitRelease(engine().Execute(batch));
    std::vector<std::string> values;
    for (int i = 0; i < count; ++i) {
      values.emplace_back(batch.outcome(static_cast<uint32_t>(i)).value);
    }
    return values;
  }
  // One call that reads the first and the last field, which are in different segments.
  std::string GetEnds(const std::string& key) {
    return Call(engine(), key, "hash-get", TextsOperand({Field(0), Field(kFields - 1)})).value;
  }
  void SetEnds(const std::string& key, const std::string& value) {
    Call(engine(), key, "hash-set", TextsOperand({Field(0), value, Field(kFields - 1), value}));
  }
  void Move(const std::string& key, const std::string& other) {
    Batch batch(Batch::Kind::kAtomic);
    batch.Move(key, other);
    engine().AwaitRelease(engine().Execute(batch));
  }
  // Something that happens to the hash "hash" while a call reads both its ends, and what the call
  // may answer.
  struct Case {
    const char* name;
    std::function<void()> event;
    std::vector<std::string> allowed;
  };
  std::vector<Case> Cases();
  void Delete(const std::string& key) {
    Batch batch;
    batch.Delete(key);
    engine().AwaitRelease(engine().Execute(batch));
  }

  World world_;
};

std::vector<MemberReadsTest::Case> MemberReadsTest::Cases() {
  const std::string none(1, '\0');
  const std::string old_ends = ValueText("old") + ValueText("old");
  const std::string new_ends = ValueText("new") + ValueText("new");
  const std::string absent = none + none;
  return {
      {"write", [&] { SetEnds("hash", "new"); }, {old_ends, new_ends}},
      {"delete", [&] { Delete("hash"); }, {old_ends, absent}},
      {"delete and sweep",
       [&] {
         Delete("hash");
         world_.MaintainAll();
       },
       {old_ends, absent}},
      {"rename, then write there",
       [&] {
         Move("hash", "other");
         SetEnds("other", "new");
       },
       {old_ends, absent}},
      {"rename, write there, rename back",
       [&] {
         Move("hash", "other");
         SetEnds("other", "new");
         Move("other", "hash");
       },
       {old_ends, new_ends}},
      {"replace by one value",
       [&] {
         Delete("hash");
         SetEnds("hash", "new");
       },
       {old_ends, new_ends}},
      {"replace by another large one",
       [&] {
         Delete("hash");
         MakeHash("hash", "new");
       },
       {old_ends, new_ends}},
      {"rename, replace by another large one, write the renamed one",
       [&] {
         Move("hash", "other");
         MakeHash("hash", "third");
         SetEnds("other", "new");
       },
       {old_ends, ValueText("third") + ValueText("third")}},
      {"divide segments",
       [&] {
         Words words;
         for (int i = 0; i < 300; ++i) {
           words.push_back(Field(kFields - 2) + "+" + std::to_string(i));
           words.push_back("more");
         }
         Call(engine(), "hash", "hash-set", TextsOperand(words));
       },
       {old_ends}},
      {"join segments",
       [&] {
         Words gone;
         for (int i = 1; i < kFields - 1; ++i) gone.push_back(Field(i));
         Call(engine(), "hash", "hash-delete", TextsOperand(gone));
       },
       {old_ends}},
  };
}

// Goal: calls that read members are two batches, whatever their number: one for the newest record,
// one of a request for each member and one for the record. No segment is brought whole or scanned.
// Method: what is asked of the wrapped engine is counted, for 1, 16 and 200 calls of one field, and
// for one call of several.
TEST_P(MemberReadsTest, AskForEachMemberOnce) {
  MakeHash("hash", "old");
  ReadCounter& reads = world_.reads();
  const auto counted = [&](const std::function<void()>& body) {
    const uint64_t batches = reads.batches;
    const uint64_t gets = reads.gets;
    const uint64_t applies = reads.applies;
    const uint64_t scans = reads.scans;
    body();
    EXPECT_EQ(reads.batches - batches, 2u);
    EXPECT_EQ(reads.gets - gets, 2u);
    EXPECT_EQ(reads.scans - scans, 0u);
    return reads.applies - applies;
  };
  for (const int calls : {1, 16, 200}) {
    const uint64_t finds = counted([&] {
      for (const std::string& value : Get("hash", 7, calls)) EXPECT_EQ(value, ValueText("old"));
    });
    EXPECT_EQ(finds, static_cast<uint64_t>(calls));
  }
  const uint64_t finds = counted([&] {
    const std::string several = TextsOperand({Field(5), "none", Field(900), Field(5)});
    EXPECT_EQ(Call(engine(), "hash", "hash-get", several).value,
              ValueText("old") + std::string(1, '\0') + ValueText("old") + ValueText("old"));
  });
  EXPECT_EQ(finds, 3u);
}

// Goal: whatever happens to the key between the look at its newest record and the look at its
// members, a call answers a state that the key had during the call.
// Method: each event happens right before one of the batches that the call makes; a call of two
// fields must see both as one write left them, and none of what the key never had.
TEST_P(MemberReadsTest, AnswerOneStateWhateverHappens) {
  for (const Case& of : Cases()) {
    for (int before = 0; before < 4; ++before) {
      SCOPED_TRACE(testing::Message() << of.name << " before batch " << before);
      for (const char* const key : {"hash", "other"}) Delete(key);
      world_.MaintainAll();
      MakeHash("hash", "old");
      bool has_happened = false;
      world_.reads().Interrupt(before, [&] {
        has_happened = true;
        of.event();
      });
      const std::string seen = GetEnds("hash");
      EXPECT_TRUE(std::ranges::find(of.allowed, seen) != of.allowed.end()) << seen;
      EXPECT_TRUE(has_happened || before > 1);
      world_.reads().Interrupt(0, nullptr);
    }
  }
  EXPECT_EQ(engine().Verify(), nullptr);
}

// Goal: a call sees every write that was done before it, also one that is not released.
// Method: a batch writes fields and is not awaited; the next batch reads them.
TEST_P(MemberReadsTest, SeeWhatIsNotReleased) {
  MakeHash("hash", "old");
  for (int i = 0; i < 50; ++i) {
    const std::string value = std::to_string(i);
    Batch write;
    write.Apply("hash", Named("hash-set"),
                write.scratch().Copy(TextsOperand({Field(3 * i), value, Field(3 * i + 1), value})));
    engine().Execute(write);
    EXPECT_EQ(Get("hash", 3 * i, 2), (std::vector{ValueText(value), ValueText(value)}));
  }
}

// Goal: a call of more members than are looked up one by one is answered as well.
// Method: one call of more than kReadsMax fields, and calls that are as many together.
TEST_P(MemberReadsTest, AnswerManyMembers) {
  MakeHash("hash", "old");
  Words words;
  std::string expected;
  for (size_t i = 0; i < MemberCalls::kReadsMax + 10; ++i) {
    words.push_back(Field(static_cast<int>(i)));
    expected += ValueText("old");
  }
  EXPECT_EQ(Call(engine(), "hash", "hash-get", TextsOperand(words)).value, expected);
  words.resize(MemberCalls::kReadsMax / 4);
  const std::string quarter = TextsOperand(words);
  Batch batch;
  for (int i = 0; i < 9; ++i) batch.Apply("hash", Named("hash-get"), quarter);
  engine().AwaitRelease(engine().Execute(batch));
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    EXPECT_EQ(batch.outcome(slot).value, expected.substr(0, batch.outcome(slot).value.size()));
    EXPECT_EQ(batch.outcome(slot).value.size(), words.size() * ValueText("old").size());
  }
}

// Goal: the deadline that a reading call tells is that of the state of which its value is.
// Method: the hash gets a deadline and new values, in either order, right before one of the batches
// that a call makes. The call may answer the old values without the deadline, both as they are
// afterwards, or what was there in between.
TEST_P(MemberReadsTest, TellTheDeadlineOfTheValue) {
  constexpr uint64_t kDeadlineMs = 5000;
  const auto expire = [&](uint64_t deadline_ms) {
    Batch batch;
    batch.Expire("hash", deadline_ms);
    engine().AwaitRelease(engine().Execute(batch));
  };
  using Seen = std::pair<bool, bool>;  // new values, the deadline
  const auto get = [](Batch& batch) {
    batch.Apply("hash", Named("hash-get"),
                batch.scratch().Copy(TextsOperand({Field(0), Field(kFields - 1)})));
  };
  const std::function<void(Batch&)> reads[] = {
      get,
      [&](Batch& batch) {
        get(batch);
        get(batch);
      },
      [](Batch& batch) { batch.Apply("hash", Named("hash-all"), {}); },
      [](Batch& batch) { batch.Add({.op = Op::kGet, .type = types::kHash, .key = "hash"}); }};
  for (size_t read = 0; read < std::size(reads); ++read) {
    for (const bool expires_first : {true, false}) {
      for (int before = 0; before < 5; ++before) {
        SCOPED_TRACE(testing::Message() << "read " << read << " expires first " << expires_first
                                        << " before batch " << before);
        Delete("hash");
        world_.MaintainAll();
        MakeHash("hash", "old");
        world_.reads().Interrupt(before, [&] {
          if (expires_first) expire(kDeadlineMs);
          SetEnds("hash", "new");
          if (!expires_first) expire(kDeadlineMs);
        });
        Batch batch;
        reads[read](batch);
        engine().AwaitRelease(engine().Execute(batch));
        world_.reads().Interrupt(0, nullptr);
        const Outcome& out = batch.outcome(0);
        ASSERT_EQ(out.verdict, Verdict::kDone);
        const Seen seen = {out.value.find("new") != std::string_view::npos, out.deadline_ms != 0};
        const Seen between = {!expires_first, expires_first};
        EXPECT_TRUE(seen == Seen(false, false) || seen == Seen(true, true) || seen == between);
      }
    }
  }
}

// Goal: the deadline that a call of a batch tells is that of the instant of the batch.
// Method: the hash gets a deadline right before one of the batches that a write makes, or an atomic
// batch that writes another key; unless that was written by then, the deadline is told.
TEST_P(MemberReadsTest, TellTheDeadlineOfTheWrite) {
  constexpr uint64_t kDeadlineMs = 5000;
  for (const char* const function : {"hash-get", "hash-set", "hash-delete"}) {
    for (const Batch::Kind kind : {Batch::Kind::kUnordered, Batch::Kind::kAtomic}) {
      const std::string_view name = function;
      if (name == "hash-get" && kind == Batch::Kind::kUnordered) continue;
      for (int before = 0; before < 8; ++before) {
        SCOPED_TRACE(testing::Message() << name << " before batch " << before);
        for (const char* const key : {"hash", "other"}) Delete(key);
        world_.MaintainAll();
        MakeHash("hash", "old");
        const std::string written = name == "hash-delete" ? Field(5) : Field(5) + "+";
        const auto is_written = [&] {
          Batch look;
          if (kind == Batch::Kind::kAtomic) {
            look.Get("other");
          } else {
            look.Apply("hash", Named("hash-length"), {});
          }
          engine().Execute(look);
          return look.outcome(0).present && look.outcome(0).integer != kFields;
        };
        bool must_tell = false;
        world_.reads().Interrupt(before, [&] {
          must_tell = !is_written();
          Batch expire;
          expire.Expire("hash", kDeadlineMs);
          engine().AwaitRelease(engine().Execute(expire));
        });
        const std::string operand =
            name == "hash-set" ? TextsOperand({written, "new"}) : TextsOperand({written});
        Batch batch(kind);
        batch.Apply("hash", Named(name), operand);
        if (kind == Batch::Kind::kAtomic) batch.Put("other", "value");
        engine().AwaitRelease(engine().Execute(batch));
        world_.reads().Interrupt(0, nullptr);
        ASSERT_EQ(batch.outcome(0).verdict, Verdict::kDone);
        if (must_tell) {
          EXPECT_EQ(batch.outcome(0).deadline_ms, kDeadlineMs);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, MemberReadsTest, testing::Values("btree", "model"),
                         [](const auto& tested) { return tested.param; });

// Two fields of a large hash, "a" and "z", that each write gives the same value.
HalfPublished::Scene Hash(std::function<std::string(Engine&)> read) {
  const auto set = [](Engine& engine, const Words& words) {
    Batch batch;
    batch.Apply("h", Named("hash-set"), batch.scratch().Copy(TextsOperand(words)));
    engine.Execute(batch);
  };
  return {.fill =
              [](Engine& engine) {
                Words words;
                for (int i = 0; i < 6000; ++i) {
                  words.push_back("m" + std::to_string(10'000 + i));
                  words.push_back(std::string(20, 'x'));
                }
                Call(engine, "h", "hash-set", TextsOperand(words));
                Call(engine, "h", "hash-set", TextsOperand({"a", "0", "z", "0"}));
                for (int i = 0; i < 2000; ++i) {
                  Call(engine, "h", "hash-get", TextsOperand({"a", "z"}));
                }
              },
          .write =
              [set](Engine& engine, int number) {
                const std::string value = std::to_string(number);
                set(engine, {"a", value, "z", value});
              },
          .write_near =
              [set](Engine& engine, int number) {
                const std::string field =
                    (number % 3 == 0 ? "z+" : "a+") + std::to_string(number % 7);
                set(engine, {field, "q" + std::to_string(number)});
              },
          .read = std::move(read)};
}

// Goal: a call that reads several members never sees one of them before a write of both and the
// other behind it.
TEST(HalfPublishedWrites, AreNotSeenByOneCall) {
  HalfPublished(Hash([](Engine& engine) {
    return Call(engine, "h", "hash-get", TextsOperand({"a", "z"})).value;
  })).Run();
}

// Goal: the same of a call in an atomic batch that writes another key.
TEST(HalfPublishedWrites, AreNotSeenByAtomicBatches) {
  HalfPublished(Hash([](Engine& engine) {
    Batch batch(Batch::Kind::kAtomic);
    batch.Apply("h", Named("hash-get"), batch.scratch().Copy(TextsOperand({"a", "z"})));
    batch.Put("third", "value");
    engine.Execute(batch);
    return std::string(batch.outcome(0).value);
  })).Run();
}

}  // namespace
}  // namespace skep::collections
