// figure_list.h: finds one of the figures that a command has, by the name that --figure gives.
#pragma once

#include <cstddef>
#include <expected>
#include <string>

namespace skep::bench {

// `Figure` has a `name`. If there is none of that name, returns a line for people that lists all.
template <typename Figure, size_t kCount>
std::expected<const Figure*, std::string> FindFigure(const Figure (&figures)[kCount],
                                                     const std::string& name) {
  std::string names;
  for (const Figure& figure : figures) {
    if (figure.name == name) return &figure;
    names += (names.empty() ? "" : ", ") + std::string(figure.name);
  }
  return std::unexpected("there are --figure " + names);
}

}  // namespace skep::bench
