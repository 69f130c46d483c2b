#include "bench/key_sweep.h"

#include <numeric>

#include "base/random.h"

namespace skep::bench {
namespace {

// Steps by a stride that has no factor in common with how many there are, near their golden
// section: neighbours in time are not neighbours in number.
uint64_t StrideOf(uint64_t items) {
  uint64_t stride = static_cast<uint64_t>(static_cast<double>(items) * 0.6180339887) + 1;
  while (std::gcd(stride, items) != 1) ++stride;
  return stride;
}

}  // namespace

KeySweep::KeySweep(OpKind kind, uint64_t items, uint32_t thread, uint32_t threads, uint64_t seed)
    : kind_(kind), items_(items) {
  const uint64_t stride = StrideOf(items_);
  next_ = Modulo(SeededRandom(seed).Below(items_), thread, stride);
  step_ = Modulo(0, threads, stride);
}

void KeySweep::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    stream.Add(kind_, next_);
    next_ = Modulo(next_, 1, step_);
  }
}

uint64_t KeySweep::Modulo(uint64_t base, uint64_t times, uint64_t step) const {
  const auto sum = static_cast<unsigned __int128>(times) * step + base;
  return static_cast<uint64_t>(sum % items_);
}

void InsertedKeys::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i, next_ += step_) stream.Add(kind_, next_);
}

}  // namespace skep::bench
