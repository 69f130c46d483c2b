// version.h: what this server is, and which Redis its replies follow.
#pragma once

#include <string_view>

namespace skep {

inline constexpr std::string_view kVersion = SKEP_VERSION;  // the project's, from CMake
inline constexpr std::string_view kRedisVersion = "7.0.15";

}  // namespace skep
