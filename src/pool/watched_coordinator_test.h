// watched_coordinator_test.h: a coordinator whose sessions a test can get at.
#pragma once

#include <memory>

#include "base/coordinator.h"

namespace skep::pool {

// Remembers the session that was opened last: what happens to it is the test's choice.
class WatchedCoordinator final : public Coordinator {
 public:
  explicit WatchedCoordinator(Coordinator& inner) : inner_(inner) {}
  Result<std::unique_ptr<CoordinatorSession>> Open(
      const CoordinatorSessionOptions& options) override {
    auto session = inner_.Open(options);
    if (session) last = session->get();
    return session;
  }

  CoordinatorSession* last = nullptr;

 private:
  Coordinator& inner_;
};

}  // namespace skep::pool
