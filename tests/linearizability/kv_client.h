// kv_client.h: one client of a store whose answers are to be checked.
#pragma once

#include "tests/linearizability/history.h"

namespace skep::linearizability {

// Thread safety: one owner, as one connection has.
class KvClient {
 public:
  enum class Reply : uint8_t {
    kAnswered,  // the answers, `applied` and `culprit` are filled in
    kRefused,   // refused for a reason outside the state; nothing was changed
    kLost,      // no reply came: whether it took effect is unknown
  };

  virtual ~KvClient() = default;

  // Returns whether this store has such an operation at all.
  virtual bool Supports(const Operation& operation) const = 0;

  // Sends the operation to the store and waits for its reply. `operation` has kind, snapshot and
  // steps; the call fills in the answers. Snapshot numbers are this client's own, from 0 on.
  virtual Reply Perform(Operation& operation) = 0;
};

}  // namespace skep::linearizability
