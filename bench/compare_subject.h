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

// A kind of subject: a peer of this build, or an engine with options that it accepts.
struct SubjectKind {
  std::string name;      // as it was asked for
  const PeerInfo* peer;  // null: the subject is an engine
  Options engine;
  bool ordered;    // has scans
  bool threads;    // can use more than one thread
  bool snapshots;  // can hold them

  // Return the kind, or else a line for people.
  static std::expected<SubjectKind, std::string> OfPeer(const std::string& name);
  static std::expected<SubjectKind, std::string> OfEngine(const std::string& spec);

  // Returns what the subject lacks for this workload and setting; null if nothing.
  const char* Lacks(const Workload& workload, const CompareSetting& setting) const;
};

// The result of one turn: of the part under the clock, and of the state at its end.
struct CompareTurn {
  PhaseReport phase;
  std::optional<double> bytes_per_item;  // when no snapshot is held
  // Memory held with the snapshots beyond what was held before or is held after, whichever is less:
  // so the holes that the pinned memory leaves are included.
  std::optional<double> pinned_bytes_per_item;
  uint64_t history = 0;  // the subject's, before the turn
};

// Thread safety: none; one owner. Turns make their own threads.
class CompareSubject {
 public:
  // All arguments must outlive the subject. The first turn makes the index, of `items` items.
  CompareSubject(const SubjectKind& kind, uint64_t items, const CompareOptions& options,
                 const ValuePool& values);

  const SubjectKind& kind() const { return kind_; }
  uint64_t items() const { return items_; }

  // Does one turn of the workload in a setting of as many items, for which the subject lacks
  // nothing. Equal seeds make equal operations. The report is of the part under the clock, but has
  // the errors of the other parts too.
  //   kInvalidArgument, kNotSupported  no such engine, or not for these options
  //   kIo                              no address space, or no file
  Result<CompareTurn> Turn(const CompareWorkload& what, const CompareSetting& setting,
                           uint64_t seed);

  // Reads back `options.ops` of the keys, or all if they are fewer. To be called after the first
  // turn.
  PhaseReport ReadBack();
  // Returns whether there was a turn since the subject was made or dropped.
  bool loaded() const { return target_ != nullptr; }
  // Returns the history of writes since the index was made: subjects of as many items with equal
  // histories have equal contents.
  uint64_t history() const { return history_; }
  // Frees all memory. The next turn makes a new index.
  void Drop();

  Footprint Measure();                                      // after the first turn
  const ResidentGrowth& growth() const { return growth_; }  // in all turns and drops so far

 private:
  // The operations of a part of a turn: one source a thread, and how many operations of each.
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
