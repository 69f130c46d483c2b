// compare_subject.h: one index in a comparison, and its turns (compare.h).
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
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
  bool ordered;    // has scans
  bool threads;    // more than one
  bool snapshots;  // can hold them

  // Otherwise a line for a person.
  static std::expected<SubjectKind, std::string> OfPeer(const std::string& name);
  static std::expected<SubjectKind, std::string> OfEngine(const std::string& spec);

  // What it would need to run that; null if it can.
  const char* Lacks(const Workload& workload, const CompareSetting& setting) const;
};

// One turn: the part under the clock, and how things stood at its end.
struct CompareTurn {
  PhaseReport phase;
  std::optional<double> bytes_per_item;  // once no snapshot is held
  // What it held with the snapshots beyond what it held before or holds after, whichever is less:
  // also the holes that what they pinned has left.
  std::optional<double> pinned_bytes_per_item;
  uint64_t history = 0;  // the subject's, before the turn
};

// Thread safety: none; one owner. Turns make their own threads.
class CompareSubject {
 public:
  // All must outlive the subject. The index, of so many items, is made by the first turn.
  CompareSubject(const SubjectKind& kind, uint64_t items, const CompareOptions& options,
                 const ValuePool& values);

  const SubjectKind& kind() const { return kind_; }
  uint64_t items() const { return items_; }

  // One turn of the workload in a setting of as many items, for which the subject lacks nothing.
  // Equal seeds make equal operations. What is reported is of the part under the clock, but errors
  // of the others count too.
  //   kInvalidArgument, kNotSupported  no such engine, or not for these options
  //   kIo                              no address space, or no file
  Result<CompareTurn> Turn(const CompareWorkload& what, const CompareSetting& setting,
                           uint64_t seed);

  // Reads back `options.ops` of the keys, or all if they are fewer. After the first turn.
  PhaseReport ReadBack();
  // Whether it has had a turn since it was made or dropped.
  bool loaded() const { return target_ != nullptr; }
  // Of all writes since the index was made: subjects of as many items with equal histories have
  // equal contents.
  uint64_t history() const { return history_; }
  // Frees all it holds. The next turn makes a new index.
  void Drop();

  Footprint Measure();                                      // after the first turn
  const ResidentGrowth& growth() const { return growth_; }  // in all turns and drops so far

 private:
  // One source a thread, and how many operations of each.
  struct Work {
    std::string what;
    std::vector<std::unique_ptr<OpSource>> sources;
    std::vector<uint64_t> ops;
  };

  Status Renew();
  Result<CompareTurn> Load(const CompareSetting& setting);
  Result<CompareTurn> Delete(const CompareSetting& setting, uint64_t seed);
  Result<CompareTurn> Change(const CompareWorkload& what, const CompareSetting& setting,
                             uint64_t seed);
  Result<CompareTurn> ReadHot(const CompareWorkload& what, const CompareSetting& setting,
                              uint64_t seed);
  Result<CompareTurn> Mix(const CompareWorkload& what, const CompareSetting& setting,
                          uint64_t seed);
  Work SweepOf(std::string what, OpKind kind, uint64_t ops, uint32_t threads, uint64_t seed) const;
  Result<CompareTurn> Timed(const Work& work, const CompareSetting& setting);
  PhaseReport Run(const Work& work, uint32_t batch);

  KeyFormat format() const;

  const SubjectKind& kind_;
  const uint64_t items_;
  const CompareOptions& options_;
  const ValuePool& values_;
  const std::vector<int> cores_;
  ResidentGrowth growth_;
  uint64_t history_ = 0;
  std::unique_ptr<YcsbTarget> target_;
  std::vector<std::unique_ptr<YcsbSession>> sessions_;  // by thread; they use the target
};

}  // namespace skep::bench
