// resident_memory.h: what the system says this process occupies.
#pragma once

#include <cstdint>
#include <optional>

namespace skep::bench {

// Nothing where /proc cannot be read.
std::optional<uint64_t> ResidentBytes();      // /proc/self/statm: microseconds
std::optional<uint64_t> ResidentHugeBytes();  // of them on huge pages; smaps_rollup: milliseconds

// From now on malloc takes blocks of a megabyte and more from the system and gives them back when
// they are freed. Left alone, it would keep up to 64 MiB in each thread's heap. For start-up.
void MapLargeBlocks();

// Begins the process anew with a malloc that asks for huge pages, which glibc's does only if it is
// told so by the environment; so that what a peer gets from malloc is not slower for its page
// tables alone. Does nothing if the environment has a wish of its own. For the beginning of main().
void RestartWithHugeMalloc(char** argv);

// How much the process grew while something was done, summed over several times: with subjects
// that take turns in one process, each grows only in its own turns.
//
// What malloc keeps of a turn's freed memory is nobody's growth: before each reading it is asked to
// give back what it can, and MapLargeBlocks() makes sure that it can.
class ResidentGrowth {
 public:
  void Begin();
  // Pairs with the Begin before it.
  void End();

  // Never negative. Nothing if the system did not say.
  std::optional<uint64_t> bytes() const;
  std::optional<double> huge_fraction() const;  // nothing also if it did not grow

 private:
  struct Reading {
    int64_t bytes;
    int64_t huge_bytes;
  };
  // Zeros if the system does not say; known_ is false from then on.
  Reading Read();

  bool known_ = true;
  Reading begin_ = {};
  Reading sum_ = {};
};

}  // namespace skep::bench
