// elements.h: collections as wholes, read from the value of a key whatever its type is.
//
// Thread safety: all functions are pure. Cost: a look at each element.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "types/sorted_set.h"

namespace skep::types {

// The elements of a list, or the members of a set or a sorted set, in the order of the value.
// Nothing if the value has another type, or its bytes are none of that type. Views of the value.
std::optional<std::vector<std::string_view>> ReadElements(uint8_t type, std::string_view value);

// The members of a sorted set, or of a set, where scores are 1; otherwise as above.
std::optional<std::vector<Entry>> ReadScored(uint8_t type, std::string_view value);

}  // namespace skep::types
