// exit_status.h: how skep-cli ends, and how it says why.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace skep::cli {

inline constexpr int kDone = 0;
inline constexpr int kErrorReply = 1;    // a reply was an error, or a line was not understood
inline constexpr int kNotConnected = 2;  // also: the command line is wrong

// A line on standard error.
inline void Complain(std::string_view why) { fmt::print(stderr, "skep-cli: {}\n", why); }

}  // namespace skep::cli
