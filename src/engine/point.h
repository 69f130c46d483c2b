// point.h: what a point operation, or a condition, makes of the value it finds. The same for every
// engine.
#pragma once

#include <optional>
#include <string_view>

#include "engine/batch_writer.h"
#include "skep/batch.h"

namespace skep {

// What is to become of the value.
struct PointEffect {
  enum class Action : uint8_t { kKeep, kStore, kErase };
  Action action = Action::kKeep;
  std::string_view value = {};  // kStore: the caller's bytes, or in the batch's scratch
};

// Fills in the outcome of `slot`, but for its version and hint, and says what to do. `now` is the
// value, none if the key is absent. May be called again if the value has changed meanwhile.
//   kTooLarge  and a function's own errors: the outcome is kRefused, the value is kept
PointEffect ApplyPoint(const Request& request, std::optional<std::string_view> now,
                       size_t value_bytes_max, BatchWriter& out, uint32_t slot);

}  // namespace skep
