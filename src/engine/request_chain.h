// request_chain.h: chains of requests of which only the first that finds something does its work:
// to pop from the first of several keys that has an element, say.
//
// Each slot of a chain but the first is a kApply with kOperandOfSlot (skep/batch.h) of the slot
// before, and with this flag.
#pragma once

#include <cstdint>

#include "skep/batch.h"

namespace skep {

// If the outcome.value of the slot `limit` is not empty, it is this slot's, too: nothing is done,
// and the value's type is not asked for. So the last slot of a chain has what the first that found
// something returned.
inline constexpr uint8_t kUnlessSome = 32;

constexpr bool HasUnlessSome(const Request& request) { return (request.flags & kUnlessSome) != 0; }

// A slot of a chain behind the slot `before`.
inline Request ChainedAfter(uint32_t before, std::string_view key, const Function* function,
                            std::string_view operand) {
  return {.op = Op::kApply,
          .flags = Request::kOperandOfSlot | kUnlessSome,
          .limit = before,
          .key = key,
          .value = operand,
          .function = function};
}

}  // namespace skep
