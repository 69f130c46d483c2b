// range_run.h: one range of a batch, from part to part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/batch_writer.h"
#include "ranges/ranged_engine.h"

namespace skep::ranges {

class RangeRun {
 public:
  // Of the request in this slot; the answer goes to `out`.
  RangeRun(const RangedEngine& engine, const Batch& batch, uint32_t slot, BatchWriter& out);

  void Run();

 private:
  // The request begins at the greatest key up to its lower bound: `*first` is its part, executed if
  // that was the part of the bound. False: a part has refused.
  bool FindFloor(size_t* first);
  // The greatest key of the part below `end`; nothing: there is none. False: it has refused.
  bool FindLast(size_t part, std::string_view end, std::optional<std::string_view>* key);
  // The request, as far as it concerns the part, with what is left of its limits.
  Request Clip(size_t part) const;
  void Execute(size_t part, Batch& batch) const;
  bool RunPart(size_t part, bool is_last);
  // Takes the answer of a part. False: the range ends here.
  bool Take(const Batch& from, size_t part, bool is_last);
  void TakeItems(const Batch& from);
  // False, and the outcome says why: the part has not done it.
  bool IsDone(const Outcome& told);
  // It stops at a border of the part and is to be gone on with there.
  void StopBehind(size_t part);
  bool IsAtLimit() const;

  const RangedEngine& engine_;
  const Batch& batch_;
  const uint32_t slot_;
  BatchWriter& out_;
  Request request_;
  uint32_t left_;  // of the limit
  uint32_t visits_left_;
  size_t item_bytes_ = 0;  // of the items so far
};

}  // namespace skep::ranges
