// server_process.h: runs skep-server as a process of its own, to be killed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/network.h"
#include "tests/linearizability/child_process.h"

namespace skep::linearizability {

// Thread safety: as ChildProcess.
class ServerProcess : public ChildProcess {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;  // names and values

  // Starts the binary; it listens on a loopback port that the system chooses.
  explicit ServerProcess(const Options& options) : ChildProcess(WordsOf(options)) {}

  // Waits until the server is ready. Returns nullopt if it has ended instead.
  std::optional<Address> WaitUntilReady() { return WaitFor("ready to accept connections on "); }

 private:
  static std::vector<std::string> WordsOf(const Options& options) {
    std::vector<std::string> words = {SKEP_SERVER, "--bind", "127.0.0.1", "--port", "0"};
    for (const auto& [name, value] : options) words.insert(words.end(), {"--" + name, value});
    return words;
  }
};

}  // namespace skep::linearizability
