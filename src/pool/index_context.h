// index_context.h: what the roles of an index server share.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "pool/hash_index.h"
#include "pool/index_log.h"
#include "pool/index_state.h"
#include "pool/messages.h"
#include "pool/pool_map.h"
#include "rma/fabric.h"

namespace skep::pool {

// How long things may take. The same in all processes of a pool.
struct PoolTimes {
  // A one-sided read that took longer by its reader's clock is discarded; memory that was unlinked
  // is reused after twice that time.
  uint64_t read_ns_max = 100'000'000;
  // How long a client may read one-sided, and a hash server may grant that, without asking again.
  uint64_t lease_ns = 500'000'000;
  // A client that is silent for longer is forgotten.
  uint64_t silence_ns_max = 10'000'000'000;
  // A memory server whose session has ended and that answers nothing for so long is gone.
  uint64_t memory_gone_ns = 1'000'000'000;
  // The same of one that has the only copy of some items, in a pool that does not remove the keys
  // of lost items: it may only stand still.
  uint64_t only_copy_gone_ns = 10'000'000'000;
};

// The regions of an index server's endpoint.
enum IndexRegion : uint32_t { kHeaderRegion, kBucketRegion, kOverflowRegion, kIndexRegions };

struct IndexContext {
  rma::Endpoint& endpoint;
  Clock& clock;
  const PoolTimes times;
  const uint32_t keys_per_piece;   // of a state that is transferred (state_transfer.h)
  const uint32_t keys_per_step;    // of an index that is built (index_builders.h)
  const uint32_t free_chunks_min;  // so many are wanted in any case (free_space.h)
  const uint32_t replicas;         // of a chunk, where there are as many memory servers
  const bool removes_lost;         // keys whose items were lost with all their memory servers
  const bool applies_first;        // entries, before they are acknowledged (sorted_role.h)
  IndexLog* const log;             // null: nothing is kept on a disk
  IndexState& state;
  PoolMap map;

  uint64_t now_ns() const { return clock.MonotonicNs(); }
  void Refuse(rma::PeerId peer, uint64_t token, ReplyCode code) {
    const char byte = static_cast<char>(code);
    endpoint.Reply(peer, token, {&byte, 1});
  }
  void Answer(rma::PeerId peer, uint64_t token, std::string_view fields) {
    reply.assign(1, static_cast<char>(ReplyCode::kOk));
    reply.append(fields);
    endpoint.Reply(peer, token, reply);
  }

  std::string reply;  // scratch
};

}  // namespace skep::pool
