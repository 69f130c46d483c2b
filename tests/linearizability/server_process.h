// server_process.h: runs skep-server as a process of its own, to be killed.
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

  // Starts the binary; it listens on a loopback port that the system chooses.
  explicit ServerProcess(const Options& options);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() { Kill(); }

  // Waits until the server is ready. Returns nullopt if it has ended instead.
  std::optional<Address> WaitUntilReady();
  // Ends the process with SIGKILL. Returns false if it had ended before by itself, or a sanitizer
  // has complained.
  bool Kill();
  // Returns its output until it was ready, or until its end.
  const std::string& output() const { return output_; }

 private:
  bool ReadOutput();

  pid_t process_ = 0;
  int pipe_ = -1;  // its output; -1 once it was killed
  std::string output_;
};

}  // namespace skep::linearizability
