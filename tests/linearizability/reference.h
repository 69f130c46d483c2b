// reference.h: a sequential store that is as plain as possible: a std::map, copied for a snapshot.
//
// It answers the operations of the tests. The checker's own model (model.h) shares no code with it,
// so that each finds the other's mistakes: here each key counts its changes, a watch remembers the
// count, and a key past its deadline stays until an operation meets it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

class Reference {
 public:
  // Performs the operation at once and fills in its answers. Operation::now must not be later than
  // now().
  void Perform(Operation& operation);

  // Returns the time of the latest kTick.
  uint64_t now() const { return state_.now; }

 private:
  struct Entry {
    std::optional<std::string> value;
    uint64_t deadline = 0;
    uint64_t writes = 0;  // since the beginning
  };
  struct State {
    std::map<std::string, Entry> entries;
    uint64_t now = 0;

    bool IsPresent(const std::string& key) const;
    std::optional<std::string> Find(const std::string& key) const;
    uint64_t DeadlineOf(const std::string& key) const;
    // Returns the number of changes; a key that expires has changed as if it had been written.
    uint64_t ChangesOf(const std::string& key) const;
    void Store(const std::string& key, const std::string& value, uint64_t deadline);
    void Erase(const std::string& key);
  };

  // Performs steps [begin, end), or none. Returns the step because of which none was performed.
  std::optional<uint32_t> PerformPart(Operation& operation, uint32_t begin, uint32_t end);
  bool Holds(Step& step) const;
  bool PerformStep(Step& step);
  void PerformPoint(Step& step);
  bool Add(Step& step);
  void Rename(Step& step);
  void PerformRange(Step& step);
  void Execute(Operation& operation);

  State state_;
  std::map<uint32_t, State> pinned_;      // by snapshot number
  std::map<uint32_t, uint64_t> watched_;  // by watch number: the key's changes at that time
};

}  // namespace skep::linearizability
