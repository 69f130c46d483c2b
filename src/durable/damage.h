// damage.h: a part of a store's file that is not as it was written.
#pragma once

#include <cstdint>
#include <string>

namespace skep::durable {

// Bytes that fail their check or are missing.
struct Damage {
  std::string file;     // its path
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  const char* what = "";  // a literal

  friend bool operator==(const Damage& a, const Damage& b) {
    return a.file == b.file && a.offset == b.offset && a.bytes == b.bytes;
  }
};

}  // namespace skep::durable
