// oracle.h: the answers that an engine must give, for tests. A std::map, copied for every snapshot.
//
// The oracle is given a batch that an engine has just executed, performs it too, one slot after the
// other, and says where the engine's outcomes differ. It is only right for batches whose answers
// are determined (random_batch.h makes such), and while nothing else runs on the engine.
//
// Time. The oracle's now is the latest of all it was told, by executed batches and by Advance(). A
// snapshot has the now of its opening.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/batch_writer.h"
#include "engine/engine.h"
#include "engine/testing/oracle_state.h"

namespace skep {

class Oracle {
 public:
  explicit Oracle(const EngineTraits& traits) : traits_(traits), state_(traits) {}

  // Performs `batch`, whose execution returned `ticket`, when the gate's version before it was
  // `released`. Empty if every outcome is as it must be, else a text that names the slot.
  std::string Check(const Batch& batch, Version ticket, Version released);

  // Tells the oracle a time that something other than a batch has told the engine.
  void Advance(uint64_t now_ms) { state_.Advance(now_ms); }
  uint64_t now_ms() const { return state_.now_ms(); }

  void OpenSnapshot(SnapshotRef snapshot) { pinned_.insert_or_assign(snapshot.id, state_); }
  // The snapshot was closed or revoked: reads at it must be refused from now on.
  void DropSnapshot(SnapshotRef snapshot) { pinned_.erase(snapshot.id); }
  size_t snapshots() const { return pinned_.size(); }

  // The engine's Watch has returned this number for the key at `now_ms`; its now need not have
  // advanced.
  void Watch(uint64_t watch, std::string_view key, uint64_t now_ms) {
    state_.Watch(watch, key, now_ms);
  }
  void Unwatch(uint64_t watch) { state_.Unwatch(watch); }

  // The engine has reclaimed every key that is past its deadline now.
  void Reclaim() { state_.Reclaim(); }
  // Bounds of Statistics().items.
  size_t items_min() const { return state_.live(); }
  size_t items_max() const { return state_.stored(); }

 private:
  Code BatchRefusal(const Batch& batch) const;
  Code StaticRefusal(const Request& request, const Batch& batch) const;
  Code FormRefusal(const Request& request, const Batch& batch) const;
  static Code WhenRefusal(const Request& request);
  std::string CheckUnordered(const Batch& batch, OracleState& state) const;
  std::string CheckAtomic(const Batch& batch, OracleState& state) const;
  std::string CheckPart(const Batch& batch, const Part& part, OracleState& state,
                        bool& is_applied) const;
  std::string CheckAborted(const Batch& batch, const Part& part,
                           const std::map<uint32_t, Expected>& culprits) const;
  std::string CheckRefusedAll(const Batch& batch, Code code) const;
  std::string CheckVersions(const Batch& batch, Version ticket, Version released) const;
  static std::string CheckReadVersions(const Batch& batch);
  static std::string CheckNoVersions(const Batch& batch, Version ticket);
  Expected Perform(const Batch& batch, uint32_t slot, OracleState& state) const;
  std::string Compare(const Batch& batch, uint32_t slot, const Expected& expected) const;

  const EngineTraits traits_;
  OracleState state_;
  std::map<uint64_t, OracleState> pinned_;  // by snapshot id
};

}  // namespace skep
