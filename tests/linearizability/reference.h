// reference.h: a sequential store that is as plain as possible: a std::map, copied for a snapshot.
//
// It answers the operations of the tests. The checker's own model (model.h) shares no code with it,
// so that each finds the other's mistakes.
#pragma once

#include <map>
#include <string>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

class Reference {
 public:
  using Map = std::map<std::string, std::string>;

  // Performs the operation at once and fills in its answers.
  void Perform(Operation& operation);

  const Map& map() const { return map_; }

 private:
  void Execute(Operation& operation);

  Map map_;
  std::map<uint32_t, Map> pinned_;  // by snapshot number
};

}  // namespace skep::linearizability
