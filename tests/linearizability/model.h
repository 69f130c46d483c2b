// model.h: what a store must answer, as a function from state and operation to state.
//
// The keys of a history are known before the search, so a state is a row of cells:
//
//   +-------------------------------+------------------------------+
//   | one cell a key, in key order  | one cell a snapshot number   |
//   +-------------------------------+------------------------------+
//     0: absent; else a value's       0: not open; else 1 + the number
//     number in values_               of the pinned keys' row in pins_
//
// A range of keys is a run of cells. Rows are interned (word_table.h): a state is one number, and
// the search copies and compares states by it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/linearizability/history.h"
#include "tests/linearizability/word_table.h"

namespace skep::linearizability {

using StateId = uint32_t;

// Thread safety: one owner.
class Model {
 public:
  // The history must outlive the model. `initial` names each key once.
  Model(const History& history, const std::vector<Pair>& initial);

  StateId initial() const { return initial_; }

  // The state after history[index] has acted on `state`, if it would then answer what it did; else
  // nullopt. An operation without a reply may answer anything.
  std::optional<StateId> Act(StateId state, uint32_t index);

  // The keys that are present, as "a=1 b=2".
  std::string Describe(StateId state) const;

 private:
  using Cell = uint32_t;
  static constexpr Cell kAbsent = 0;

  // A Step whose keys and values are numbers.
  struct Plan {
    const Step* step;
    uint32_t key = 0;    // points: its cell
    uint32_t other = 0;  // kRename: the target's cell
    uint32_t begin = 0;  // ranges: [begin, end) of the cells
    uint32_t end = 0;
    uint32_t floor = 0;       // kScan from the floor: one past the highest cell it may begin at
    Cell value = kAbsent;     // to store
    Cell expected = kAbsent;  // kCompareAndSet, kRequireValue
    Cell found = kAbsent;     // kGet
    int64_t delta = 0;        // kAddDecimal
    std::vector<std::pair<uint32_t, Cell>> items = {};
  };
  enum class Answer : uint8_t { kAsRecorded, kOther, kRefused };

  void CollectKeys(const std::vector<Pair>& initial);
  Plan PlanOf(const Step& step);
  uint32_t CellOf(std::string_view key) const;
  Cell ValueOf(std::string_view value);

  bool Execute(const Operation& operation, const std::vector<Plan>& plans);
  bool RefusedAsRecorded(const Operation& operation, const std::vector<Plan>& plans,
                         std::optional<uint32_t> refused) const;
  static bool Holds(const Plan& plan, std::span<const uint32_t> cells);
  Answer Perform(const Plan& plan);
  Answer PerformRange(const Plan& plan);
  Answer Add(const Plan& plan);
  Answer Rename(const Plan& plan);

  const History& history_;
  std::vector<std::string> keys_;   // ascending
  uint32_t snapshots_ = 0;          // numbers 0 .. snapshots_-1 occur
  std::deque<std::string> values_;  // values_[0] stands for "absent"
  std::unordered_map<std::string_view, Cell> value_ids_;
  std::vector<std::vector<Plan>> plans_;  // of each operation
  std::optional<WordTable> states_;
  std::optional<WordTable> pins_;
  StateId initial_ = 0;
  std::vector<uint32_t> before_;  // the state an operation acts on
  std::vector<uint32_t> cells_;   // what it makes of it
};

}  // namespace skep::linearizability
