#include "bench/memory_limits.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "bench/repeat.h"

namespace skep::bench {
namespace {

constexpr size_t kLineWords = kLineBytes / sizeof(uint64_t);
constexpr uint64_t kRunLines = kRunBytes / kLineBytes;
// A pass over this many bytes is long enough to time and short enough to repeat.
constexpr uint64_t kSequentialBytesMax = uint64_t{2} << 30;

// Random indices; equal seeds give equal ones. The multiplier is Knuth's (MMIX); only the upper
// half of the state, which is the better one, is used.
class Indices {
 public:
  Indices(uint64_t seed, uint64_t bound) : state_(seed * 0x9e3779b97f4a7c15 + 1), bound_(bound) {}

  uint64_t Next() { return Below(bound_); }
  // Returns an index in [0, bound), bound < 2^32.
  uint64_t Below(uint64_t bound) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return (state_ >> 32) * bound >> 32;
  }

 private:
  uint64_t state_;
  uint64_t bound_;
};

uint64_t SumOf(const uint64_t* words, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

double MopsOf(uint64_t operations, double seconds) {
  return static_cast<double>(operations) / seconds / 1e6;
}

}  // namespace

MemoryLimits::MemoryLimits(PageRegion& region, uint64_t reads, int repetitions)
    : words_(reinterpret_cast<uint64_t*>(region.begin())),
      lines_(region.size() / kLineBytes),
      reads_(reads),
      repetitions_(repetitions) {
  SKEP_CHECK(lines_ > kRunLines && lines_ < uint64_t{1} << 32);
}

void MemoryLimits::Touch() {
  std::fill_n(words_, lines_ * kLineWords, uint64_t{1});
  Keep(words_);
}

double MemoryLimits::AddressMops() {
  return MopsOf(reads_, MedianSeconds(repetitions_, [&](int repetition) {
                  Indices indices(repetition, lines_);
                  uint64_t sum = 0;
                  for (uint64_t i = 0; i < reads_; ++i) sum += indices.Next();
                  Keep(sum);
                }));
}

double MemoryLimits::RandomReadMops() {
  return MopsOf(reads_, MedianSeconds(repetitions_, [&](int repetition) {
                  Indices indices(repetition, lines_);
                  uint64_t sum = 0;
                  for (uint64_t i = 0; i < reads_; ++i) sum += *line(indices.Next());
                  Keep(sum);
                }));
}

double MemoryLimits::RandomRmwMops() {
  return MopsOf(reads_, MedianSeconds(repetitions_, [&](int repetition) {
                  Indices indices(repetition, lines_);
                  for (uint64_t i = 0; i < reads_; ++i) *line(indices.Next()) += i;
                  Keep(words_);
                }));
}

double MemoryLimits::RandomStart3200Mops() {
  const uint64_t runs = std::max<uint64_t>(reads_ / kRunLines, 1);
  return MopsOf(runs, MedianSeconds(repetitions_, [&](int repetition) {
                  Indices indices(repetition, lines_ - kRunLines);
                  uint64_t sum = 0;
                  for (uint64_t i = 0; i < runs; ++i) {
                    sum += SumOf(line(indices.Next()), kRunLines * kLineWords);
                  }
                  Keep(sum);
                }));
}

double MemoryLimits::SequentialGbs() {
  const uint64_t bytes = std::min(lines_ * kLineBytes, kSequentialBytesMax);
  const double seconds =
      MedianSeconds(repetitions_, [&](int) { Keep(SumOf(words_, bytes / sizeof(uint64_t))); });
  return static_cast<double>(bytes) / seconds / 1e9;
}

double MemoryLimits::ChaseNs() {
  MakeCycle();
  const uint64_t steps = std::max<uint64_t>(reads_ / 8, 1);
  uint64_t at = 0;
  const double seconds = MedianSeconds(repetitions_, [&](int) {
    for (uint64_t i = 0; i < steps; ++i) at = *line(at);
    Keep(at);
  });
  return seconds / static_cast<double>(steps) * 1e9;
}

// Sattolo's shuffle: every permutation it can make is one cycle through all lines.
void MemoryLimits::MakeCycle() {
  for (uint64_t i = 0; i < lines_; ++i) *line(i) = i;
  Indices indices(1, lines_);
  for (uint64_t i = lines_ - 1; i > 0; --i) std::swap(*line(i), *line(indices.Below(i)));
}

}  // namespace skep::bench
