// plain_gets.h: reads of one key without a batch.
//
// A batch of one kGet costs as much as the look-up in an index that is in the cache: it has a
// request, an outcome, memory for the answer, and a time. An engine that is PlainGets answers the
// most common gets without them: those whose answer depends on no time, type or limit.
//
// Why no time is needed. A key without a deadline is present at any "now", and a key that the
// engine does not hold is absent at any. A key with a deadline is left to batches, past it as well
// as before.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "skep/batch.h"

namespace skep {

// Thread-safe.
class PlainGets {
 public:
  virtual ~PlainGets() = default;

  // Reads the newest value of the key, as a batch of one kGet without flags does, if the key is
  // absent or has a value of kPlainType and no deadline. Then returns the ticket, as
  // Engine::Execute does, and sets *value, which has been empty, if the key is present. Else, or if
  // the request would be refused, returns nothing and leaves *value empty: the caller executes a
  // batch. Waits for other threads as a kGet does. If it throws std::bad_alloc, nothing is left
  // locked. Cost: the look-up, and a copy of the value.
  virtual std::optional<Version> GetPlain(std::string_view key,
                                          std::optional<std::string>* value) = 0;
};

// The plain gets of an engine; null: it has none. Cost: a dynamic_cast.
template <class AnyEngine>
PlainGets* PlainGetsOf(AnyEngine& engine) {
  return dynamic_cast<PlainGets*>(&engine);
}

}  // namespace skep
