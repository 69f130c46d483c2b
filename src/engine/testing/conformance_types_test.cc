// Tests that every engine must pass: types of values, and operands that earlier slots return. The
// random batches of conformance_test.cc have types, too; a test here spells out one rule.
//
// Every batch is also checked against the oracle, unless it chains operands, which the oracle does
// not know.
#include "engine/partial_batch.h"
#include "engine/request_chain.h"
#include "engine/testing/conformance.h"
#include "engine/testing/random_batch.h"

namespace skep {
namespace {

constexpr uint8_t kType = 200;  // of TypedReverseFunction()

class TypeConformance : public EngineConformance {
 protected:
  Outcome PutTyped(std::string_view key, std::string_view value, uint64_t deadline_ms = 0) {
    return subject_.RunOne({.op = Op::kPut,
                            .type = kType,
                            .key = key,
                            .value = value,
                            .other = {},
                            .deadline_ms = deadline_ms});
  }
  Outcome Do(Request request) { return subject_.RunOne(request); }
  Code CodeOf(Request request) { return subject_.RunOne(request).status.code(); }
  // The values and types of a scan of everything, by effects.
  std::vector<std::pair<std::string, uint8_t>> Scanned(const ScanOptions& options) {
    Batch batch;
    batch.set_notes_effects(true);
    batch.Scan(Range::All(), options);
    subject_.Run(batch);
    std::vector<std::pair<std::string, uint8_t>> found;
    auto effect = batch.effects().begin();
    for (const Item& item : batch.items(0)) {
      const bool has = effect != batch.effects().end() && effect->key == item.key;
      found.emplace_back(item.value, has ? effect->type : kPlainType);
      if (has) ++effect;
    }
    return found;
  }
};

// Goal: an engine without types refuses whatever names one.
TEST_P(TypeConformance, EnginesWithoutTypesRefuse) {
  if (traits_.types) GTEST_SKIP() << traits_.name << " has types";
  EXPECT_EQ(PutTyped("key", Long("value")).status.code(), Code::kNotSupported);
  EXPECT_EQ(CodeOf({.op = Op::kGet, .type = kType, .key = Long("key")}), Code::kNotSupported);
  EXPECT_EQ(CodeOf({.op = Op::kApply, .key = Long("key"), .function = TypedReverseFunction()}),
            Code::kNotSupported);
}

// Goal: what lets the bytes of a value be seen asks for its type; all else does not.
TEST_P(TypeConformance, WhoAsksForTheType) {
  SKEP_NEEDS(types);
  for (const std::string& value : {std::string("ab"), Long("ab")}) {
    PutTyped("key", value);
    EXPECT_EQ(CodeOf({.op = Op::kGet, .key = "key"}), Code::kWrongType);
    EXPECT_EQ(CodeOf({.op = Op::kApply, .key = "key", .function = functions::kAppend}),
              Code::kWrongType);
    EXPECT_EQ(CodeOf({.op = Op::kDelete, .flags = Request::kReturnPrevious, .key = "key"}),
              Code::kWrongType);
    EXPECT_EQ(CodeOf({.op = Op::kUpdate, .when = Request::kEquals, .key = "key", .other = value}),
              Code::kWrongType);
    EXPECT_EQ(Do({.op = Op::kGet, .type = kType, .key = "key"}).value, value);
    const Outcome length = Do({.op = Op::kGet, .flags = Request::kNoValue, .key = "key"});
    EXPECT_EQ(length.type, kType);
    EXPECT_EQ(length.integer, static_cast<int64_t>(value.size()));
    const Outcome skipped = Do({.op = Op::kGet, .flags = Request::kIfOfType, .key = "key"});
    EXPECT_EQ(skipped.verdict, Verdict::kDone);
    EXPECT_EQ(skipped.type, kType);
    EXPECT_EQ(skipped.value, "");
    EXPECT_EQ(Do({.op = Op::kDelete, .key = "key"}).verdict, Verdict::kDone);
  }
}

// Goal: deadlines and moves leave a value its type, and a put gives it another one.
TEST_P(TypeConformance, TypesStay) {
  SKEP_NEEDS(types);
  SKEP_NEEDS(atomic);
  const auto type = [&](std::string_view key) {
    return Do({.op = Op::kGet, .flags = Request::kNoValue, .key = key}).type;
  };
  for (const std::string& value : {std::string(""), std::string("ab"), Long("ab")}) {
    PutTyped("a", value);
    Do({.op = Op::kExpire, .key = "a", .deadline_ms = subject_.now_ms() + 1000});
    EXPECT_EQ(type("a"), kType);
    Batch move(Batch::Kind::kAtomic);
    move.Move("a", "b");
    subject_.Run(move);
    EXPECT_EQ(type("b"), kType);
    EXPECT_EQ(Do({.op = Op::kGet, .type = kType, .key = "b"}).deadline_ms,
              subject_.now_ms() + 1000);
    Do({.op = Op::kExpire, .key = "b"});
    EXPECT_EQ(Do({.op = Op::kGet, .type = kType, .key = "b"}).value, value);
    Put("b", "plain");
    EXPECT_EQ(Get("b"), "plain");
  }
}

// Goal: scans give values of other types only to those who ask, and effects tell the types.
TEST_P(TypeConformance, Scans) {
  SKEP_NEEDS(types);
  Put("a", "plain");
  PutTyped("b", "typed");
  PutTyped("c", Long("typed"), subject_.now_ms() + 1000);
  using Found = std::vector<std::pair<std::string, uint8_t>>;
  EXPECT_EQ(Scanned({}), (Found{{"plain", 0}, {"", kType}, {"", kType}}));
  EXPECT_EQ(Scanned({.any_type = true}),
            (Found{{"plain", 0}, {"typed", kType}, {Long("typed"), kType}}));
  EXPECT_EQ(Scanned({.reverse = true, .keys_only = true}),
            (Found{{"", kType}, {"", kType}, {"", 0}}));
}

// Goal: an operand may be what an earlier slot returns, and an operation on nothing is left out.
TEST_P(TypeConformance, OperandsOfSlots) {
  SKEP_NEEDS(types);
  SKEP_NEEDS(atomic);
  const auto chained = [](std::string_view key, std::string_view head, uint32_t slot,
                          uint8_t flags = 0) {
    return Request{.op = Op::kApply,
                   .flags = static_cast<uint8_t>(flags | Request::kOperandOfSlot),
                   .limit = slot,
                   .key = key,
                   .value = head,
                   .function = functions::kAppend};
  };
  Batch batch(Batch::Kind::kAtomic);
  const auto run = [&] {
    batch.set_now_ms(subject_.now_ms());
    engine_.AwaitRelease(engine_.Execute(batch));
  };
  Put("from", "abc");
  PutTyped("typed", "x");
  PutTyped("second", "xyz");
  batch.Apply("from", ReverseFunction(), "keep");  // returns the value
  batch.Add(chained("to", "head ", 0));
  batch.Apply("none", ReverseFunction(), "keep");  // returns nothing
  batch.Add(chained("typed", "", 2, Request::kUnlessNone));
  run();
  ASSERT_TRUE(batch.applied());
  EXPECT_EQ(batch.outcome(3).verdict, Verdict::kDone);
  Batch look;
  look.Get("to");
  engine_.Execute(look);
  EXPECT_EQ(look.outcome(0).value, "head abc");

  batch.Clear();  // the first slot that returns something is the last that does anything
  batch.Apply("none", ReverseFunction(), "keep");
  const auto unless_some = [&](std::string_view key, uint32_t slot) {
    return ChainedAfter(slot, key, TypedReverseFunction(), "keep");
  };
  batch.Add(unless_some("second", 0));
  batch.Add(unless_some("to", 1));  // it has a value of another type, which is not asked for
  batch.Add(unless_some("third", 2));
  run();
  ASSERT_TRUE(batch.applied());
  EXPECT_EQ(batch.outcome(1).value, "xyz");
  EXPECT_EQ(batch.outcome(1).integer, 1);
  EXPECT_EQ(batch.outcome(3).value, "xyz");
  EXPECT_EQ(batch.outcome(3).integer, 0);

  batch.Clear();  // a slot that is not an earlier one
  batch.Add(chained("to", "", 0));
  run();
  EXPECT_EQ(batch.outcome(0).status.code(), Code::kInvalidArgument);
  EXPECT_FALSE(batch.applied());

  Batch unordered;
  unordered.Apply("from", ReverseFunction(), "keep");
  unordered.Add(chained("to", "", 0));
  engine_.Execute(unordered);
  EXPECT_EQ(unordered.outcome(1).status.code(), Code::kInvalidArgument);
}

// Goal: an operand of a slot is found when a part before it is left out.
// Method: of three parts the second is refused before the batch comes to the engine.
TEST_P(TypeConformance, OperandsOfSlotsInAPartialBatch) {
  SKEP_NEEDS(types);
  SKEP_NEEDS(atomic);
  Put("from", "abc");
  Batch batch(Batch::Kind::kAtomic);
  batch.set_now_ms(subject_.now_ms());
  batch.BeginPart();
  batch.Put("refused", "x");
  batch.BeginPart();
  batch.Apply("from", ReverseFunction(), "keep");  // slot 1
  batch.Add({.op = Op::kApply,
             .flags = Request::kOperandOfSlot,
             .limit = 1,
             .key = "to",
             .function = functions::kAppend});
  engine_.AwaitRelease(ExecutePartly(engine_, batch, [](uint32_t slot) {
    return slot == 0 ? Status(Code::kIo, "refused") : Status();
  }));
  EXPECT_EQ(batch.outcome(0).status.code(), Code::kIo);
  EXPECT_EQ(batch.outcome(2).verdict, Verdict::kDone);
  Batch look;
  look.Get("to");
  engine_.Execute(look);
  EXPECT_EQ(look.outcome(0).value, "abc");
}

// Goal: what is executed of a batch tells its effects, in its own slots.
// Method: the first request is refused before the batch comes to the engine.
TEST_P(TypeConformance, EffectsOfAPartialBatch) {
  SKEP_NEEDS(types);
  PutTyped("typed", "x", subject_.now_ms() + 1000);
  Batch batch;
  batch.set_now_ms(subject_.now_ms());
  batch.set_notes_effects(true);
  batch.Put("refused", "x");
  batch.Apply("from", functions::kAppend, "abc");
  batch.Scan(Range::From("typed"), {});
  engine_.AwaitRelease(ExecutePartly(engine_, batch, [](uint32_t slot) {
    return slot == 0 ? Status(Code::kIo, "refused") : Status();
  }));
  ASSERT_EQ(batch.effects().size(), 2u);
  EXPECT_EQ(batch.effects()[0].slot, 1u);
  EXPECT_EQ(batch.effects()[0].value, "abc");
  EXPECT_EQ(batch.effects()[1].slot, 2u);
  EXPECT_EQ(batch.effects()[1].key, "typed");
  EXPECT_EQ(batch.effects()[1].type, kType);
  EXPECT_EQ(batch.effects()[1].deadline_ms, subject_.now_ms() + 1000);
}

INSTANTIATE_TEST_SUITE_P(Engines, TypeConformance, testing::ValuesIn(EnginesUnderTest()),
                         EngineTestName);

}  // namespace
}  // namespace skep
