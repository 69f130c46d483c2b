#include "btree/btree_engine_of.h"

#include <utility>

#include "btree/batch_executor.h"
#include "btree/bulk_load.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/reader.h"
#include "btree/verify.h"
#include "engine/point.h"

namespace skep {

using btree::Slot;

template <class Layout>
BtreeEngineOf<Layout>::BtreeEngineOf(const EngineOptions& options)
    : BtreeEngine(options),
      core_(options, gate_, now_, watches_, contents_, Layout::kFrontBytes),
      upkeep_(core_),
      expirer_(core_) {
  contents_.Bind(core_);
}

template <class Layout>
BtreeEngineOf<Layout>::~BtreeEngineOf() {
  core_.slots.ForEach([&](Slot& slot) { core_.arena.Flush(slot.cache); });
}

template <class Layout>
bool BtreeEngineOf<Layout>::CreateRoot() {
  btree::TakenSlot slot(core_.slots);
  {
    btree::StructureChange<Layout> change(core_, slot, Arena::Limit::kExceed);
    core_.root = change.NewLeaf(std::span<const typename Layout::LeafItem>(), {});
    if (core_.root) change.Publish();
  }
  return static_cast<bool>(core_.root);
}

template <class Layout>
Version BtreeEngineOf<Layout>::Execute(Batch& batch) {
  core_.snapshots.CloseExpired(batch.now_ms());
  btree::TakenSlot slot(core_.slots);
  btree::BatchExecutor<Layout> executor(core_, upkeep_, traits(), slot, batch);
  const Version ticket = executor.Execute();
  if (executor.wrote()) {
    upkeep_.Release();
    upkeep_.AfterBatch(slot);
  }
  return core_.Stamp(ticket);
}

// watches.h: under the leaf's lock no write of the key takes effect, and who locks the leaf later
// sees the watch.
template <class Layout>
std::optional<uint64_t> BtreeEngineOf<Layout>::AddWatch(std::string_view key, uint64_t now_ms) {
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
bool BtreeEngineOf<Layout>::Maintain(uint64_t now_ms) {
  btree::TakenSlot slot(core_.slots);
  const bool expires = expirer_.Run(slot, core_.now.Advance(now_ms), options().expiry_lag_ms);
  const bool more = upkeep_.Maintain(slot, now_ms) || expires;
  return more;
}

template <class Layout>
std::unique_ptr<BulkLoad> BtreeEngineOf<Layout>::OpenBulkLoad() {
  if (core_.ItemCount() > 0 || core_.inner_nodes.load(std::memory_order_relaxed) > 0)
    return nullptr;
  return std::make_unique<btree::TreeBulkLoad<Layout>>(core_, upkeep_, traits());
}

template <class Layout>
const char* BtreeEngineOf<Layout>::Verify() const {
  return btree::VerifyTree<Layout>(core_);
}

template class BtreeEngineOf<btree::PaperLayout>;
template class BtreeEngineOf<btree::HeadLayout>;

}  // namespace skep
