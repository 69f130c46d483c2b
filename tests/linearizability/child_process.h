// child_process.h: runs a program as a process of its own, to be killed, and reads what it prints.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skep::linearizability {

// Returns an address of the loopback interface with a port at which nobody listens now. It is none
// of those that the system gives to outgoing connections, so none takes it while a server restarts.
std::string FreeAddress();

// Thread safety: one owner. The thread that makes it must outlive it: the process ends with that
// thread, so that a test that is killed leaves none behind.
class ChildProcess {
 public:
  // The program and its arguments.
  explicit ChildProcess(std::vector<std::string> words);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { Kill(); }

  // Waits for a line of its output that has the text, behind those that were returned before.
  // Returns what follows the text in it; nothing: the process has ended instead.
  std::optional<std::string> WaitFor(std::string_view text);
  // Waits up to so many milliseconds for output, and reads it. False: the process has ended.
  bool ReadSome(int timeout_ms);
  // Whether it was not killed yet.
  bool is_running() const { return pipe_ >= 0; }
  // Ends the process with SIGKILL. Returns false if it had ended before by itself, or a sanitizer
  // has complained.
  bool Kill();
  // Sends a signal that does not end it: SIGSTOP, SIGCONT.
  void Signal(int number) const;
  // Returns its output as far as it was read, after Kill() all of it.
  const std::string& output() const { return output_; }

 private:
  bool ReadOutput();

  pid_t process_ = 0;
  int pipe_ = -1;  // its output; -1 once it was killed
  std::string output_;
  size_t searched_ = 0;  // of the output
};

}  // namespace skep::linearizability
