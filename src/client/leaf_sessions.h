// leaf_sessions.h: a client's sessions with the leaves that its server shares (ConnectOptions::
// one_sided): one for each of its connections, so that threads which are spread over connections
// are spread over sessions, too.
//
// Thread-safe: a session belongs to whoever holds the mutex of its lane. A thread that wants it
// waits for reads of another one: over `mem` for microseconds, over `tcp` for kTimeoutMs at most.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "netindex/leaves/leaf_session.h"
#include "rma/fabric.h"
#include "skep/status.h"

namespace skep::client {

class LeafSessions {
 public:
  static constexpr int kTimeoutMs = 1000;

  struct Lane {
    Mutex mutex;
    std::unique_ptr<leaves::LeafSession> session SKEP_GUARDED_BY(mutex);
  };

  // Connects `lanes` sessions.
  //   kInvalidArgument  the place
  //   others            as LeafSession::Make and Connect
  static Result<std::unique_ptr<LeafSessions>> Connect(std::string_view place, size_t lanes,
                                                       Clock& clock);

  size_t count() const { return lanes_.size(); }
  Lane& lane(size_t index) { return *lanes_[index]; }
  // Returns the sums over all sessions.
  leaves::LeafReaderStatistics Statistics();

 private:
  std::unique_ptr<rma::Fabric> fabric_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace skep::client
