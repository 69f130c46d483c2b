// page_test.h: the bytes that a page of docs shows.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace skep::durable {

// The bytes of all lines `offset  xx xx ..` of a page, which must have no gaps.
inline std::string BytesOfPage(const std::string& path) {
  std::ifstream page(path);
  std::string bytes;
  for (std::string line; std::getline(page, line);) {
    const bool is_dump = line.size() > 6 && line.find_first_not_of("0123456789abcdef") == 4 &&
                         line.substr(4, 2) == "  ";
    if (!is_dump) continue;
    EXPECT_EQ(std::strtoul(line.c_str(), nullptr, 16), bytes.size()) << line;
    std::istringstream words(line.substr(6, 3 * 16));
    for (std::string word; words >> word && word.size() == 2;) {
      bytes += static_cast<char>(std::strtoul(word.c_str(), nullptr, 16));
    }
  }
  return bytes;
}

}  // namespace skep::durable
