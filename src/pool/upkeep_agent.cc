#include "pool/upkeep_agent.h"

namespace skep::pool {

void UpkeepAgent::SetMap(const PoolMap& map) {
  const MutexLock lock(mutex_);
  map_ = map;
}

PoolMap UpkeepAgent::map() const {
  const MutexLock lock(mutex_);
  return map_;
}

bool UpkeepAgent::Turn() {
  if (map().hash_server != options_.server) {
    work_.reset();
    return false;
  }
  if (work_ == nullptr && !Open()) return false;
  work_->session->set_deadline_ns(clock_.MonotonicNs() + kTurnNs);
  const bool cleans = work_->cleaner.Step();
  const bool repairs = work_->repairer.Step();
  // What was moved to a chunk that has lost a server is to be copied, too.
  work_->writer.SealUnneeded();
  return repairs || cleans;
}

bool UpkeepAgent::Open() {
  auto endpoint = fabric_.Open({});
  if (!endpoint || !(*endpoint)->capabilities().delivery_complete) return false;
  work_ = std::make_unique<Work>(
      std::make_unique<ClientSession>(std::move(*endpoint), clock_, [this] { return map(); }),
      options_.eviction, figures_);
  return true;
}

}  // namespace skep::pool
