#include "tests/coordinator/zookeeper_servers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

#include "base/check.h"

namespace skep {
namespace {

using std::chrono::milliseconds;

bool CanRun(const char* command) {
  return std::system((std::string("command -v ") + command + " >/dev/null 2>&1").c_str()) == 0;
}

// The threads of a process stop one by one, each when it next runs.
bool IsStopped(pid_t pid) {
  const std::filesystem::path threads = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads)) {
    std::ifstream file(thread.path() / "stat");
    const std::string stat(std::istreambuf_iterator<char>(file), {});
    // "number (name) state ...": a name may have parentheses too.
    const size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos || stat.substr(name_end + 2, 1) != "T") return false;
  }
  return true;
}

// What a server says of itself; "": nothing.
std::string AskServer(const Address& address) {
  auto stream = SocketNetwork().Connect(address, 1000);
  if (!stream) return "";
  (*stream)->Write("srvr");
  std::string answer;
  char bytes[1024];
  for (int tries = 0; tries < 200; ++tries) {
    const ssize_t got = (*stream)->Read(bytes, sizeof(bytes));
    if (got > 0) answer.append(bytes, static_cast<size_t>(got));
    if (got == 0) break;
    if (got < 0) std::this_thread::sleep_for(milliseconds(5));
  }
  return answer;
}

}  // namespace

std::string ZooKeeperServers::Missing() {
  if (!CanRun("java")) return "java is not installed";
  if (!std::filesystem::exists("/usr/share/java/zookeeper.jar")) {
    return "libzookeeper-java is not installed";
  }
  return "";
}

ZooKeeperServers::ZooKeeperServers(int count) {
  int ends[2];
  SKEP_CHECK(pipe(ends) == 0);
  const std::string number = std::to_string(count);
  script_ = fork();
  SKEP_CHECK(script_ >= 0);
  if (script_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(SKEP_ZOOKEEPER_SCRIPT, SKEP_ZOOKEEPER_SCRIPT, number.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
  ReadUntilReady();
}

ZooKeeperServers::~ZooKeeperServers() {
  kill(script_, SIGTERM);
  waitpid(script_, nullptr, 0);
  close(pipe_);
}

void ZooKeeperServers::ReadUntilReady() {
  std::string line;
  while (ReadLine(line)) {
    if (line.starts_with("ready: ")) return;
    int server = 0;
    int port = 0;
    int pid = 0;
    SKEP_CHECK(std::sscanf(line.c_str(), "server %d: port %d, pid %d", &server, &port, &pid) == 3);
    pids_[server] = pid;
    ports_[server] = std::to_string(port);
  }
  SKEP_CHECK(!"scripts/zookeeper could not start its servers");
}

bool ZooKeeperServers::ReadLine(std::string& line) {
  size_t end = unread_.find('\n');
  while (end == std::string::npos) {
    char bytes[1024];
    const ssize_t got = read(pipe_, bytes, sizeof(bytes));
    if (got <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(got));
    end = unread_.find('\n');
  }
  line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return true;
}

Address ZooKeeperServers::address(int server) const { return "127.0.0.1:" + ports_.at(server); }

int ZooKeeperServers::FindLeader() const {
  while (true) {
    for (const auto& [server, pid] : pids_) {
      const std::string said = AskServer(address(server));
      if (said.find("Mode: leader") != std::string::npos ||
          said.find("Mode: standalone") != std::string::npos) {
        return server;
      }
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

void ZooKeeperServers::Kill(int server) { SKEP_CHECK(kill(pids_.at(server), SIGKILL) == 0); }
void ZooKeeperServers::Stop(int server) {
  const pid_t pid = pids_.at(server);
  SKEP_CHECK(kill(pid, SIGSTOP) == 0);
  while (!IsStopped(pid)) std::this_thread::sleep_for(milliseconds(1));
}

void ZooKeeperServers::Continue(int server) { SKEP_CHECK(kill(pids_.at(server), SIGCONT) == 0); }

void ZooKeeperServers::Restart() {
  SKEP_CHECK(kill(script_, SIGUSR1) == 0);
  ReadUntilReady();
}

}  // namespace skep
