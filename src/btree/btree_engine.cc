#include "btree/btree_engine.h"

#include <utility>

#include "btree/btree_engine_of.h"
#include "btree/core.h"
#include "btree/heads/head_layout.h"
#include "btree/measure.h"
#include "btree/paper/paper_layout.h"

namespace skep {

using btree::Core;

namespace {

// The bounds of Describe(): about a millisecond's worth.
constexpr btree::SurveyBounds kDescribed{.rows_max = 2048, .buffers_max = 4096};

template <class Layout>
std::unique_ptr<Engine> MakeOf(const EngineOptions& options) {
  auto engine = std::make_unique<BtreeEngineOf<Layout>>(options);
  const BtreeOptions& tree = options.index.btree;
  if (tree.shared && !engine->core().MakeBoard(tree.layout)) return nullptr;
  if (!engine->CreateRoot()) return nullptr;
  return engine;
}

}  // namespace

std::unique_ptr<Engine> BtreeEngine::Make(const EngineOptions& options) {
  switch (options.index.btree.layout) {
    case NodeLayout::kHeads:
      return MakeOf<btree::HeadLayout>(options);
    case NodeLayout::kPaper:
      return MakeOf<btree::PaperLayout>(options);
  }
  __builtin_unreachable();
}

BtreeEngine::BtreeEngine(const EngineOptions& options)
    : options_(options),
      traits_{.name = kInfo.name,
              .snapshots = options.index.btree.multi_version,
              .multi_version = options.index.btree.multi_version,
              .whole_ranges = options.index.btree.multi_version,
              .whole_batches = options.index.btree.multi_version,
              .types = true} {
  watches_.set_budget(options.budget);
}

TreeStatistics BtreeEngine::Survey(const btree::SurveyBounds& bounds) const {
  // Reads as a reader does, so that nothing it looks at is freed.
  Core& core = this->core();
  btree::TakenThreadState thread(core.threads);
  core.versions.EnterEpoch(thread);
  TreeStatistics tree = btree::SurveyNodes(core, bounds);
  core.versions.LeaveEpoch(thread);
  btree::AddCounters(core, &tree);
  return tree;
}

Result<SnapshotRef> BtreeEngine::Pin(uint64_t now_ms, uint64_t until_ms) {
  if (!traits_.snapshots) {
    return Fail(Code::kNotSupported, "this engine keeps one version of a key");
  }
  core().snapshots.CloseExpired(now_ms);
  SnapshotRef snapshot = core().snapshots.Open(gate_, NewSnapshotId(), until_ms);
  snapshot.now_ms = now_.Advance(now_ms);
  return snapshot;
}

Result<SnapshotRef> BtreeEngine::OpenSnapshot(uint64_t now_ms) {
  return Pin(now_ms, now_ms + options_.snapshot_age_ms_max);
}

// The snapshot of an iterator has no age limit: an iteration takes as long as the tree is large.
Result<std::unique_ptr<PairIterator>> BtreeEngine::OpenPairIterator(uint64_t now_ms) {
  const auto snapshot = Pin(now_ms, UINT64_MAX);
  if (!snapshot) return Fail(snapshot.error());
  return IterateBySnapshot(*this, *snapshot);
}

void BtreeEngine::StartAfter(Version version, uint64_t now_ms) {
  now_.Advance(now_ms);
  core().versions.StartAfter(version);
  Release();
}

Result<uint64_t> BtreeEngine::Watch(std::string_view key, uint64_t now_ms) {
  if (key.size() > traits_.key_bytes_max) {
    return Fail(Code::kTooLarge, "key exceeds the maximum size", traits_.key_bytes_max);
  }
  const auto watch = AddWatch(key, now_ms);
  if (!watch) return NoRoomToWatch(*options_.budget);
  return *watch;
}

void BtreeEngine::CloseSnapshot(SnapshotRef snapshot) { core().snapshots.Close(snapshot.id); }

EngineStatistics BtreeEngine::Statistics() const {
  const Core& core = this->core();
  const Version version = core.Stamp(core.versions.last_drawn());
  const auto reclaim = core.reclaimer.Statistics();
  const auto snapshots = core.snapshots.Statistics();
  return {.items = core.ItemCount(),
          .deadlines = core.DeadlineCount(),
          .expired_keys = core.expired_keys.load(std::memory_order_relaxed),
          .bytes = core.arena.Statistics().held_bytes + core.table.held_bytes() +
                   core.reclaimer.held_bytes() + core.snapshots.held_bytes() +
                   core.directory.held_bytes(),
          .old_versions = reclaim.kept + reclaim.waiting,
          .snapshots = snapshots.count,
          .oldest_snapshot = snapshots.oldest,
          .version = version};
}

void BtreeEngine::Describe(uint64_t now_ms, const StatsVisitor& visit) const {
  btree::Report(Survey(kDescribed), visit);
  const auto snapshots = core().snapshots.Statistics();
  const uint64_t age_max = options_.snapshot_age_ms_max;
  const bool has_age = snapshots.count > 0 && now_ms + age_max > snapshots.oldest_deadline_ms;
  visit("expiring_leaves", core().expiry.size());
  visit("snapshot_age_ms", has_age ? now_ms + age_max - snapshots.oldest_deadline_ms : 0);
}

SharedLeaves BtreeEngine::Shared() const {
  const Core& core = this->core();
  if (core.board() == nullptr) return {};
  return {.board = core.board(),
          .rows = core.table.shared_rows(),
          .regions = core.arena.SharedRegions()};
}

TreeStatistics BtreeEngine::Tree() const {
  TreeStatistics tree = Survey({});
  tree.huge_bytes = core().arena.HugeBytes().value_or(0);
  return tree;
}

}  // namespace skep
