#include "tools/cli/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/ascii.h"
#include "base/file_descriptor.h"

namespace skep::cli {
namespace {

FileDescriptor OpenToWrite(const std::string& path, int flags) {
  return FileDescriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600));
}

bool WriteAll(const FileDescriptor& file, std::string_view bytes) {
  return file.valid() &&
         write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

bool HasSecret(std::span<const std::string_view> words) {
  if (words.empty()) return false;
  const auto is = [&](size_t i, std::string_view word) {
    return i < words.size() && EqualsIgnoringCase(words[i], word);
  };
  const auto has = [&](std::string_view part) {
    return std::ranges::any_of(words.subspan(1), [&](std::string_view word) {
      return LowerCase(word).find(part) != std::string::npos;
    });
  };
  if (is(0, "auth")) return true;
  if (is(0, "hello") || is(0, "migrate")) return has("auth");
  if (is(0, "acl")) return is(1, "setuser");
  return is(0, "config") && is(1, "set") && (has("pass") || has("auth"));
}

std::vector<std::string> HistoryFile::Load() {
  std::vector<std::string> lines;
  if (path_.empty()) return lines;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  const bool is_long = lines.size() >= 2 * kLinesMax;
  if (lines.size() > kLinesMax) lines.erase(lines.begin(), lines.end() - kLinesMax);
  if (is_long) Rewrite(lines);
  return lines;
}

void HistoryFile::Append(std::string_view line) {
  if (path_.empty()) return;
  static_cast<void>(WriteAll(OpenToWrite(path_, O_APPEND), std::string(line) + "\n"));
}

void HistoryFile::Rewrite(std::span<const std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const std::string shorter = path_ + ".new";
  if (WriteAll(OpenToWrite(shorter, O_TRUNC), text)) {
    static_cast<void>(std::rename(shorter.c_str(), path_.c_str()));
  }
}

std::string HistoryPath() {
  if (const char* const path = std::getenv("SKEPCLI_HISTFILE")) return path;
  const char* const home = std::getenv("HOME");
  return home == nullptr ? std::string() : std::string(home) + "/.skepcli_history";
}

}  // namespace skep::cli
