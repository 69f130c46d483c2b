// info.h: what INFO says.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skep {

class Server;

// The sections asked for, as Redis lays them out: "# Section", then name:value lines, then an empty
// line. Names in any case; none, "default" and "all": all that take no time; "everything": all of
// them. Thread-safe.
std::string DescribeServer(Server& server, std::span<const std::string_view> sections);

}  // namespace skep
