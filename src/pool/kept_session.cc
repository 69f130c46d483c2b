#include "pool/kept_session.h"

#include <utility>

namespace skep::pool {

KeptSession::KeptSession(Coordinator& coordinator, Clock& clock, CoordinatorSessionOptions options,
                         std::function<void(CoordinatorSession*)> changed)
    : coordinator_(coordinator),
      clock_(clock),
      options_(std::move(options)),
      changed_(std::move(changed)) {}

bool KeptSession::Turn() {
  const uint64_t now = clock_.MonotonicNs();
  if (now < retry_ns_) return false;
  retry_ns_ = now + kRetryNs;
  const bool is_over =
      session_ == nullptr || session_->state() == CoordinatorSession::State::kExpired;
  if (is_over) Open();
  return true;
}

void KeptSession::Open() {
  changed_(nullptr);
  session_.reset();
  auto session = coordinator_.Open(options_);
  if (!session) return;
  session_ = std::move(*session);
  changed_(session_.get());
}

}  // namespace skep::pool
