// zookeeper_servers.h: ZooKeeper's servers on this machine, by scripts/zookeeper, to be killed.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/network.h"

namespace skep {

// Thread safety: one owner. The thread that makes it must outlive it: the script, and the servers
// with it, end with that thread, so that a test that is killed leaves none behind.
class ZooKeeperServers {
 public:
  // What is missing to run one; "": nothing.
  static std::string Missing();

  // Starts so many and waits until clients can connect.
  explicit ZooKeeperServers(int count);
  ZooKeeperServers(const ZooKeeperServers&) = delete;
  ZooKeeperServers& operator=(const ZooKeeperServers&) = delete;
  // Ends them; nothing of them is left.
  ~ZooKeeperServers();

  int count() const { return static_cast<int>(pids_.size()); }
  Address address(int server) const;
  // Which one is the leader, or the only one; waits until there is one.
  int FindLeader() const;
  // Ends one with SIGKILL.
  void Kill(int server);
  // Stops all threads of one, as a machine that is too busy does, and lets them go on.
  void Stop(int server);
  void Continue(int server);
  // Starts those again that were killed, and waits until clients can connect to all.
  void Restart();

 private:
  void ReadUntilReady();
  bool ReadLine(std::string& line);

  pid_t script_ = 0;
  int pipe_ = -1;
  std::string unread_;
  std::map<int, pid_t> pids_;         // by number, from 1 on
  std::map<int, std::string> ports_;  // the same
};

}  // namespace skep
