#include "tests/linearizability/child_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <random>

#include "base/check.h"

namespace skep::linearizability {

ChildProcess::ChildProcess(std::vector<std::string> words) {
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

std::optional<std::string> ChildProcess::WaitFor(std::string_view text) {
  do {
    const size_t at = output_.find(text, searched_);
    const size_t end = at == std::string::npos ? at : output_.find('\n', at);
    if (end != std::string::npos) {
      searched_ = end;
      return output_.substr(at + text.size(), end - at - text.size());
    }
  } while (ReadOutput());
  return std::nullopt;
}

// Reads output. Returns false at its end.
bool ChildProcess::ReadOutput() {
  char buffer[4096];
  const ssize_t got = read(pipe_, buffer, sizeof buffer);
  if (got > 0) output_.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

bool ChildProcess::ReadSome(int timeout_ms) {
  pollfd readable = {.fd = pipe_, .events = POLLIN, .revents = 0};
  return poll(&readable, 1, timeout_ms) <= 0 || ReadOutput();
}

void ChildProcess::Signal(int number) const {
  if (pipe_ >= 0) kill(process_, number);
}

bool ChildProcess::Kill() {
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

std::string FreeAddress() {
  std::random_device random;
  while (true) {
    const auto port = static_cast<uint16_t>(10'000 + random() % 22'000);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const bool is_free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (is_free) return "127.0.0.1:" + std::to_string(port);
  }
}

}  // namespace skep::linearizability
