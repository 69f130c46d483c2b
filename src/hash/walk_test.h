// walk_test.h: the common parts of the tests of walks.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "hash/key.h"
#include "hash/position.h"

namespace skep::hash {

// Returns keys of one hash, so of one position: the second half of these 16 bytes makes the factor
// of the first half zero (HashOf).
inline std::vector<std::string> KeysOfOneHash(size_t count) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < count; ++i) {
    std::string key(16, '\0');
    std::memcpy(key.data(), &i, sizeof(i));
    std::memcpy(key.data() + 8, &kHashSecrets.tail, sizeof(uint64_t));
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace skep::hash
