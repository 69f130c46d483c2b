// moves.h: the names of the large collections that an atomic batch moves (names.h).
//
// Thread safety: one owner, which holds the locks of all keys that the batch moves, from and to.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "collections/access.h"

namespace skep::collections {

class Moves {
 public:
  Moves(Access& access, const Batch& batch);

  // Before the batch: the collections get all names to which it may move them. An error: some have
  // not, and the batch must not be executed.
  Status AddNames();
  // After the batch: they keep those under which they lie. An error is ignored: a name too many
  // costs a look.
  void CutNames();

 private:
  Status Store(uint64_t id, const std::set<std::string>& names);

  Access& access_;
  std::map<uint64_t, std::set<std::string>> names_;  // of the ids that may move
};

}  // namespace skep::collections
