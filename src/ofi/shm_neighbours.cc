#include "ofi/shm_neighbours.h"

#include <utility>

namespace skep::rma {

ShmNeighbours& ShmNeighbours::Get() {
  static ShmNeighbours neighbours;
  return neighbours;
}

void ShmNeighbours::Opened(const std::string& name) {
  const MutexLock lock(mutex_);
  open_.insert(name);
}

void ShmNeighbours::Ended(const std::string& name, const std::string& peer, Remains remains) {
  const MutexLock lock(mutex_);
  open_.erase(name);
  if (open_.contains(peer)) {
    kept_[peer] = std::move(remains);
    return;
  }
  remains.reset();
  kept_.erase(name);
}

}  // namespace skep::rma
