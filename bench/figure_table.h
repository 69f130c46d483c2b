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
  std::vector<std::string> notes = {};   // lines below the title
  std::string label_name = {};           // of the first column, if that is text
  std::vector<std::string> labels = {};  // of it: one a row
  std::vector<FigureColumn> columns;
  std::vector<std::vector<std::optional<double>>> rows;  // nothing: there is no such figure
};

}  // namespace skep::bench
