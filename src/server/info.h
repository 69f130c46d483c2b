// info.h: the text of INFO.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skep {

class Server;

// The requested sections, as Redis lays them out: "# Section", then name:value lines, then an empty
// line. Names in upper or lower case; none, "default" and "all": all sections that take no time;
// "everything": all of them. Thread-safe.
std::string DescribeServer(Server& server, std::span<const std::string_view> sections);

}  // namespace skep
