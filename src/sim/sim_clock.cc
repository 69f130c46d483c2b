#include "sim/sim_clock.h"

namespace skep {

void SimClock::Advance(uint64_t ns) {
  now_ns_ += ns;
  reminders_.erase(reminders_.begin(), reminders_.upper_bound(now_ns_));
}

void SimClock::Remind(uint64_t at_ns) {
  if (at_ns > now_ns_) reminders_.insert(at_ns);
}

std::optional<uint64_t> SimClock::NextReminder() const {
  if (reminders_.empty()) return std::nullopt;
  return *reminders_.begin();
}

bool SimClock::AdvanceToReminder() {
  const std::optional<uint64_t> next = NextReminder();
  if (next) Advance(*next - now_ns_);
  return next.has_value();
}

}  // namespace skep
