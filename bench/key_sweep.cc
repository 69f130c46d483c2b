#include "bench/key_sweep.h"

#include <numeric>

#include "base/random.h"

namespace skep::bench {
namespace {

// Returns a stride that has no factor in common with the number of items, near their golden
// section: neighbours in time are not neighbours in number.
uint64_t StrideOf(uint64_t items) {
  uint64_t stride = static_cast<uint64_t>(static_cast<double>(items) * 0.6180339887) + 1;
  while (std::gcd(stride, items) != 1) ++stride;
  return stride;
}

}  // namespace

SweepOrder::SweepOrder(uint64_t items, uint64_t seed)
    : items_(items), first_(SeededRandom(seed).Below(items)), stride_(StrideOf(items)) {}

uint64_t SweepOrder::at(uint64_t index) const {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(index) * stride_ + first_) % items_);
}

void KeySweep::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i, next_ += step_) stream.Add(kind_, order_.at(next_));
}

void InsertedKeys::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i, next_ += step_) stream.Add(kind_, next_);
}

}  // namespace skep::bench
