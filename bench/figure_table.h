// figure_table.h: a figure or table of a paper, as numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace skep::bench {

struct FigureColumn {
  std::string name;  // also the key of a JSON object
  int digits;        // behind the decimal point
};

struct FigureTable {
  std::string title;
  std::vector<FigureColumn> columns;
  std::vector<std::vector<std::optional<double>>> rows;  // nothing: there is no such figure
};

}  // namespace skep::bench
