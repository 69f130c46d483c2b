// hot_gets.h: datagram GETs of hot keys, answered in the driver's hook (option xdp): the part that
// all workers share. netindex/xdp/xdp_map.h has the protocol and the argument, docs/xdp.md the use.
//
//   Open     asks the helper for a program and its map, before the server listens
//   Start    the hook may answer from here on
//   Upkeep   counts are halved; the program is let go if the helper is gone
//   Stop     detaches it, while what it answers is still right: before another server can have the
//            address or the directory
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/random.h"
#include "engine/engine.h"
#include "netindex/xdp/hot_map.h"
#include "netindex/xdp/xdp_lease.h"
#include "server/options.h"
#include "skep/status.h"

namespace skep {

class HotGets {
 public:
  // On an error *problem is a line for a person.
  //   kInvalidArgument  the helper is for another port, or for addresses the server has not
  //   others            as XdpLease::Take
  static Result<std::unique_ptr<HotGets>> Open(const ServerOptions& options, uint64_t instance,
                                               Random& random, std::string* problem);

  void Start() { map_.TurnOn(served_); }
  // Options have changed. What was told under another policy of syncs may not be told again.
  void NoteOptions() { map_.WillWriteRange(); }
  // False, once: the helper is gone, and the program detached.
  bool Upkeep(uint64_t monotonic_ms);
  void Stop();

  uint64_t instance() const { return instance_; }
  xdp::HotMap& map() { return map_; }
  // Whether writes of this engine, which has this keyspace, make entries invalid from here on.
  bool Observe(Engine& engine, uint32_t keyspace) { return engine.Observe(&writes_[keyspace]); }

  // The interface, and whether the driver's own hook is used; "" once the program is detached.
  std::string interface() const;
  bool is_native() const { return lease_.offer().is_native != 0; }

 private:
  HotGets(xdp::XdpLease lease, uint64_t served, uint64_t instance, uint64_t seed,
          uint32_t keyspaces);
  void StopLocked() SKEP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  xdp::XdpLease lease_;  // Detach: under the mutex
  const uint64_t served_;
  const uint64_t instance_;
  xdp::HotMap map_;
  std::deque<xdp::HotWrites> writes_;  // of each keyspace
  bool is_attached_ SKEP_GUARDED_BY(mutex_) = true;
  uint64_t next_age_ms_ SKEP_GUARDED_BY(mutex_) = 0;
};

}  // namespace skep
