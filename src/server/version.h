// version.h: the version of this server, and of the Redis whose replies it follows.
#pragma once

#include <string_view>

namespace skep {

inline constexpr std::string_view kVersion = SKEP_VERSION;  // from CMake
inline constexpr std::string_view kRedisVersion = "7.0.15";

}  // namespace skep
