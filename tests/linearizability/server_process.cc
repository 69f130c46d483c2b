#include "tests/linearizability/server_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "base/check.h"

namespace skep::linearizability {

ServerProcess::ServerProcess(const Options& options) {
  std::vector<std::string> words = {SKEP_SERVER, "--bind", "127.0.0.1", "--port", "0"};
  for (const auto& [name, value] : options) words.insert(words.end(), {"--" + name, value});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  SKEP_CHECK(pipe(ends) == 0);
  process_ = fork();
  SKEP_CHECK(process_ >= 0);
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

std::optional<Address> ServerProcess::WaitUntilReady() {
  constexpr std::string_view kReady = "ready to accept connections on ";
  do {
    const size_t at = output_.find(kReady);
    const size_t end = at == std::string::npos ? at : output_.find('\n', at);
    if (end != std::string::npos) {
      return output_.substr(at + kReady.size(), end - at - kReady.size());
    }
  } while (ReadOutput());
  return std::nullopt;
}

// Reads output. Returns false at its end.
bool ServerProcess::ReadOutput() {
  char buffer[4096];
  const ssize_t got = read(pipe_, buffer, sizeof buffer);
  if (got > 0) output_.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

bool ServerProcess::Kill() {
  if (pipe_ < 0) return true;
  kill(process_, SIGKILL);
  while (ReadOutput()) continue;
  close(pipe_);
  pipe_ = -1;
  int status = 0;
  SKEP_CHECK(waitpid(process_, &status, 0) == process_);
  const bool is_clean = output_.find("Sanitizer") == std::string::npos;
  return is_clean && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace skep::linearizability
