// answer_line.h: finds lines in the bytes that a server sent.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace skep::bench {

// The length of the longest line that an answer may have.
inline constexpr size_t kAnswerLineBytesMax = 64 * 1024;

// Returns the first line, without CR LF; nothing if its end has not come yet.
inline std::optional<std::string_view> FirstLine(std::string_view input) {
  const size_t end = input.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  return input.substr(0, end);
}

}  // namespace skep::bench
