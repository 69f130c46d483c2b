// batch_steps.h: a step of a history as a request of a batch, and the outcome as the step's answer.
#pragma once

#include <cstdint>

#include "skep/batch.h"
#include "tests/linearizability/history.h"

namespace skep::linearizability {

// A time of a history as a batch has it: the year 3000, later than any machine's clock.
uint64_t MsOf(uint64_t time);
// Of a range.
Range RangeOf(const Step& step);
ScanOptions OptionsOf(const Step& step);
// Of a point, or a condition on one.
Request PointOf(const Step& step);
// Adds the request, whatever it is but a condition on a watch.
void AddStep(const Step& step, Batch& batch);
// Fills in the answer of the step that is in this slot.
void ReadAnswer(const Batch& batch, uint32_t slot, Step& step);

}  // namespace skep::linearizability
