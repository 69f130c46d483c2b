// resident_memory.h: how much memory this process occupies, as the system reports it.
#pragma once

#include <cstdint>
#include <optional>

namespace skep::bench {

// Return nothing where /proc cannot be read.
std::optional<uint64_t> ResidentBytes();      // /proc/self/statm: microseconds
std::optional<uint64_t> ResidentHugeBytes();  // on huge pages; smaps_rollup: milliseconds

// Makes malloc take blocks of a megabyte and more from the system, and give them back when they are
// freed. By default it keeps up to 64 MiB in each thread's heap. To be called at start-up.
void MapLargeBlocks();

// Restarts the process with a malloc that asks for huge pages, which glibc's does only if the
// environment says so; so that a peer's memory from malloc is not slower only because of its page
// tables. Does nothing if the environment already has a setting. To be called at the beginning of
// main().
void RestartWithHugeMalloc(char** argv);

// Measures how much the process grew during an activity, summed over several times: when subjects
// take turns in one process, each grows only in its own turns.
// Freed memory that malloc keeps does not count as growth: before each reading malloc is asked to
// give back what it can, and MapLargeBlocks() makes sure that it can.
class ResidentGrowth {
 public:
  void Begin();
  // Ends the interval that the last Begin began.
  void End();

  // Never negative. Nothing if the system did not say.
  std::optional<uint64_t> bytes() const;
  std::optional<double> huge_fraction() const;  // nothing also if the process did not grow

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
