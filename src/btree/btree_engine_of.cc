#include "btree/btree_engine_of.h"

#include <utility>

#include "btree/batch_executor.h"
#include "btree/bulk_load.h"
#include "btree/heads/head_layout_search.h"
#include "btree/many_gets.h"
#include "btree/paper/paper_layout.h"
#include "btree/reader.h"
#include "btree/single_get.h"
#include "btree/tree_top.h"
#include "btree/verify.h"
#include "engine/point.h"

namespace skep {

using btree::ThreadState;

template <class Layout>
BtreeEngineOf<Layout>::BtreeEngineOf(const EngineOptions& options)
    : BtreeEngine(options),
      core_(options, gate_, now_, watches_, contents_, Layout::kFrontBytes),
      upkeep_(core_),
      expirer_(core_),
      log_merger_(core_) {
  contents_.Bind(core_);
}

template <class Layout>
BtreeEngineOf<Layout>::~BtreeEngineOf() {
  core_.threads.ForEach([&](ThreadState& thread) { core_.arena.Flush(thread.cache); });
}

template <class Layout>
bool BtreeEngineOf<Layout>::CreateRoot() {
  btree::TakenThreadState thread(core_.threads);
  {
    btree::StructureChange<Layout> change(core_, thread, Arena::Limit::kExceed);
    core_.root = change.NewLeaf(std::span<const typename Layout::LeafItem>(), {});
    if (core_.root) change.Publish();
  }
  return static_cast<bool>(core_.root);
}

template <class Layout>
Version BtreeEngineOf<Layout>::Execute(Batch& batch) {
  core_.snapshots.CloseExpired(batch.now_ms());
  btree::TakenThreadState thread(core_.threads);
  if (btree::IsSingleGet(batch, traits())) {
    return core_.Stamp(btree::ExecuteSingleGet<Layout>(core_, thread, traits(), batch));
  }
  btree::BatchExecutor<Layout> executor(core_, upkeep_, traits(), thread, batch);
  const Version ticket = executor.Execute();
  if (executor.wrote()) upkeep_.Release();
  const bool merged = log_merger_.Run(thread);
  if (executor.wrote() || merged) upkeep_.AfterBatch(thread);
  return core_.Stamp(ticket);
}

template <class Layout>
std::optional<Version> BtreeEngineOf<Layout>::GetPlain(std::string_view key,
                                                       std::optional<std::string>* value) {
  if (key.size() > traits().key_bytes_max) return std::nullopt;
  btree::TakenThreadState thread(core_.threads);
  const auto seen = btree::GetPlain<Layout>(core_, thread, key, value);
  if (!seen) return std::nullopt;
  return core_.Stamp(*seen);
}

template <class Layout>
Version BtreeEngineOf<Layout>::GetManyPlain(std::span<const std::string_view> keys,
                                            std::span<GetAnswer> answers, PlainValues values) {
  btree::TakenThreadState thread(core_.threads);
  btree::ManyGets<Layout> gets(core_, thread, traits().key_bytes_max, keys, answers, values);
  return core_.Stamp(gets.Do());
}

// As watches.h requires: while the leaf is locked no write of the key takes effect, and a thread
// that locks the leaf later sees the watch.
template <class Layout>
std::optional<uint64_t> BtreeEngineOf<Layout>::AddWatch(std::string_view key, uint64_t now_ms) {
  const auto watch = core_.watches.Add(key);
  if (!watch) return std::nullopt;
  btree::TakenThreadState thread(core_.threads);
  core_.versions.EnterEpoch(thread);
  core_.versions.BeginWrites(thread);
  const btree::Reader<Layout> reader(core_);
  btree::Tries tries(core_.turnstiles, core_.versions, thread);
  for (bool armed = false; !armed;) {
    tries.Begin();
    const btree::LeafPlace place = reader.Find(key, btree::Reader<Layout>::kNewest);
    if (!tries.MayLock(place.link.lid()) || !btree::TryLock(place.node, place.word.bits)) continue;
    armed = !core_.versions.PhaseChanged(thread);
    if (armed) {
      const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
      const typename Layout::Found found = leaf.Find(key);
      const uint64_t deadline_ms = found.present ? btree::DeadlineOf(found.value) : 0;
      const bool present = found.present && !HasExpired(deadline_ms, core_.now.Advance(now_ms));
      core_.watches.Arm(*watch, present, present ? deadline_ms : 0);
    }
    btree::UnlockUnchanged(place.node, place.word.bits);
  }
  core_.versions.LeaveEpoch(thread);
  core_.versions.EndWrites(thread);
  upkeep_.Release();
  return watch;
}

template <class Layout>
bool BtreeEngineOf<Layout>::Maintain(uint64_t now_ms) {
  btree::TakenThreadState thread(core_.threads);
  const bool expires = expirer_.Run(thread, core_.now.Advance(now_ms), options().expiry_lag_ms);
  const bool builds = core_.directory.template Maintain<Layout>(core_, thread);
  return upkeep_.Maintain(thread, now_ms) || expires || builds;
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

template <class Layout>
LeafLinks BtreeEngineOf<Layout>::LinksFrom(std::string_view from, uint32_t links_max,
                                           size_t bytes_max) const {
  btree::TakenThreadState thread(core_.threads);
  core_.versions.EnterEpoch(thread);
  LeafLinks links = btree::LinksOfLeaves<Layout>(core_, from, links_max, bytes_max);
  core_.versions.LeaveEpoch(thread);
  return links;
}

template class BtreeEngineOf<btree::PaperLayout>;
template class BtreeEngineOf<btree::HeadLayout>;

}  // namespace skep
