// pool_variants.h: the protocol of a pool with one of its rules left out, without a switch in the
// pool's code: by messages that are changed on their way, or by servers that have different times.
// Histories of each must be found not to be linearizable.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/pool_history.h"

namespace skep::simulation {

struct NamedVariant {
  std::string name;
  PoolVariant variant;
};

//   Paper           a scan waits for nothing (H1): the paper's protocol
//   CommitIndex     a scan waits for what the sorted server last heard that it was committed: the
//                   hash server's word when it sent the last shipment
//   AppliedAtStart  a scan waits for the hash server's word at the moment when it arrives
//   NoReadLeases    the hash server grants reads for longer than the sorted one waits before it
//                   takes over (H10)
//   NoDeduplication a commit that is sent again has another number (H4)
std::vector<NamedVariant> FaultyVariants();

}  // namespace skep::simulation
