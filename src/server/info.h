// info.h: what INFO says.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skep {

class Server;

// The sections asked for (any case; none, "default", "all" and "everything": all of them), as
// Redis lays them out: "# Section", then name:value lines, then an empty line. Thread-safe.
std::string DescribeServer(Server& server, std::span<const std::string_view> sections);

}  // namespace skep
