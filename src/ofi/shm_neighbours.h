// shm_neighbours.h: links of `shm` whose both ends are in this process.
//
// Of a fid_ep in the same process `shm` of libfabric 1.17 does not map the memory: it uses that of
// the other one's mapping, which is gone when the other one is closed, and dies at its next send.
// So of two such links the one that ends first is kept, undrained and without registrations, until
// the other one has ended, too: nothing is read or written through it any more. Ends in two
// processes have mappings of their own, and other providers no such trouble.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace skep::rma {

// Thread-safe.
class ShmNeighbours {
 public:
  // The objects of libfabric that a link had: the destructor closes them.
  using Remains = std::shared_ptr<void>;

  // The links of this process.
  static ShmNeighbours& Get();

  void Opened(const std::string& name);
  // `remains` is destroyed now, or when the link `peer` has ended.
  void Ended(const std::string& name, const std::string& peer, Remains remains);

 private:
  Mutex mutex_;
  std::set<std::string> open_ SKEP_GUARDED_BY(mutex_);
  // By the link that is waited for.
  std::map<std::string, Remains> kept_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep::rma
