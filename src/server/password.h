// password.h: comparing secrets.
#pragma once

#include <cstddef>
#include <string_view>

namespace skep {

// Compares in a time that does not depend on how much of the password was right.
inline bool IsPassword(std::string_view given, std::string_view password) {
  unsigned difference = given.size() == password.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = password.empty() ? '\0' : password[i % password.size()];
    difference |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

}  // namespace skep
