// planted_history.h: builds histories by hand, for tests of the checker: operations of one step or
// more, each with its times and its answers.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/linearizability/brute_force.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/history.h"

namespace skep::linearizability {

inline Operation Op(uint64_t call, uint64_t returned, std::vector<Step> steps) {
  return {.call = call, .returned = returned, .steps = std::move(steps)};
}
inline Operation Lost(uint64_t call, std::vector<Step> steps) {
  return Op(call, kNever, std::move(steps));
}
inline Operation Open(uint64_t call, uint64_t returned) {
  return {.call = call, .returned = returned, .kind = Operation::Kind::kOpenSnapshot};
}
inline Operation AtSnapshot(uint64_t call, uint64_t returned, Step step) {
  return {.call = call,
          .returned = returned,
          .kind = Operation::Kind::kReadSnapshot,
          .steps = {std::move(step)}};
}
inline Operation Refused(uint64_t call, uint64_t returned, uint32_t culprit,
                         std::vector<Step> steps) {
  return {.call = call,
          .returned = returned,
          .steps = std::move(steps),
          .applied = false,
          .culprit = culprit};
}

inline Step Put(std::string key, std::string value, uint64_t deadline = 0) {
  return {.action = Action::kPut,
          .key = std::move(key),
          .value = std::move(value),
          .deadline = deadline};
}
inline Step Got(std::string key, std::optional<std::string> found) {
  return {.action = Action::kGet, .key = std::move(key), .found = std::move(found)};
}
inline Step Deleted(std::string key, bool happened) {
  return {.action = Action::kDelete, .key = std::move(key), .happened = happened};
}
inline Step Scanned(std::vector<Pair> items) {
  return {.action = Action::kScan, .unbounded = true, .items = std::move(items)};
}
inline Step Counted(int64_t number) {
  return {.action = Action::kCount, .unbounded = true, .number = number};
}
inline Step RangeDeleted(int64_t number) {
  return {.action = Action::kDeleteRange, .unbounded = true, .number = number};
}
inline Step Added(std::string key, std::string delta, int64_t sum) {
  return {.action = Action::kAddDecimal,
          .key = std::move(key),
          .value = std::move(delta),
          .number = sum};
}
inline Step Swapped(std::string key, std::string from, std::string to, bool happened) {
  return {.action = Action::kCompareAndSet,
          .key = std::move(key),
          .value = std::move(to),
          .other = std::move(from),
          .happened = happened};
}
inline Step Inserted(std::string key, std::string value, bool happened) {
  return {.action = Action::kInsert,
          .key = std::move(key),
          .value = std::move(value),
          .happened = happened};
}
inline Step Moved(std::string key, std::string other, bool happened) {
  return {.action = Action::kRename,
          .key = std::move(key),
          .other = std::move(other),
          .happened = happened};
}
inline Step Watched(std::string key) { return {.action = Action::kWatch, .key = std::move(key)}; }
inline Step Tick(uint64_t time) { return {.action = Action::kTick, .deadline = time}; }

inline Step RequireAbsent(std::string key) {
  return {.action = Action::kRequireAbsent, .key = std::move(key)};
}
inline Step RequirePresent(std::string key) {
  return {.action = Action::kRequirePresent, .key = std::move(key)};
}
inline Step RequireValue(std::string key, std::string value) {
  return {.action = Action::kRequireValue, .key = std::move(key), .other = std::move(value)};
}
inline Step RequireUnchanged(std::string key) {
  return {.action = Action::kRequireUnchanged, .key = std::move(key)};
}
// Requires that there is no key at all.
inline Step RequireEmpty() { return {.action = Action::kRequireEmpty, .unbounded = true}; }

// Adds what a step that does not hold has seen.
inline Step Saw(Step step, std::optional<std::string> found) {
  step.told = true;
  step.found = std::move(found);
  return step;
}
inline Step InNewPart(Step step) {
  step.begins_part = true;
  return step;
}
inline Step Stopping(Step step) {
  step.stops = true;
  return step;
}

inline void ExpectLinearizable(const History& history) {
  const CheckResult result = CheckLinearizable(history);
  EXPECT_EQ(result.answer, Answer::kLinearizable) << result.explanation;
  EXPECT_TRUE(history.size() > 7 || IsLinearizableByBruteForce(history));
}

// Also expects the explanation to name the operation that no order explains.
inline void ExpectViolation(const History& history, size_t culprit) {
  const CheckResult result = CheckLinearizable(history);
  ASSERT_EQ(result.answer, Answer::kNotLinearizable);
  EXPECT_EQ(result.culprit, culprit) << result.explanation;
  EXPECT_NE(result.explanation.find("operation #" + std::to_string(culprit)), std::string::npos);
  EXPECT_TRUE(history.size() > 7 || !IsLinearizableByBruteForce(history));
}

}  // namespace skep::linearizability
