#include "tests/linearizability/checker.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/linearizability/brute_force.h"
#include "tests/linearizability/planted_history.h"
#include "tests/linearizability/scheduled_history.h"

namespace skep::linearizability {
namespace {

// Goal: every kind of violation that a store with a bug would show is found, and the nearest
// correct history passes.
// Method: by hand, two to five operations each.

TEST(Planted, AnEmptyHistoryIsRight) { ExpectLinearizable({}); }

TEST(Planted, StaleRead) {
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 4, {Put("a", "2")}), Op(5, 6, {Got("a", "1")})},
                  2);
  ExpectLinearizable(
      {Op(1, 2, {Put("a", "1")}), Op(3, 6, {Put("a", "2")}), Op(4, 5, {Got("a", "1")})});
}

TEST(Planted, TouchingTimesOverlap) {
  ExpectLinearizable({Op(1, 2, {Put("a", "1")}), Op(2, 3, {Got("a", std::nullopt)})});
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 4, {Got("a", std::nullopt)})}, 1);
}

TEST(Planted, LostUpdate) {
  ExpectViolation({Op(1, 4, {Added("n", "1", 1)}), Op(2, 3, {Added("n", "1", 1)})}, 0);
  ExpectLinearizable({Op(1, 4, {Added("n", "1", 2)}), Op(2, 3, {Added("n", "1", 1)})});
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 6, {Swapped("a", "1", "2", true)}),
                   Op(4, 5, {Swapped("a", "1", "3", true)})},
                  1);
  ExpectViolation({Op(1, 3, {Inserted("a", "1", true)}), Op(2, 4, {Inserted("a", "2", true)})}, 1);
}

TEST(Planted, PhantomValue) {
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 4, {Got("a", "7")})}, 1);
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 4, {Scanned({{"a", "1"}, {"z", "9"}})})}, 1);
}

TEST(Planted, HalfABatch) {
  const Operation batch = Op(1, 10, {Put("a", "1"), Put("b", "1")});
  ExpectViolation({batch, Op(2, 3, {Got("a", "1")}), Op(4, 5, {Got("b", std::nullopt)})}, 2);
  ExpectLinearizable({batch, Op(2, 5, {Got("a", "1")}), Op(3, 4, {Got("b", std::nullopt)})});
  ExpectViolation({batch, Op(2, 3, {Got("a", std::nullopt), Got("b", "1")})}, 1);
}

TEST(Planted, TornScan) {
  const Operation batch = Op(1, 10, {Put("a", "1"), Put("b", "1")});
  ExpectViolation({batch, Op(2, 3, {Scanned({{"b", "1"}})})}, 1);
  ExpectLinearizable({batch, Op(2, 3, {Scanned({{"a", "1"}, {"b", "1"}})})});
  ExpectLinearizable({batch, Op(2, 3, {Scanned({})})});
}

TEST(Planted, TwoScansSeeTwoWritesInOppositeOrders) {
  const Operation first = Op(1, 10, {Put("a", "1")});
  const Operation second = Op(2, 11, {Put("b", "2")});
  ExpectViolation(
      {first, second, Op(3, 9, {Scanned({{"a", "1"}})}), Op(4, 8, {Scanned({{"b", "2"}})})}, 2);
  ExpectLinearizable({first, second, Op(3, 9, {Scanned({{"a", "1"}})}),
                      Op(4, 8, {Scanned({{"a", "1"}, {"b", "2"}})})});
}

TEST(Planted, AScanInTheWrongOrderOrPastItsLimit) {
  const Operation batch = Op(1, 2, {Put("a", "1"), Put("b", "2")});
  Step scan = Scanned({{"b", "2"}, {"a", "1"}});
  ExpectViolation({batch, Op(3, 4, {scan})}, 1);
  scan.reverse = true;
  ExpectLinearizable({batch, Op(3, 4, {scan})});
  scan.limit = 1;
  ExpectViolation({batch, Op(3, 4, {scan})}, 1);
  scan.items = {{"b", "2"}};
  ExpectLinearizable({batch, Op(3, 4, {scan})});
}

TEST(Planted, CountThatDisagrees) {
  const Operation batch = Op(1, 5, {Put("a", "1"), Put("b", "1")});
  ExpectViolation({batch, Op(2, 3, {Counted(1)})}, 1);
  ExpectLinearizable({batch, Op(2, 3, {Counted(2)})});
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 4, {Counted(0)})}, 1);
}

TEST(Planted, DeleteRangeHalfSeen) {
  const Operation batch = Op(1, 2, {Put("a", "1"), Put("b", "1")});
  const Operation deleted = Op(3, 10, {RangeDeleted(2)});
  ExpectViolation({batch, deleted, Op(4, 5, {Scanned({{"b", "1"}})})}, 2);
  ExpectViolation({batch, Op(3, 4, {RangeDeleted(1)})}, 1);
  ExpectLinearizable({batch, deleted, Op(4, 5, {Scanned({})})});
}

TEST(Planted, SnapshotThatMoves) {
  const Operation put = Op(1, 2, {Put("a", "1")});
  const Operation again = Op(5, 6, {Put("a", "2")});
  ExpectViolation({put, Open(3, 4), again, AtSnapshot(7, 8, Got("a", "2"))}, 3);
  ExpectLinearizable({put, Open(3, 4), again, AtSnapshot(7, 8, Got("a", "1"))});
  ExpectViolation({put, Open(3, 9), again, AtSnapshot(10, 11, Got("a", "1")),
                   AtSnapshot(12, 13, Scanned({{"a", "2"}}))},
                  4);
}

TEST(Planted, SnapshotOfAStateThatNeverExisted) {
  const Operation first = Op(1, 2, {Put("a", "1")});
  const Operation second = Op(4, 5, {Put("b", "2")});
  ExpectViolation({first, second, Open(3, 6), AtSnapshot(7, 8, Scanned({{"b", "2"}}))}, 3);
  ExpectLinearizable({first, second, Open(3, 6), AtSnapshot(7, 8, Scanned({{"a", "1"}}))});
}

TEST(Planted, UnacknowledgedWriteSeenAndThenAbsent) {
  const Operation lost = Lost(1, {Put("a", "1")});
  ExpectViolation({lost, Op(2, 3, {Got("a", "1")}), Op(4, 5, {Got("a", std::nullopt)})}, 2);
  ExpectLinearizable({lost, Op(2, 3, {Got("a", std::nullopt)}), Op(4, 5, {Got("a", "1")})});
  ExpectLinearizable({lost, Op(2, 3, {Got("a", std::nullopt)})});
}

TEST(Planted, HalfALostBatch) {
  const Operation lost = Lost(1, {Put("a", "1"), Put("b", "1")});
  ExpectViolation({lost, Op(2, 3, {Got("b", "1")}), Op(4, 5, {Got("a", std::nullopt)})}, 2);
}

TEST(Planted, ALostWriteActsOnce) {
  const Operation lost = Lost(1, {Added("n", "1", 0)});
  ExpectLinearizable({lost, Op(2, 3, {Got("n", "1")}), Op(4, 5, {Got("n", "1")})});
  ExpectViolation({lost, Op(2, 3, {Got("n", "1")}), Op(4, 5, {Got("n", "2")})}, 2);
}

TEST(Planted, RefusalWithoutReason) {
  const Operation put = Op(1, 2, {Put("a", "1")});
  ExpectLinearizable({put, Refused(3, 4, 0, {RequireValue("a", "2"), Put("a", "3")})});
  ExpectViolation({put, Refused(3, 4, 0, {RequireValue("a", "1"), Put("a", "3")})}, 1);
  ExpectViolation({put, Op(3, 4, {RequireValue("a", "2"), Put("a", "3")})}, 1);
  ExpectViolation(
      {put, Refused(3, 4, 0, {RequireValue("a", "2"), Put("a", "3")}), Op(5, 6, {Got("a", "3")})},
      2);
  // The culprit must be a step that can stop the batch.
  const CheckResult result =
      CheckLinearizable({put, Refused(3, 4, 0, {RequireValue("a", "1"), RequireValue("a", "2")})});
  EXPECT_EQ(result.answer, Answer::kNotLinearizable);
}

TEST(Planted, ABatchSeesItsEarlierSlots) {
  ExpectLinearizable({Op(1, 2, {Put("a", "1"), Got("a", "1"), Counted(1)})});
  ExpectViolation({Op(1, 2, {Put("a", "1"), Got("a", std::nullopt)})}, 0);
}

TEST(Checker, AnInitialStateIsWhereItStarts) {
  const History history = {Op(1, 2, {Scanned({{"a", "1"}})})};
  EXPECT_FALSE(CheckLinearizable(history).ok());
  EXPECT_TRUE(CheckLinearizable(history, {.initial = {{"a", "1"}}}).ok());
}

// Goal: a spent budget is not a verdict.
TEST(Checker, SaysWhenItCouldNotDecide) {
  const History history = ScheduledHistory(1, {});
  EXPECT_EQ(CheckLinearizable(history, {.steps_max = 5}).answer, Answer::kUndecided);
}

// Goal: the history is cut where nothing is in flight, and all possible states there are carried
// over.
// Method: two overlapping writes leave two possible states; either read after the cut must pass.
TEST(Checker, CarriesEveryPossibleStateOverACut) {
  for (const char* last : {"1", "2"}) {
    const History history = {Op(1, 3, {Put("a", "1")}), Op(2, 4, {Put("a", "2")}),
                             Op(5, 6, {Scanned({{"a", last}})})};
    ExpectLinearizable(history);
    EXPECT_EQ(CheckLinearizable(history).segments, 2u);
  }
}

// Goal: keys that no operation connects are checked apart; a range or a batch connects them.
TEST(Checker, PartitionsPointsByKey) {
  History history = {Op(1, 4, {Put("a", "1")}), Op(2, 5, {Put("b", "1")})};
  EXPECT_EQ(CheckLinearizable(history).segments, 2u);
  history.push_back(Op(3, 6, {Counted(2)}));
  EXPECT_EQ(CheckLinearizable(history).segments, 1u);
  history.back() = Op(3, 6, {Got("a", "1"), Got("b", "1")});
  EXPECT_EQ(CheckLinearizable(history).segments, 1u);
}

unsigned PrintedSeed() {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  return seed;
}

// Goal: linearizable histories pass.
// Method: histories that are right by construction: one to five clients, all kinds of operations or
// points only, with and without lost replies.
TEST(Checker, AcceptsHistoriesThatAreRightByConstruction) {
  const unsigned seed = PrintedSeed();
  int undecided = 0;  // the search is exponential: about one history in 15,000 spends its budget
  for (unsigned round = 0; round < 150; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    ScheduleOptions options{.clients = 1 + round % 5, .operations = 60};
    if (round % 3 == 0) options.lost_per_mille = 20;
    if (round % 7 == 0) options.mix = {.keys = 6, .ranges = 0, .batches = 0, .snapshots = 0};
    const CheckResult result = CheckLinearizable(ScheduledHistory(seed + round, options));
    ASSERT_NE(result.answer, Answer::kNotLinearizable) << result.explanation;
    if (result.answer == Answer::kUndecided) ++undecided;
  }
  EXPECT_LE(undecided, 2) << "seed " << seed;
}

void ChangeAnswer(Step& step, std::mt19937_64& rng) {
  switch (step.action) {
    case Action::kGet:
      if (step.told && rng() % 3 == 0) {
        ++step.deadline;
      } else {
        step.found = rng() % 2 == 0 ? std::nullopt : std::optional<std::string>("1000000100");
      }
      break;
    case Action::kTick:  // a tick has no answer
      break;
    case Action::kScan:
      if (step.items.empty() || rng() % 3 == 0) {
        step.items.emplace_back("b", "1000000200");
      } else if (rng() % 2 == 0) {
        step.items.erase(step.items.begin() + static_cast<ptrdiff_t>(rng() % step.items.size()));
      } else {
        step.items[rng() % step.items.size()].second = "1000000100";
      }
      break;
    default:
      if (step.told && rng() % 2 == 0) {
        step.found = rng() % 2 == 0 ? "a" : "1000000100";
        return;
      }
      step.happened = !step.happened;
      step.number += rng() % 2 == 0 ? 1 : -1;
  }
}

// Changes whether the operation was applied, or because of which step it was not.
void ChangeEnding(Operation& operation, std::mt19937_64& rng) {
  const uint32_t index = static_cast<uint32_t>(rng() % operation.steps.size());
  Step& step = operation.steps[index];
  uint32_t parts = 0;
  for (uint32_t i = 0; i <= index; ++i) parts += operation.steps[i].begins_part ? 1 : 0;
  if (parts > 0) {
    step.stops = !step.stops;
  } else if (operation.applied || rng() % 2 == 0) {
    operation.applied = false;
    operation.culprit = index;
  } else {
    operation.applied = true;
    operation.culprit.reset();
  }
}

// Makes a change after which the history may or may not be wrong.
void Mutate(History& history, std::mt19937_64& rng) {
  Operation& operation = history[rng() % history.size()];
  const uint64_t form = rng() % 4;
  if (form == 0 && !operation.is_pending()) {  // makes it take less time
    operation.call += rng() % (operation.returned - operation.call);
  } else if (form == 1 && !operation.is_pending()) {
    operation.returned -= rng() % (operation.returned - operation.call);
  } else if (operation.steps.size() > 1 && form == 2) {
    ChangeEnding(operation, rng);
  } else if (!operation.steps.empty()) {
    ChangeAnswer(operation.steps[rng() % operation.steps.size()], rng);
  }
}

// Goal: the verdict is right by the definition, both ways.
// Method: small random histories, right ones and mutated ones, against all orders by brute force.
// Both verdicts must occur often.
TEST(Checker, AgreesWithBruteForce) {
  const unsigned seed = PrintedSeed();
  int right = 0;
  int wrong = 0;
  for (unsigned round = 0; round < 2000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    std::mt19937_64 rng(seed + round);
    ScheduleOptions options{.clients = 2 + round % 3, .operations = 3 + round % 5};
    options.mix.keys = 2;
    if (round % 2 == 0) options.lost_per_mille = 50;
    if (round % 5 == 0) options.mix = {.keys = 2, .ranges = 0, .batches = 1, .snapshots = 0};
    if (round % 3 == 0) options.mix.transactions = 8;
    History history = ScheduledHistory(rng(), options);
    for (uint64_t i = rng() % 4; i > 0; --i) Mutate(history, rng);
    const CheckResult result = CheckLinearizable(history);
    const bool expected = IsLinearizableByBruteForce(history);
    std::ostringstream text;
    for (const Operation& operation : history) text << operation << "\n";
    ASSERT_EQ(result.answer, expected ? Answer::kLinearizable : Answer::kNotLinearizable)
        << text.str() << result.explanation;
    ++(expected ? right : wrong);
  }
  EXPECT_GT(right, 200);
  EXPECT_GT(wrong, 200);
}

}  // namespace
}  // namespace skep::linearizability
