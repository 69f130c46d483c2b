#include "btree/btree_engine.h"

#include <utility>
#include <vector>

#include "btree/batch_run.h"
#include "btree/bulk_load.h"
#include "btree/core.h"
#include "btree/expirer.h"
#include "btree/heads/head_layout_search.h"
#include "btree/measure.h"
#include "btree/paper/paper_layout.h"
#include "btree/reader.h"
#include "btree/upkeep.h"
#include "btree/verify.h"
#include "engine/point.h"

namespace skep {

using btree::Core;
using btree::NodeHeader;
using btree::Slot;

namespace {

// What Describe() looks at: about a millisecond's worth.
constexpr btree::SurveyBounds kDescribed{.rows_max = 2048, .buffers_max = 4096};

template <class Layout>
class Contents final : public btree::NodeContents {
 public:
  // The core is made with its contents, and they need its codec and counters.
  void Know(Core& core) { core_ = &core; }

  void Children(const NodeHeader* inner, std::vector<btree::Link>* children) const override {
    const typename Layout::Inner view(core_->codec, inner);
    std::vector<typename Layout::InnerItem> items;
    view.CopyTo(&items);
    children->push_back(view.leftmost());
    for (const auto& item : items) children->push_back(item.child);
  }
  void Blocks(const NodeHeader* node, uint32_t used,
              std::vector<btree::OutsideBlock>* blocks) const override {
    if (!core_->has_blocks.load(std::memory_order_relaxed)) return;
    Layout::BlocksOf(core_->codec, node, used, blocks);
  }
  void HasLeft(const NodeHeader* node) const override {
    (node->is_leaf() ? core_->leaves : core_->inner_nodes).fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Core* core_ = nullptr;
};

}  // namespace

// The tree, whatever its layout.
class BtreeEngine::Impl {
 public:
  explicit Impl(const EngineOptions& options)
      : options_(options),
        traits_{.name = kInfo.name,
                .snapshots = options.index.btree.multi_version,
                .multi_version = options.index.btree.multi_version,
                .whole_ranges = options.index.btree.multi_version,
                .whole_batches = options.index.btree.multi_version} {}
  virtual ~Impl() = default;

  virtual Core& core() = 0;
  // The root, an empty leaf. False: no memory.
  virtual bool Plant() = 0;
  virtual Version Execute(Batch& batch) = 0;
  // Nothing if there is no room for it.
  virtual std::optional<uint64_t> Watch(std::string_view key, uint64_t now_ms) = 0;
  virtual bool Maintain(uint64_t now_ms) = 0;
  virtual void Release() = 0;
  virtual std::unique_ptr<BulkLoad> OpenBulkLoad() = 0;
  virtual const char* Verify() = 0;

  TreeStatistics Survey(const btree::SurveyBounds& bounds);

  const EngineOptions options_;
  const EngineTraits traits_;
};

template <class Layout>
class BtreeEngine::ImplOf final : public Impl {
 public:
  ImplOf(const EngineOptions& options, ReleaseGate& gate, LatestNow& now, Watches& watches)
      : Impl(options),
        core_(options, gate, now, watches, contents_, Layout::kFrontBytes),
        upkeep_(core_),
        expirer_(core_) {
    contents_.Know(core_);
  }
  ~ImplOf() override {
    core_.slots.ForEach([&](Slot& slot) { core_.arena.Flush(slot.cache); });
  }

  Core& core() override { return core_; }
  bool Plant() override;
  Version Execute(Batch& batch) override;
  std::optional<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  bool Maintain(uint64_t now_ms) override;
  void Release() override { upkeep_.Release(); }
  std::unique_ptr<BulkLoad> OpenBulkLoad() override;
  const char* Verify() override { return btree::VerifyTree<Layout>(core_); }

 private:
  Contents<Layout> contents_;
  Core core_;
  btree::Upkeep upkeep_;
  btree::Expirer<Layout> expirer_;
};

template <class Layout>
bool BtreeEngine::ImplOf<Layout>::Plant() {
  btree::TakenSlot slot(core_.slots);
  {
    btree::Change<Layout> change(core_, slot, Arena::Limit::kExceed);
    core_.root = change.NewLeaf(std::span<const typename Layout::LeafItem>(), {});
    if (core_.root) change.Publish();
  }
  return static_cast<bool>(core_.root);
}

template <class Layout>
Version BtreeEngine::ImplOf<Layout>::Execute(Batch& batch) {
  core_.snapshots.CloseExpired(batch.now_ms());
  btree::TakenSlot slot(core_.slots);
  btree::BatchRun<Layout> run(core_, upkeep_, traits_, slot, batch);
  const Version ticket = run.Do();
  if (run.wrote()) {
    upkeep_.Release();
    upkeep_.AfterBatch(slot);
  }
  return core_.Stamp(ticket);
}

// watches.h: under the leaf's lock no write of the key takes effect, and who locks the leaf later
// sees the watch.
template <class Layout>
std::optional<uint64_t> BtreeEngine::ImplOf<Layout>::Watch(std::string_view key, uint64_t now_ms) {
  const auto watch = core_.watches.Add(key);
  if (!watch) return std::nullopt;
  btree::TakenSlot slot(core_.slots);
  core_.versions.EnterEpoch(slot);
  core_.versions.BeginWrites(slot);
  const btree::Reader<Layout> reader(core_);
  btree::Tries tries(core_.turnstiles, core_.versions, slot);
  for (bool armed = false; !armed;) {
    tries.Begin();
    const btree::LeafPlace place = reader.Find(key, btree::Reader<Layout>::kNewest);
    if (!tries.MayLock(place.link.lid()) || !btree::TryLock(place.node, place.word.bits)) continue;
    armed = !core_.versions.PhaseChanged(slot);
    if (armed) {
      const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
      const typename Layout::Found found = leaf.Find(key);
      const uint64_t deadline_ms = found.present ? btree::DeadlineOf(found.value) : 0;
      const bool present = found.present && !HasExpired(deadline_ms, core_.now.Advance(now_ms));
      core_.watches.Arm(*watch, present, present ? deadline_ms : 0);
    }
    btree::UnlockUnchanged(place.node, place.word.bits);
  }
  core_.versions.LeaveEpoch(slot);
  core_.versions.EndWrites(slot);
  upkeep_.Release();
  return watch;
}

template <class Layout>
bool BtreeEngine::ImplOf<Layout>::Maintain(uint64_t now_ms) {
  btree::TakenSlot slot(core_.slots);
  const bool expires = expirer_.Run(slot, core_.now.Advance(now_ms), options_.expiry_lag_ms);
  const bool more = upkeep_.Maintain(slot, now_ms) || expires;
  return more;
}

template <class Layout>
std::unique_ptr<BulkLoad> BtreeEngine::ImplOf<Layout>::OpenBulkLoad() {
  if (core_.ItemCount() > 0 || core_.inner_nodes.load(std::memory_order_relaxed) > 0)
    return nullptr;
  return std::make_unique<btree::TreeBulkLoad<Layout>>(core_, upkeep_, traits_);
}

TreeStatistics BtreeEngine::Impl::Survey(const btree::SurveyBounds& bounds) {
  // A reader, so that nothing it looks at is freed.
  Core& core = this->core();
  btree::TakenSlot slot(core.slots);
  core.versions.EnterEpoch(slot);
  TreeStatistics tree = btree::SurveyNodes(core, bounds);
  core.versions.LeaveEpoch(slot);
  btree::AddCounters(core, &tree);
  return tree;
}

BtreeEngine::BtreeEngine() = default;
BtreeEngine::~BtreeEngine() = default;

std::unique_ptr<BtreeEngine::Impl> BtreeEngine::MakeImpl(const EngineOptions& options) {
  switch (options.index.btree.layout) {
    case NodeLayout::kHeads:
      return std::make_unique<ImplOf<btree::HeadLayout>>(options, gate_, now_, watches_);
    case NodeLayout::kPaper:
      return std::make_unique<ImplOf<btree::PaperLayout>>(options, gate_, now_, watches_);
  }
  __builtin_unreachable();
}

std::unique_ptr<Engine> BtreeEngine::Make(const EngineOptions& options) {
  auto engine = std::unique_ptr<BtreeEngine>(new BtreeEngine);
  engine->watches_.set_budget(options.budget);
  engine->impl_ = engine->MakeImpl(options);
  if (!engine->impl_->Plant()) return nullptr;
  return engine;
}

const EngineTraits& BtreeEngine::traits() const { return impl_->traits_; }
Version BtreeEngine::Execute(Batch& batch) { return impl_->Execute(batch); }
btree::Core& BtreeEngine::core() { return impl_->core(); }

Result<SnapshotRef> BtreeEngine::Pin(uint64_t now_ms, uint64_t until_ms) {
  if (!impl_->traits_.snapshots) {
    return Fail(Code::kNotSupported, "this engine keeps one version of a key");
  }
  impl_->core().snapshots.CloseExpired(now_ms);
  SnapshotRef snapshot = impl_->core().snapshots.Open(gate_, NewSnapshotId(), until_ms);
  snapshot.now_ms = now_.Advance(now_ms);
  return snapshot;
}

Result<SnapshotRef> BtreeEngine::OpenSnapshot(uint64_t now_ms) {
  return Pin(now_ms, now_ms + impl_->options_.snapshot_age_ms_max);
}

// Of no age limit: it takes as long as the tree is large.
Result<std::unique_ptr<PairIterator>> BtreeEngine::OpenPairIterator(uint64_t now_ms) {
  const auto snapshot = Pin(now_ms, UINT64_MAX);
  if (!snapshot) return Fail(snapshot.error());
  return IterateBySnapshot(*this, *snapshot);
}

std::unique_ptr<BulkLoad> BtreeEngine::OpenBulkLoad() { return impl_->OpenBulkLoad(); }

void BtreeEngine::StartAfter(Version version, uint64_t now_ms) {
  now_.Advance(now_ms);
  impl_->core().versions.StartAfter(version);
  impl_->Release();
}

Result<uint64_t> BtreeEngine::Watch(std::string_view key, uint64_t now_ms) {
  if (key.size() > impl_->traits_.key_bytes_max) {
    return Fail(Code::kTooLarge, "key exceeds the maximum size", impl_->traits_.key_bytes_max);
  }
  const auto watch = impl_->Watch(key, now_ms);
  if (!watch) return NoRoomToWatch(*impl_->options_.budget);
  return *watch;
}

void BtreeEngine::CloseSnapshot(SnapshotRef snapshot) {
  impl_->core().snapshots.Close(snapshot.id);
}

bool BtreeEngine::Maintain(uint64_t now_ms) { return impl_->Maintain(now_ms); }

void BtreeEngine::Release() { impl_->Release(); }

EngineStatistics BtreeEngine::Statistics() const {
  const Core& core = impl_->core();
  const Version version = core.Stamp(core.versions.last_drawn());
  const auto reclaim = core.reclaimer.Statistics();
  const auto snapshots = core.snapshots.Statistics();
  return {.items = core.ItemCount(),
          .deadlines = core.DeadlineCount(),
          .expired_keys = core.expired_keys.load(std::memory_order_relaxed),
          .bytes = core.arena.Statistics().held_bytes + core.table.held_bytes() +
                   core.reclaimer.held_bytes() + core.snapshots.held_bytes(),
          .old_versions = reclaim.kept + reclaim.waiting,
          .snapshots = snapshots.count,
          .oldest_snapshot = snapshots.oldest,
          .version = version};
}

const char* BtreeEngine::Verify() const { return impl_->Verify(); }

void BtreeEngine::Describe(uint64_t now_ms, const Teller& tell) const {
  btree::Tell(impl_->Survey(kDescribed), tell);
  const auto snapshots = impl_->core().snapshots.Statistics();
  const uint64_t age_max = impl_->options_.snapshot_age_ms_max;
  const bool has_age = snapshots.count > 0 && now_ms + age_max > snapshots.oldest_deadline_ms;
  tell("expiring_leaves", impl_->core().expiry.size());
  tell("snapshot_age_ms", has_age ? now_ms + age_max - snapshots.oldest_deadline_ms : 0);
}

TreeStatistics BtreeEngine::Tree() const {
  TreeStatistics tree = impl_->Survey({});
  tree.huge_bytes = impl_->core().arena.HugeBytes().value_or(0);
  return tree;
}

}  // namespace skep
