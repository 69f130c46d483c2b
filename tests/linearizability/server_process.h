// server_process.h: skep-server as a process of its own, to be killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/network.h"

namespace skep::linearizability {

// Thread safety: one owner. The thread that makes it must outlive it: the process ends with that
// thread, so that a test that is killed leaves none behind.
class ServerProcess {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;  // names and values

  // Starts the binary; it listens on a port of the loopback that the system chooses.
  explicit ServerProcess(const Options& options);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() { Kill(); }

  // Waits until it serves. Nullopt: it has ended instead.
  std::optional<Address> WaitUntilReady();
  // Ends it with SIGKILL. False: it had ended before, by itself, or a sanitizer has complained.
  bool Kill();
  // What it has printed up to its being ready, or to its end.
  const std::string& output() const { return output_; }

 private:
  bool ReadOutput();

  pid_t process_ = 0;
  int pipe_ = -1;  // what it prints; -1 once it was killed
  std::string output_;
};

}  // namespace skep::linearizability
