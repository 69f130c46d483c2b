// compare_subject.h: one index in a comparison, and its turns (compare.h).
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "bench/compare.h"
#include "bench/op_generator.h"
#include "bench/peer.h"
#include "bench/phase.h"
#include "bench/record_format.h"
#include "bench/resident_memory.h"
#include "skep/options.h"

namespace skep::bench {

// What can be a subject: a peer of this build, or an engine with options it takes.
struct SubjectKind {
  std::string name;      // as it was asked for
  const PeerInfo* peer;  // or null:
  Options engine;
  bool ordered;  // has scans
  bool threads;  // more than one

  // Otherwise a line for a person.
  static std::expected<SubjectKind, std::string> OfPeer(const std::string& name);
  static std::expected<SubjectKind, std::string> OfEngine(const std::string& spec);

  bool CanRun(const Workload& workload) const { return ordered || workload.scan == 0; }
};

// Thread safety: none; one owner. Turns make their own threads.
class CompareSubject {
 public:
  // All must outlive the subject. The index is made by the first turn.
  CompareSubject(const SubjectKind& kind, const CompareOptions& options, const ValuePool& values);

  const SubjectKind& kind() const { return kind_; }

  // One turn of the workload, which the subject can run. Equal seeds make equal operations. What is
  // reported is of the part under the clock, but errors of the others count too.
  //   kInvalidArgument, kNotSupported  no such engine, or not for these options
  //   kIo                              no address space, or no file
  Result<PhaseReport> Turn(const CompareWorkload& what, uint64_t seed);

  // Reads back `options.ops` of the keys, or all if they are fewer. After the first turn.
  PhaseReport ReadBack();
  // Whether it has had a turn since it was made or dropped.
  bool loaded() const { return target_ != nullptr; }
  // Frees all it holds. The next turn makes a new index.
  void Drop();

  Footprint Measure();                                      // after the first turn
  const ResidentGrowth& growth() const { return growth_; }  // in all turns and drops so far

 private:
  Status Renew();
  Result<PhaseReport> Load();
  PhaseReport Delete(uint64_t seed);
  PhaseReport Mix(const CompareWorkload& what, uint64_t seed);
  PhaseReport Sweep(std::string what, OpKind kind, uint64_t ops, uint64_t seed);
  // `ops[t]` operations from `sources[t]` on thread t.
  PhaseReport Run(std::string what, const std::vector<std::unique_ptr<OpSource>>& sources,
                  const std::vector<uint64_t>& ops);
  std::vector<uint64_t> Shares(uint64_t ops) const;

  const SubjectKind& kind_;
  const CompareOptions& options_;
  const ValuePool& values_;
  const std::vector<int> cores_;
  ResidentGrowth growth_;
  std::unique_ptr<YcsbTarget> target_;
  std::vector<std::unique_ptr<YcsbSession>> sessions_;  // by thread; they use the target
};

}  // namespace skep::bench
