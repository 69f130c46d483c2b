// history_file.h: the lines that were typed, kept from one session to the next.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skep::cli {

// Returns whether a line contains a password, so that it must not be kept: AUTH, HELLO with AUTH,
// MIGRATE with AUTH or AUTH2, ACL SETUSER, CONFIG SET of an option whose name says so.
bool HasSecret(std::span<const std::string_view> words);

// A history, one typed line a line of text. Lines are appended as they are typed, so that
// simultaneous sessions lose none; only the file's owner may read it. Thread safety: one owner.
class HistoryFile {
 public:
  static constexpr size_t kLinesMax = 1000;

  // An empty path: nothing is kept.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // Returns the last lines, at most kLinesMax, the oldest first. Shortens a file that has twice as
  // many.
  std::vector<std::string> Load();
  // Appends a line. Ignores errors: a history is no reason to fail.
  void Append(std::string_view line);

 private:
  void Rewrite(std::span<const std::string> lines);

  const std::string path_;
};

// Returns $SKEPCLI_HISTFILE, or .skepcli_history in $HOME; empty if the variable is empty, or there
// is no $HOME.
std::string HistoryPath();

}  // namespace skep::cli
