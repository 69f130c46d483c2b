// map_watch.h: a pool's map, kept up to date by a thread of its own, for clients of all threads.
//
// The thread has a session of the coordinator and a MapFollower; it sleeps until something happens,
// and at most kPauseMs. While the service does not answer
// the map stays as it was: clients go on by it, and its leases decide how long (hash_role.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/coordinator.h"
#include "base/mutex.h"
#include "base/thread_time.h"
#include "pool/kept_session.h"
#include "pool/map_follower.h"

namespace skep::pool {

// Thread-safe.
class MapWatch {
 public:
  static constexpr uint32_t kPauseMs = 100;

  struct View {
    PoolMap map;                // epoch 0: there are no roles yet, or they could not be read yet
    bool is_connected = false;  // to the service
  };

  // `coordinator` and `clock` outlive it.
  MapWatch(Coordinator& coordinator, Clock& clock, const std::string& pool, uint32_t session_ms);
  // May take as long as the service takes to end the session.
  ~MapWatch();

  View view() const;
  PoolMap map() const;
  // The processor time of its thread.
  uint64_t CpuNs() { return CpuNsOf(thread_); }
  // Waits until the map has roles, and the service was read. False: not in this time.
  bool AwaitRoles(uint32_t timeout_ms);

 private:
  void Run();
  void Turn();
  void FollowSession(CoordinatorSession* session);
  void Publish();
  void Wake();

  mutable Mutex mutex_;
  ConditionVariable changed_;
  View view_ SKEP_GUARDED_BY(mutex_);
  bool is_woken_ SKEP_GUARDED_BY(mutex_) = false;
  bool stops_ SKEP_GUARDED_BY(mutex_) = false;

  // Of the thread. The session may call Wake() until it is destroyed.
  const std::string pool_;
  KeptSession session_;
  std::unique_ptr<MapFollower> follower_;
  std::thread thread_;
};

}  // namespace skep::pool
