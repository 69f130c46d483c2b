// zookeeper_world.h: ZooKeeper, one server or three, for tests: each session has a link of its own.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "tests/coordinator/coordinator_world.h"
#include "tests/coordinator/link_proxy.h"
#include "tests/coordinator/zookeeper_servers.h"

namespace skep {

// The servers of this program: one, or three. Started when they are first asked for, and ended with
// the program.
ZooKeeperServers& SharedServers(int count);

class ZooKeeperWorld final : public CoordinatorWorld {
 public:
  explicit ZooKeeperWorld(ZooKeeperServers& servers);
  ~ZooKeeperWorld() override;

  std::unique_ptr<CoordinatorSession> Open(const CoordinatorSessionOptions& options) override;
  // The same, by this server alone.
  std::unique_ptr<CoordinatorSession> OpenAt(int server, const CoordinatorSessionOptions& options);
  void SetLink(CoordinatorSession& session, Link link) override;
  std::unique_ptr<OtherProcess> StartProcess(const std::string& path, uint32_t timeout_ms) override;
  void FailService() override;
  bool PassTime() override;
  uint64_t NowNs() override { return SystemClock().MonotonicNs(); }
  void Wake() override;

 private:
  static constexpr uint64_t kLimitNs = 600'000'000'000;

  std::unique_ptr<CoordinatorSession> OpenAt(const std::vector<int>& servers,
                                             const CoordinatorSessionOptions& options);

  void Nudge();

  ZooKeeperServers& servers_;
  const uint64_t began_ns_ = SystemClock().MonotonicNs();
  std::map<const CoordinatorSession*, std::vector<std::unique_ptr<LinkProxy>>> links_;
  bool has_killed_ = false;
  // Its requests set free what an ensemble holds back (zookeeper_coordinator.h).
  std::unique_ptr<CoordinatorSession> nudger_;
  uint64_t nudged_ns_ = 0;
  Mutex mutex_;
  ConditionVariable changed_;
  bool is_woken_ SKEP_GUARDED_BY(mutex_) = false;
};

}  // namespace skep
