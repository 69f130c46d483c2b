// get_answer.h: what Store::GetMany tells of one key.
#pragma once

#include <cstdint>
#include <string_view>

#include "skep/batch.h"

namespace skep {

struct GetAnswer {
  const char* data = nullptr;  // the bytes of the value
  uint32_t bytes = 0;          // how many they are
  // kDone, kAbsent or kRefused; kPostponed: the key was not looked for.
  Verdict verdict = Verdict::kPostponed;

  // The value of a key that was found; else no bytes.
  std::string_view value() const { return {data, bytes}; }
};
static_assert(sizeof(GetAnswer) == 16);

}  // namespace skep
