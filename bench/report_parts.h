// report_parts.h: what the reports of all benchmarks are made of: rows of a table, an object of
// JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace skep::bench {

using Json = nlohmann::ordered_json;

// Null for what is not known; the library's own conversion would need it said for each type.
template <typename T>
Json OrNull(const std::optional<T>& figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

inline double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

// The processor, and how many cores of it this process may use.
std::string Machine();

// The object, with the machine, the commit, the date and the command, as one line: easy to append
// to a file of results.
std::string Line(Json object);

// One line of a table.
std::string Row(std::string_view name, const std::string& figure, std::string_view unit);
std::string Row(std::string_view name, double figure, std::string_view unit);
std::string MicrosecondsRow(std::string_view name, uint64_t ns);

}  // namespace skep::bench
