// oracle.h: what an engine must answer, for tests. A std::map, copied for every snapshot.
//
// The oracle is given a batch that an engine has just executed, performs it too, one slot after the
// other, and says where the engine's outcomes differ. It is only right for batches whose answers
// are determined (random_batch.h makes such), and while nothing else runs on the engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace skep {

class Oracle {
 public:
  struct Stored {
    std::string value;
    Version version = 0;
  };
  using Map = std::map<std::string, Stored, std::less<>>;

  explicit Oracle(const EngineTraits& traits) : traits_(traits) {}

  // Performs `batch`, whose execution gave `ticket` when `released` was the gate's version before
  // it. Empty if every outcome is as it must be, else a text that names the slot.
  std::string Check(const Batch& batch, Version ticket, Version released);

  void OpenSnapshot(SnapshotRef snapshot) { pinned_[snapshot.id] = map_; }
  // Closed or revoked: reads at it are refused from now on.
  void DropSnapshot(SnapshotRef snapshot) { pinned_.erase(snapshot.id); }
  size_t snapshots() const { return pinned_.size(); }

  const Map& map() const { return map_; }

 private:
  // What a slot must say.
  struct Expected {
    Verdict verdict = Verdict::kDone;
    Code code = Code::kOk;  // kRefused: its status
    int64_t integer = 0;
    bool present = false;  // points
    bool value_matters = false;
    std::string value = {};
    bool items_matter = false;
    std::vector<std::pair<std::string, std::string>> items = {};
    bool must_say_more = false;
    bool may_say_more = false;
    bool wrong_bound = false;  // where a scan says to go on loses or repeats keys
    bool wrote = false;
    Version read_version_min = 0;  // kGet: of the write that stored the value
  };

  Code StaticRefusal(const Request& request, const Batch& batch) const;
  std::string CheckUnordered(const Batch& batch, Map& map);
  std::string CheckAtomic(const Batch& batch, Map& map);
  std::string CheckAborted(const Batch& batch, uint32_t culprit, const Expected& expected) const;
  std::string CheckRefusedAll(const Batch& batch, Code code) const;
  std::string CheckVersions(const Batch& batch, Version ticket, Version released) const;
  static std::string CheckReadVersions(const Batch& batch);
  static std::string CheckNoVersions(const Batch& batch, Version ticket);

  Expected Perform(const Batch& batch, uint32_t slot, Map& map) const;
  static Verdict Judge(const Request& request, const Map& map);
  static Expected Point(const Request& request, const Outcome& outcome, Map& map);
  Expected Apply(const Request& request, const Outcome& outcome, Map& map) const;
  static Expected Scan(const Batch& batch, uint32_t slot, const Map& map);
  static bool MayGoOnFrom(const Batch& batch, uint32_t slot, const Map& map);
  static Expected Count(const Request& request, const Outcome& outcome, const Map& map);
  static Expected DeleteRange(const Request& request, Map& map);
  static Expected DeleteAll(Map& map);
  static Expected Sample(const Batch& batch, uint32_t slot, const Map& map);
  std::string Compare(const Batch& batch, uint32_t slot, const Expected& expected) const;

  const EngineTraits traits_;
  Map map_;
  std::map<uint64_t, Map> pinned_;  // by snapshot id
};

}  // namespace skep
