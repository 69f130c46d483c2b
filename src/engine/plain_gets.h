// plain_gets.h: reads of keys without a batch.
//
// A batch of one kGet costs as much as the look-up in an index that is in the cache: it has a
// request, an outcome, memory for the answer, and a time. In a batch of many a request and an
// outcome, 168 bytes together, are most of what the first-level cache has to hold. An engine that
// is PlainGets answers the most common gets without them: those whose answer depends on no time,
// type or limit.
//
// Why no time is needed. A key without a deadline is present at any "now", and a key that the
// engine does not hold is absent at any. A key with a deadline is left to batches, past it as well
// as before.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "skep/batch.h"
#include "skep/get_answer.h"
#include "skep/scratch.h"

namespace skep {

// Where the values of many gets go, and how many bytes they may be together, but for the last few
// if these are short.
struct PlainValues {
  // NOLINTNEXTLINE(google-explicit-constructor): memory alone has the limit of a batch.
  PlainValues(Scratch& memory, size_t most = kAnswerBytesMax) : at(memory), bytes_max(most) {}
  bool HasRoomFor(size_t bytes) const { return bytes + at.used() <= bytes_max; }

  Scratch& at;
  size_t bytes_max;
};

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

  // Reads the newest value of each key: of key i to answers[i], which has been kPostponed. It
  // becomes kAbsent, or kDone with a copy of the value in `values`, or stays kPostponed: then
  // GetPlain would answer nothing, or `values` has no room for the value, or the engine has no
  // quick way to the key, and the caller executes a batch. Returns the ticket of all
  // answers. Each key is read at an instant of its own, in no order; a key that occurs twice is
  // read twice. `answers` is as long as `keys`. Waits, and throws, as GetPlain. Cost: the look-ups,
  // whose cache misses overlap, and a copy of each value.
  virtual Version GetManyPlain(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                               PlainValues values) = 0;
};

// The answer of a key whose value has been copied.
inline GetAnswer AnswerOf(std::string_view copy) {
  return {
      .data = copy.data(), .bytes = static_cast<uint32_t>(copy.size()), .verdict = Verdict::kDone};
}

// The plain gets of an engine; null: it has none. Cost: a dynamic_cast.
template <class AnyEngine>
PlainGets* PlainGetsOf(AnyEngine& engine) {
  return dynamic_cast<PlainGets*>(&engine);
}

}  // namespace skep
