// kept_session.h: a session of the coordinator that is opened again when it has ended, and the pace
// at which its owner does again what was not done.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/coordinator.h"

namespace skep::pool {

class KeptSession {
 public:
  static constexpr uint64_t kRetryNs = 100'000'000;

  // `changed` is called with null before a session is destroyed in Turn(), and with each new one:
  // whatever uses a session goes and comes with it. The coordinator and the clock outlive this.
  KeptSession(Coordinator& coordinator, Clock& clock, CoordinatorSessionOptions options,
              std::function<void(CoordinatorSession*)> changed);

  // Opens a session if none lives; one that cannot be opened now is opened later. True every
  // kRetryNs: it is time to do again what was not done.
  bool Turn();
  // Null: there is none.
  CoordinatorSession* get() const { return session_.get(); }
  bool is_connected() const {
    return session_ != nullptr && session_->state() == CoordinatorSession::State::kConnected;
  }

 private:
  void Open();

  Coordinator& coordinator_;
  Clock& clock_;
  const CoordinatorSessionOptions options_;
  const std::function<void(CoordinatorSession*)> changed_;
  std::unique_ptr<CoordinatorSession> session_;
  uint64_t retry_ns_ = 0;
};

}  // namespace skep::pool
