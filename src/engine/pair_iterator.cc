#include "engine/pair_iterator.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace skep {
namespace {

class SnapshotScanner final : public PairIterator {
 public:
  // The scans have no "now". A write above the version may have begun before a deadline that has
  // passed since: whoever replays the write onto these pairs needs the pair that it found.
  SnapshotScanner(Engine& engine, SnapshotRef snapshot) : engine_(engine), snapshot_(snapshot) {
    version_ = snapshot.version;
    now_ms_ = std::exchange(snapshot_.now_ms, 0);
  }
  ~SnapshotScanner() override { engine_.CloseSnapshot(snapshot_); }

  Result<std::span<const Pair>> Next() override {
    pairs_.clear();
    while (pairs_.empty() && !at_end_) {
      if (const Status s = Fetch(); !s.ok()) return Fail(s);
    }
    return pairs_;
  }

 private:
  static constexpr uint32_t kItems = 1024;
  static constexpr size_t kBytes = 256 * 1024;
  static constexpr uint32_t kVisits = 16 * 1024;

  Status Fetch() {
    batch_.Clear();
    batch_.set_snapshot(snapshot_);
    batch_.set_scan_bytes_max(kBytes);
    batch_.set_scan_visits_max(kVisits);
    batch_.set_notes_effects(true);
    batch_.Scan(Range::From(from_), {.limit = kItems, .any_type = true});
    engine_.Execute(batch_);
    const Outcome& out = batch_.outcome(0);
    if (out.verdict == Verdict::kRefused) return out.status;
    auto effect = batch_.effects().begin();
    for (const Item& item : batch_.items(0)) {
      Pair& pair = pairs_.emplace_back(Pair{.key = item.key, .value = item.value});
      if (effect == batch_.effects().end() || effect->key != item.key) continue;
      pair.deadline_ms = effect->deadline_ms;
      pair.type = effect->type;
      ++effect;
    }
    at_end_ = !out.more;
    if (out.more) from_.assign(out.value);
    return {};
  }

  Engine& engine_;
  SnapshotRef snapshot_;
  std::string from_;
  bool at_end_ = false;
  Batch batch_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::unique_ptr<PairIterator> IterateBySnapshot(Engine& engine, SnapshotRef snapshot) {
  return std::make_unique<SnapshotScanner>(engine, snapshot);
}

}  // namespace skep
