// history_file.h: the lines that were typed, kept from one session to the next.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skep::cli {

// Whether a line has a password, so that it must not be kept: AUTH, HELLO with AUTH, MIGRATE with
// AUTH or AUTH2, ACL SETUSER, CONFIG SET of an option whose name says so.
bool HasSecret(std::span<const std::string_view> words);

// A line a line of text, appended as it is typed, so that sessions beside each other lose none; for
// its owner alone to read. Thread safety: one owner.
class HistoryFile {
 public:
  static constexpr size_t kLinesMax = 1000;

  // An empty path: nothing is kept.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // The last lines, at most kLinesMax, the oldest first. A file with twice as many is cut.
  std::vector<std::string> Load();
  // What cannot be written is not: a history is no reason to fail.
  void Append(std::string_view line);

 private:
  void Rewrite(std::span<const std::string> lines);

  const std::string path_;
};

// $SKEPCLI_HISTFILE, or .skepcli_history in $HOME; empty if that is what the variable says, or
// there is no $HOME.
std::string HistoryPath();

}  // namespace skep::cli
