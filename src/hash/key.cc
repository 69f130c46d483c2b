#include "hash/key.h"

#include "base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace skep::hash {

const HashSecrets kHashSecrets = {.head = SystemRandom().Next(),
                                  .tail = SystemRandom().Next(),
                                  .mixed = SystemRandom().Next(),
                                  .size = SystemRandom().Next()};

uint64_t LongHashOf(std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), kHashSecrets.head);
}

}  // namespace skep::hash
