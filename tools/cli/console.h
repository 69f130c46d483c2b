// console.h: commands in, replies printed: one from a command line, lines from a file, lines from a
// person.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/reply_format.h"
#include "tools/cli/session.h"

namespace skep::cli {

// Prints to standard output; complaints that are no replies to standard error. Thread safety: none.
class Console {
 public:
  Console(const SessionOptions& options, ReplyFormat format);

  // One command. Returns the exit status, as all of them: exit_status.h.
  int RunOnce(const std::vector<std::string>& args);
  // Lines of standard input, to its end. kErrorReply if any reply was one.
  int RunInput();
  // A person's lines, until they end it.
  int Converse();

 private:
  bool Connect();
  // Connects if there is no connection. False: says why there is none.
  bool Reconnect();
  // Runs and prints. The words are those that were typed: "0x.." is not yet bytes.
  int Run(std::span<const std::string_view> words);
  // Ctrl-C ends it, and only it.
  int RunInterruptibly(std::span<const std::string_view> words);
  int Stream(std::span<const std::string_view> args);
  void Print(const RespReply& reply, std::span<const std::string_view> args) const;
  int TellBroken(Status status, std::span<const std::string_view> args);
  // False: the person wants to leave.
  bool RunTyped(std::span<const std::string_view> words);

  const std::unique_ptr<Session> session_;
  const ReplyFormat format_;
  bool was_connected_ = false;
};

}  // namespace skep::cli
