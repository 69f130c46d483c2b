// report_parts.h: the common parts of the reports of all benchmarks: rows of a table, an object of
// JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace skep::bench {

using Json = nlohmann::ordered_json;

// Returns null for an unknown figure; the library's own conversion would have to be declared for
// each type.
template <typename T>
Json OrNull(const std::optional<T>& figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

inline double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

// Returns the processor, and how many of its cores this process may use.
std::string Machine();

// Returns the object, with the machine, the commit, the date and the command, as one line that is
// easy to append to a file of results.
std::string Line(Json object);

// Return one line of a table.
std::string Row(std::string_view name, const std::string& figure, std::string_view unit);
std::string Row(std::string_view name, double figure, std::string_view unit);
std::string MicrosecondsRow(std::string_view name, uint64_t ns);

}  // namespace skep::bench
