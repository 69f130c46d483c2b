// range_run.h: one range of a batch, from part to part.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // The greatest key up to the lower bound, or the bound itself.
  std::string_view FindFloor() const;
  // The request, as far as it concerns the part, with what is left of its limits.
  Request Clip(size_t part) const;
  // False: the range ends here.
  bool RunPart(size_t part, bool is_last);
  void Take(const Batch& from);
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
