// exit_status.h: the exit statuses of skep-cli, and its complaints.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace skep::cli {

inline constexpr int kDone = 0;
inline constexpr int kErrorReply = 1;    // a reply was an error, or a line was not understood
inline constexpr int kNotConnected = 2;  // also: the command line is wrong

// Prints a line on standard error.
inline void Complain(std::string_view why) { fmt::print(stderr, "skep-cli: {}\n", why); }

}  // namespace skep::cli
