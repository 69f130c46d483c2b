// ordered_subject.h: one index in the benchmark of ordered indexes, and its turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/ordered.h"
#include "bench/phase.h"
#include "bench/record_format.h"
#include "bench/resident_memory.h"

namespace skep::bench {

// Thread safety: none; one owner. Turns make their own threads.
class OrderedSubject {
 public:
  // `options` and `values` must outlive the subject. The index is made by the first turn.
  OrderedSubject(std::string engine, const OrderedOptions& options, const ValuePool& values);

  const std::string& engine() const { return engine_; }

  // One turn of the load (ordered.h). Equal seeds make equal operations. What is reported is of the
  // part under the clock, but errors of the others count too.
  //   kInvalidArgument, kNotSupported  no such engine, or not for these options
  //   kIo                              no address space
  Result<PhaseReport> Turn(const OrderedLoad& load, uint64_t seed);

  // Reads back `options.ops` of the keys, or all if they are fewer. After the first turn.
  PhaseReport ReadBack();

  Footprint Measure();                                      // after the first turn
  const ResidentGrowth& growth() const { return growth_; }  // in all turns so far

 private:
  Status Renew();
  Result<PhaseReport> Insert();
  PhaseReport Delete(uint64_t seed);
  PhaseReport Choose(const OrderedLoad& load, uint64_t seed);
  PhaseReport Sweep(std::string what, OpKind kind, uint64_t ops, uint64_t seed);
  // `make(share)` is the source of a thread.
  template <typename Make>
  PhaseReport Run(std::string what, uint64_t ops, uint64_t seed, Make make);

  const std::string engine_;
  const OrderedOptions& options_;
  const ValuePool& values_;
  const std::vector<int> cores_;
  ResidentGrowth growth_;
  std::unique_ptr<YcsbTarget> target_;
  std::vector<std::unique_ptr<YcsbSession>> sessions_;  // by thread; they use the target
};

}  // namespace skep::bench
