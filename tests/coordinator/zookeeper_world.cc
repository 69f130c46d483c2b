#include "tests/coordinator/zookeeper_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/check.h"
#include "tests/coordinator/coordinator_client.h"
#include "zookeeper/zookeeper_coordinator.h"

namespace skep {
namespace {

// The coordinator is part of what it opens: each session has other addresses.
std::unique_ptr<CoordinatorSession> OpenSession(const std::string& servers,
                                                const CoordinatorSessionOptions& options) {
  auto session = ZooKeeperCoordinator(servers).Open(options);
  SKEP_CHECK(session.has_value());
  return std::move(*session);
}

// tests/coordinator/coordinator_holder.cc.
class Holder final : public OtherProcess {
 public:
  Holder(const std::string& servers, const std::string& path, uint32_t timeout_ms) {
    int ends[2];
    SKEP_CHECK(pipe(ends) == 0);
    const std::string timeout = std::to_string(timeout_ms);
    process_ = fork();
    SKEP_CHECK(process_ >= 0);
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], STDOUT_FILENO);
      execl(SKEP_COORDINATOR_HOLDER, SKEP_COORDINATOR_HOLDER, servers.c_str(), path.c_str(),
            timeout.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~Holder() override {
    Kill();
    close(pipe_);
  }
  // Whether the node was there.
  bool IsReady() const {
    pollfd pipe = {.fd = pipe_, .events = POLLIN, .revents = 0};
    if (poll(&pipe, 1, 0) != 1) return false;
    SKEP_CHECK((pipe.revents & POLLIN) != 0);  // else the process has ended
    return true;
  }
  void Kill() override {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  pid_t process_ = 0;
  int pipe_ = -1;
};

}  // namespace

ZooKeeperServers& SharedServers(int count) {
  static std::map<int, std::unique_ptr<ZooKeeperServers>> servers;
  auto& shared = servers[count];
  if (shared == nullptr) shared = std::make_unique<ZooKeeperServers>(count);
  return *shared;
}

ZooKeeperWorld::ZooKeeperWorld(ZooKeeperServers& servers) : servers_(servers) {
  if (servers.count() > 1) nudger_ = Open({.timeout_ms = CoordinatorClient::kPatientMs});
}

ZooKeeperWorld::~ZooKeeperWorld() {
  nudger_.reset();
  if (has_killed_) servers_.Restart();
}

std::unique_ptr<CoordinatorSession> ZooKeeperWorld::Open(const CoordinatorSessionOptions& options) {
  std::vector<int> all;
  for (int server = 1; server <= servers_.count(); ++server) all.push_back(server);
  return OpenAt(all, options);
}

std::unique_ptr<CoordinatorSession> ZooKeeperWorld::OpenAt(
    int server, const CoordinatorSessionOptions& options) {
  return OpenAt(std::vector<int>{server}, options);
}

std::unique_ptr<CoordinatorSession> ZooKeeperWorld::OpenAt(
    const std::vector<int>& servers, const CoordinatorSessionOptions& options) {
  std::vector<std::unique_ptr<LinkProxy>> links;
  std::string addresses;
  for (const int server : servers) {
    links.push_back(std::make_unique<LinkProxy>(servers_.address(server)));
    addresses += (addresses.empty() ? "" : ",") + links.back()->address();
  }
  auto session = OpenSession(addresses, options);
  links_[session.get()] = std::move(links);
  return session;
}

void ZooKeeperWorld::SetLink(CoordinatorSession& session, Link link) {
  for (auto& proxy : links_.at(&session)) {
    if (link == Link::kRefused) {
      proxy->Refuse();
    } else {
      proxy->Set(link != Link::kParted, link == Link::kOpen);
    }
  }
}

std::unique_ptr<OtherProcess> ZooKeeperWorld::StartProcess(const std::string& path,
                                                           uint32_t timeout_ms) {
  auto holder = std::make_unique<Holder>(servers_.address(servers_.FindLeader()), path, timeout_ms);
  while (!holder->IsReady()) SKEP_CHECK(PassTime());
  return holder;
}

void ZooKeeperWorld::FailService() {
  servers_.Kill(servers_.FindLeader());
  has_killed_ = true;
  if (servers_.count() > 1) return;
  servers_.Restart();
  has_killed_ = false;
}

void ZooKeeperWorld::Nudge() {
  constexpr uint64_t kIntervalNs = 200'000'000;
  if (nudger_ == nullptr || NowNs() < nudged_ns_ + kIntervalNs) return;
  nudged_ns_ = NowNs();
  nudger_->TakeEvents();
  nudger_->Confirm(0);
}

bool ZooKeeperWorld::PassTime() {
  Nudge();
  MutexLock lock(mutex_);
  if (!is_woken_) changed_.WaitFor(mutex_, std::chrono::milliseconds(20));
  is_woken_ = false;
  return NowNs() < began_ns_ + kLimitNs;
}

void ZooKeeperWorld::Wake() {
  MutexLock lock(mutex_);
  is_woken_ = true;
  changed_.NotifyAll();
}

std::vector<CoordinatorWorldInfo> CoordinatorWorlds() {
  const auto make = [](int count) {
    return [count] { return std::make_unique<ZooKeeperWorld>(SharedServers(count)); };
  };
  return {{.name = "ZooKeeper", .missing = &ZooKeeperServers::Missing, .make = make(1)},
          {.name = "ZooKeepers", .missing = &ZooKeeperServers::Missing, .make = make(3)}};
}

}  // namespace skep
