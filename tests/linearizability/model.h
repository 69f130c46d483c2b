// model.h: the answers that a store must give, as a function from state and operation to state.
//
// The keys of a history are known before the search, so a state is a row of words:
//
//   +--------------------+--------------------+-------------------+-------------------+-----+
//   | one word a key, in | one word a key:    | one word a        | one word a        | now |
//   | key order: value   | its deadline       | snapshot number   | watch number      |     |
//   +--------------------+--------------------+-------------------+-------------------+-----+
//     0: absent; else      0: none. That of     0: not open; else   0: none; 1: its key
//     a value's number     an absent key is 0   1 + the number of   was written since;
//     in values_                                the pinned keys'    else 2 + its key
//                                               row in pins_
//
// A range of keys is a run of words. Rows are interned (word_table.h): a state is one number, by
// which the search copies and compares states. States that no operation can tell apart must be
// equal, so
//   - keys past their deadline leave the row when the time comes, and no row holds one;
//   - a watch does not count writes: it says whether there was any.
#pragma once

#include <deque>
#include <optional>
#include <span>
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
  // The history must outlive the model. `initial` has each key once.
  Model(const History& history, const std::vector<Pair>& initial);

  StateId initial() const { return initial_; }

  // Returns the state after history[index] has acted on `state`, if its answers are then the
  // recorded ones; else nullopt. An operation without a reply may have any answers.
  std::optional<StateId> Act(StateId state, uint32_t index);

  // Returns the present keys, as "a=1 b=2@7", and the time, if there is one.
  std::string Describe(StateId state) const;

 private:
  using Word = uint32_t;
  static constexpr Word kAbsent = 0;
  static constexpr Word kNotWatched = 0;
  static constexpr Word kWritten = 1;
  static constexpr Word kWatched = 2;

  // A Step whose keys and values are numbers.
  struct Plan {
    const Step* step;
    uint32_t key = 0;    // points: its index
    uint32_t other = 0;  // kRename: the index of the target
    uint32_t begin = 0;  // ranges: [begin, end) of the keys
    uint32_t end = 0;
    uint32_t floor = 0;       // kScan from the floor: one past the highest key it may begin at
    uint32_t first = 0;       // kRequireEmpty: the key that was seen
    Word value = kAbsent;     // to store
    Word expected = kAbsent;  // comparisons
    Word found = kAbsent;
    int64_t delta = 0;  // kAddDecimal
    std::vector<std::pair<uint32_t, Word>> items = {};
  };
  // The plans [begin, end) of an operation, which are all or nothing.
  struct Part {
    uint32_t begin, end;
    bool is_first;
  };
  struct Request {
    std::vector<Plan> plans;
    std::vector<Part> parts;  // the first one may be empty
  };
  struct Ending {
    std::optional<uint32_t> culprit;  // the part was not applied because of this step
    bool same = true;                 // else: whether every step answered as recorded
  };
  enum class Answer : uint8_t { kAsRecorded, kOther, kRefused };

  void CollectKeys(const std::vector<Pair>& initial);
  Plan PlanOf(const Step& step);
  static std::vector<Part> PartsOf(const Operation& operation);
  uint32_t IndexOf(std::string_view key) const;
  Word ValueOf(std::string_view value);

  // These are words of cells_.
  uint32_t key_count() const { return static_cast<uint32_t>(keys_.size()); }
  Word& deadline(uint32_t key) { return cells_[key_count() + key]; }
  Word& pin(uint32_t snapshot) { return cells_[2 * key_count() + snapshot]; }
  uint32_t watch_at(uint32_t watch) const { return 2 * key_count() + snapshots_ + watch; }
  Word& now() { return cells_.back(); }

  bool Execute(const Operation& operation, const Request& request);
  Ending PerformPart(const std::vector<Plan>& plans, Part part);
  bool EndedAsRecorded(const Operation& operation, const Request& request, Part part,
                       const Ending& ending) const;
  bool SawAsRecorded(const Plan& plan) const;
  bool Holds(const Plan& plan) const;
  Answer Perform(const Plan& plan);
  Answer Decide(const Plan& plan, bool happens);
  Answer PerformRange(const Plan& plan);
  Answer Read(const Plan& plan);
  Answer Add(const Plan& plan);
  Answer Rename(const Plan& plan);
  void Tick(uint64_t time);
  void Write(uint32_t key, Word value, uint64_t deadline_wanted);
  void Touch(uint32_t key);

  const History& history_;
  std::vector<std::string> keys_;   // ascending
  uint32_t snapshots_ = 0;          // numbers 0 .. snapshots_-1 occur
  uint32_t watches_ = 0;            // the same
  std::deque<std::string> values_;  // values_[0] stands for "absent"
  std::unordered_map<std::string_view, Word> value_ids_;
  std::vector<Request> requests_;  // one of each operation
  std::optional<WordTable> states_;
  std::optional<WordTable> pins_;
  StateId initial_ = 0;
  std::vector<Word> before_;  // the state a part acts on
  std::vector<Word> cells_;   // the state that the part makes of it
};

}  // namespace skep::linearizability
