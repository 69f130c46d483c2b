// conversion.h: a collection in one value becomes a large one.
//
// One atomic batch requires the value as it was read, and stores the record in its place, the
// segments and the names (names.h). So nobody sees a state in between, and the key keeps its
// deadline. The caller holds the lock of the key (collection_engine.h): a rename of the key would
// have to know of the names.
#pragma once

#include <cstdint>
#include <string_view>

#include "collections/access.h"
#include "collections/change.h"

namespace skep::collections {

struct Conversion {
  WriteResult result = WriteResult::kAgain;
  Status status;           // kRefused: why
  int64_t segments = 0;    // hidden items that were made
  uint64_t deadlines = 0;  // fields of a hash that have one
  Version version = 0;
};

// Makes the collection at the key a large one with this id, which nobody has. kAgain: the key has
// no collection of this kind in one value, or it was written meanwhile.
// Cost: of the collection.
Conversion Convert(Access& access, std::string_view key, uint8_t kind, uint64_t id);

}  // namespace skep::collections
