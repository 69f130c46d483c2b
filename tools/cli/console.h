// console.h: runs commands and prints their replies: one from a command line, lines from a file, or
// lines that a person types.
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

// Prints replies to standard output, and its own complaints to standard error. Thread safety: none.
class Console {
 public:
  Console(const SessionOptions& options, ReplyFormat format);

  // Runs one command. Returns the exit status, as the next two do (exit_status.h).
  int RunOnce(const std::vector<std::string>& args);
  // Runs the lines of standard input, to its end. Returns kErrorReply if any reply was an error.
  int RunInput();
  // Runs the lines that a person types, until the person ends it.
  int Converse();

 private:
  bool Connect();
  // Connects if there is no connection. If that fails, prints why and returns false.
  bool Reconnect();
  // Runs a command and prints its reply. The words are as typed: "0x.." is not decoded yet.
  int Run(std::span<const std::string_view> words);
  // Runs a command so that Ctrl-C ends it, and not the process.
  int RunInterruptibly(std::span<const std::string_view> words);
  int Stream(std::span<const std::string_view> args);
  void Print(const RespReply& reply, std::span<const std::string_view> args) const;
  int TellBroken(Status status, std::span<const std::string_view> args);
  // Runs a typed line. Returns false if the person wants to leave.
  bool RunTyped(std::span<const std::string_view> words);

  const std::unique_ptr<Session> session_;
  const ReplyFormat format_;
  bool was_connected_ = false;
};

}  // namespace skep::cli
