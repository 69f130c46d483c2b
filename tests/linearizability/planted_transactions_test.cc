#include "tests/linearizability/planted_history.h"

namespace skep::linearizability {
namespace {

// Goal: every way in which conditions, watches, parts and expiry can be wrong is found, and the
// nearest correct history passes.
// Method: by hand, two to five operations each.

TEST(PlantedTransaction, AFailedConditionIsTheFirstOne) {
  const Operation put = Op(1, 2, {Put("a", "1")});
  const std::vector<Step> steps = {RequireValue("a", "1"), RequireAbsent("a"), RequireAbsent("a"),
                                   Put("b", "1")};
  ExpectLinearizable({put, Refused(3, 4, 1, steps)});
  ExpectViolation({put, Refused(3, 4, 0, steps)}, 1);
  ExpectViolation({put, Refused(3, 4, 2, steps)}, 1);
  // A condition that fails comes before a step that is refused.
  ExpectLinearizable({put, Refused(3, 4, 1, {Added("a", "x", 0), RequireAbsent("a")})});
}

TEST(PlantedTransaction, WrongValueSeen) {
  const Operation put = Op(1, 2, {Put("a", "1")});
  const auto failed = [](std::optional<std::string> seen) {
    return Refused(3, 4, 0, {Saw(RequireValue("a", "2"), std::move(seen)), Put("b", "1")});
  };
  ExpectLinearizable({put, failed("1")});
  ExpectViolation({put, failed("3")}, 1);
  ExpectViolation({put, failed(std::nullopt)}, 1);
  ExpectLinearizable({failed(std::nullopt)});
  ExpectLinearizable({put, Op(3, 4, {Saw(Swapped("a", "2", "3", false), "1")})});
  ExpectViolation({put, Op(3, 4, {Saw(Swapped("a", "2", "3", false), "2")})}, 1);
}

TEST(PlantedTransaction, ARangeThatWasNotEmpty) {
  const Operation put = Op(1, 2, {Put("b", "1"), Put("c", "1")});
  const auto failed = [](std::optional<std::string> first) {
    return Refused(3, 4, 0, {Saw(RequireEmpty(), std::move(first)), Put("a", "1")});
  };
  ExpectLinearizable({put, failed("b")});
  ExpectViolation({put, failed("c")}, 1);
  ExpectViolation({put, failed("a")}, 1);
  ExpectViolation({failed("b")}, 0);
  ExpectViolation({put, Op(3, 4, {RequireEmpty(), Put("a", "1")})}, 1);
  ExpectLinearizable({Op(1, 2, {RequireEmpty(), Put("a", "1")})});
}

// Goal: a batch that needs a key unchanged is applied if and only if no operation has written it.
TEST(PlantedTransaction, AppliedThoughItChanged) {
  const Operation watch = Op(1, 2, {Watched("a")});
  const std::vector<Step> steps = {RequireUnchanged("a"), Put("b", "1")};
  const Operation applied = Op(5, 6, steps);
  ExpectLinearizable({watch, applied});
  const std::vector<Step> writes = {Put("a", "1"), Added("a", "0", 0), Inserted("a", "1", true),
                                    Moved("c", "a", true)};
  for (const Step& write : writes) {
    const Operation first = Op(0, 0, {Put("c", "1")});
    ExpectViolation({first, watch, Op(3, 4, {write}), applied}, 3);
    ExpectLinearizable({first, watch, Op(3, 4, {write}), Refused(5, 6, 0, steps)});
    // A write in between may come before the batch or after it.
    ExpectLinearizable({first, watch, Op(3, 7, {write}), applied});
    ExpectLinearizable({first, watch, Op(3, 7, {write}), Refused(5, 6, 0, steps)});
  }
}

TEST(PlantedTransaction, NotAppliedThoughNothingChanged) {
  const Operation put = Op(1, 2, {Put("a", "1")});
  const Operation watch = Op(3, 4, {Watched("a")});
  const Operation refused = Refused(7, 8, 0, {RequireUnchanged("a"), Put("b", "1")});
  ExpectViolation({put, watch, refused}, 2);
  ExpectViolation({put, watch, Op(5, 6, {Got("a", "1"), Put("b", "1")}), refused}, 3);
  ExpectViolation({put, watch, Op(5, 6, {Deleted("b", false)}), refused}, 3);
  ExpectViolation({put, watch, Op(5, 6, {Inserted("a", "2", false)}), refused}, 3);
  ExpectViolation({put, watch, Op(5, 6, {Moved("a", "a", true)}), refused}, 3);
  ExpectViolation({put, watch, Refused(5, 6, 0, {RequireAbsent("a"), Put("a", "2")}), refused}, 3);
  ExpectLinearizable({put, watch, Op(5, 6, {Put("a", "1")}), refused});
  ExpectLinearizable({put, watch, Op(5, 6, {Moved("a", "c", true)}), refused});
  ExpectLinearizable({put, watch, Op(5, 6, {RangeDeleted(1)}), refused});
}

TEST(PlantedTransaction, AWatchBeginsAtOneInstant) {
  const Operation put = Op(2, 3, {Put("a", "1")});
  const std::vector<Step> steps = {RequireUnchanged("a"), Put("b", "1")};
  // A write during the watch's call may be before or after it.
  ExpectLinearizable({Op(1, 4, {Watched("a")}), put, Op(5, 6, steps)});
  ExpectLinearizable({Op(1, 4, {Watched("a")}), put, Refused(5, 6, 0, steps)});
  // A read after the watch decides which.
  const Operation read = Op(4, 5, {Got("a", std::nullopt)});
  const Operation late = Op(2, 8, {Put("a", "1")});
  ExpectViolation(
      {Op(1, 3, {Watched("a")}), read, late, Op(6, 7, {Got("a", "1")}), Op(8, 9, steps)}, 4);
}

TEST(PlantedTransaction, PartsEachAllOrNothing) {
  const Operation put = Op(1, 2, {Put("a", "x")});
  const Step stopped = Stopping(InNewPart(Added("a", "1", 0)));
  const Operation batch =
      Op(3, 4, {RequirePresent("a"), stopped, InNewPart(Put("b", "1")), Put("c", "1")});
  ExpectLinearizable({put, batch, Op(5, 6, {Scanned({{"a", "x"}, {"b", "1"}, {"c", "1"}})})});
  // This is half a part.
  ExpectViolation({put, batch, Op(5, 6, {Scanned({{"a", "x"}, {"b", "1"}})})}, 2);
  // All parts are at one instant.
  ExpectViolation({put, Op(3, 8, {InNewPart(Put("b", "1")), InNewPart(Put("c", "1"))}),
                   Op(4, 5, {Got("b", "1")}), Op(6, 7, {Got("c", std::nullopt)})},
                  3);
  // In the first history the value was a number, in the second it was none.
  ExpectViolation({Op(1, 2, {Put("a", "1")}), Op(3, 4, {stopped})}, 1);
  ExpectViolation({put, Op(3, 4, {InNewPart(Added("a", "1", 1))})}, 1);
  // If the first part fails no other part is applied.
  const Operation none = Refused(3, 4, 0, {RequireAbsent("a"), InNewPart(Put("b", "1"))});
  ExpectLinearizable({put, none, Op(5, 6, {Scanned({{"a", "x"}})})});
  ExpectViolation({put, none, Op(5, 6, {Got("b", "1")})}, 2);
}

// Goal: a key exists until its time has come, for all clients, and never again after.
TEST(PlantedExpiry, AKeyThatComesBack) {
  const Operation put = Op(1, 2, {Put("a", "1", 5), Put("b", "1", 6)});
  const Operation tick = Op(3, 8, {Tick(5)});
  ExpectLinearizable({put, tick, Op(4, 5, {Got("a", "1")}), Op(6, 7, {Got("a", std::nullopt)})});
  ExpectViolation({put, tick, Op(4, 5, {Got("a", std::nullopt)}), Op(6, 7, {Got("a", "1")})}, 3);
  ExpectViolation({put, Op(3, 4, {Tick(5)}), Op(5, 6, {Got("a", "1")})}, 2);
  ExpectViolation({put, Op(3, 4, {Tick(5)}), Op(5, 6, {Scanned({})})}, 2);
  ExpectLinearizable({put, Op(3, 4, {Tick(5)}), Op(5, 6, {Scanned({{"b", "1"}})})});
  ExpectViolation({put, Op(3, 4, {Got("a", std::nullopt)})}, 1);
  // Neither an earlier time nor a store with an old deadline brings it back.
  ExpectViolation({put, Op(3, 4, {Tick(5)}), Op(5, 6, {Tick(4)}), Op(7, 8, {Got("a", "1")})}, 3);
  ExpectViolation({put, Op(3, 4, {Tick(5)}), Op(5, 6, {Put("a", "2", 5)}), Op(7, 8, {Counted(2)})},
                  3);
}

TEST(PlantedExpiry, KeysOfOneDeadlineGoTogether) {
  const Operation put = Op(1, 2, {Put("a", "1", 5), Put("b", "1", 5)});
  const Operation tick = Op(3, 8, {Tick(5)});
  ExpectViolation({put, tick, Op(4, 5, {Scanned({{"b", "1"}})})}, 2);
  ExpectViolation({put, tick, Op(4, 5, {Got("b", std::nullopt)}), Op(6, 7, {Counted(1)})}, 3);
}

TEST(PlantedExpiry, WhoTellsTheTimeActsAtIt) {
  const Operation put = Op(1, 2, {Put("a", "1", 5)});
  const Operation tick = Op(3, 8, {Tick(5)});
  Operation read = Op(3, 8, {Got("a", "1")});
  read.now = 5;
  ExpectViolation({put, tick, read}, 2);
  read.steps = {Got("a", std::nullopt)};
  ExpectLinearizable({put, tick, read});
  // Other clients may be told before it acts.
  ExpectLinearizable({put, tick, read, Op(4, 5, {Got("a", std::nullopt)}),
                      Op(6, 7, {Put("a", "2"), Deleted("a", true)})});
}

TEST(PlantedExpiry, ExpiryIsAChange) {
  const Operation put = Op(1, 2, {Put("a", "1", 5)});
  const Operation watch = Op(3, 4, {Watched("a")});
  const std::vector<Step> steps = {RequireUnchanged("a"), Put("b", "1")};
  ExpectLinearizable({put, watch, Op(5, 6, {Tick(5)}), Refused(7, 8, 0, steps)});
  ExpectViolation({put, watch, Op(5, 6, {Tick(5)}), Op(7, 8, steps)}, 3);
  ExpectViolation({put, watch, Op(5, 6, {Tick(4)}), Refused(7, 8, 0, steps)}, 3);
  // A key that had expired before does not change any more.
  ExpectViolation({put, Op(3, 4, {Tick(5)}), Op(5, 6, {Watched("a")}), Op(7, 8, {Tick(6)}),
                   Refused(9, 10, 0, steps)},
                  4);
}

TEST(PlantedExpiry, DeadlinesAreKeptMovedAndTakenAway) {
  const Operation put = Op(1, 2, {Put("a", "1", 5)});
  const Operation tick = Op(5, 6, {Tick(5)});
  const Operation gone = Op(7, 8, {Scanned({})});
  ExpectLinearizable({put, Op(3, 4, {Added("a", "1", 2)}), tick, gone});
  ExpectLinearizable({put, Op(3, 4, {Moved("a", "b", true)}), tick, gone});
  ExpectLinearizable({put, Op(3, 4, {Put("a", "2", kKeep)}), tick, gone});
  ExpectViolation({put, Op(3, 4, {Put("a", "2")}), tick, gone}, 3);
  ExpectViolation(
      {put, Op(3, 4, {{.action = Action::kExpire, .key = "a", .happened = true}}), tick, gone}, 3);
  Step read = Saw(Got("a", "1"), "1");
  read.deadline = 5;
  ExpectLinearizable({put, Op(3, 4, {read})});
  read.deadline = 6;
  ExpectViolation({put, Op(3, 4, {read})}, 1);
}

TEST(PlantedExpiry, ASnapshotKeepsItsTime) {
  const Operation put = Op(1, 2, {Put("a", "1", 5)});
  const Operation tick = Op(5, 6, {Tick(5)});
  ExpectLinearizable({put, Open(3, 4), tick, AtSnapshot(7, 8, Got("a", "1"))});
  ExpectViolation({put, Open(3, 4), tick, AtSnapshot(7, 8, Got("a", std::nullopt))}, 3);
  ExpectViolation({put, Op(3, 4, {Tick(5)}), Open(5, 6), AtSnapshot(7, 8, Got("a", "1"))}, 3);
}

}  // namespace
}  // namespace skep::linearizability
