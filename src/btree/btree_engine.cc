#include "btree/btree_engine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "btree/atomic_batch.h"
#include "btree/core.h"
#include "btree/expirer.h"
#include "btree/measure.h"
#include "btree/paper_layout.h"
#include "btree/range_delete.h"
#include "btree/ranges.h"
#include "btree/reader.h"
#include "btree/sampler.h"
#include "btree/upkeep.h"
#include "btree/verify.h"
#include "btree/writer.h"
#include "engine/batch_writer.h"
#include "engine/point.h"

namespace skep {

using btree::Core;
using btree::NodeHeader;
using btree::Slot;
using Layout = btree::PaperLayout;

namespace {

constexpr Version kNewest = Layout::Leaf::kNewest;
constexpr size_t kRetiredMax = 64;  // pieces that a batch keeps to itself
// What Describe() looks at: about a millisecond's worth.
constexpr btree::SurveyBounds kDescribed{.rows_max = 2048, .buffers_max = 4096};

bool OnlyReads(const Batch& batch) {
  return std::ranges::none_of(batch.requests(), [](const Request& r) { return IsWrite(r.op); });
}

class Contents final : public btree::NodeContents {
 public:
  // The core is made with its contents, and they need its codec and counters.
  void Know(Core& core) { core_ = &core; }

  void Children(const NodeHeader* inner, std::vector<btree::Link>* children) const override {
    const Layout::Inner view(core_->codec, inner);
    std::vector<Layout::InnerItem> items;
    view.CopyTo(&items);
    children->push_back(view.leftmost());
    for (const Layout::InnerItem& item : items) children->push_back(item.child);
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

class BtreeEngine::Impl {
 public:
  Impl(const EngineOptions& options, ReleaseGate& gate, LatestNow& now, Watches& watches)
      : options_(options),
        traits_{.name = "btree",
                .snapshots = options.btree.multi_version,
                .multi_version = options.btree.multi_version},
        core_(options, gate, now, watches, contents_),
        upkeep_(core_),
        expirer_(core_) {
    contents_.Know(core_);
  }
  ~Impl() {
    core_.slots.ForEach([&](Slot& slot) { core_.arena.Flush(slot.cache); });
  }

  // The root, an empty leaf. False: no memory.
  bool Plant();

  Version Execute(Batch& batch);
  uint64_t Watch(std::string_view key, uint64_t now_ms);

  TreeStatistics Survey(const btree::SurveyBounds& bounds);

  const EngineOptions options_;
  const EngineTraits traits_;
  Contents contents_;
  Core core_;
  btree::Upkeep upkeep_;
  btree::Expirer<Layout> expirer_;
};

namespace {

// One batch from start to end.
class Run {
 public:
  Run(Core& core, btree::Upkeep& upkeep, const EngineTraits& traits, Slot& slot, Batch& batch)
      : core_(core),
        upkeep_(upkeep),
        traits_(traits),
        slot_(slot),
        batch_(batch),
        out_(batch),
        writer_(core, upkeep),
        reader_(core) {}

  // The batch's ticket.
  Version Do() {
    if (const Status s = CheckBatch(batch_, traits_); !s.ok()) {
      out_.RefuseAll(s);
      return 0;
    }
    now_ms_ = core_.now.Advance(batch_.now_ms());
    core_.versions.EnterEpoch(slot_);
    const Version ticket = DoBatch();
    core_.versions.LeaveEpoch(slot_);
    if (writes_) core_.versions.EndWrites(slot_);
    return ticket;
  }
  // Versions may have been drawn.
  bool wrote() const { return wrote_; }

 private:
  Version DoBatch() {
    if (batch_.snapshot().id != 0) return DoAtSnapshot();
    if (batch_.kind() == Batch::Kind::kUnordered) {
      Version ticket = 0;
      for (uint32_t i = 0; i < batch_.size(); ++i) {
        if (i % kAhead == 0) LookAhead(i);
        ticket = std::max(ticket, DoSlot(i));
        if (slot_.retired.size() > kRetiredMax) Reclaim();
      }
      return ticket;
    }
    if (OnlyReads(batch_) && core_.multi_version && !NeedsNewest()) {
      const Version at = BeginReading();
      DoReads(at);
      EndReading();
      return at;
    }
    return DoAtomic();
  }

  const Request& request(uint32_t i) const { return batch_.requests()[i]; }

  // Finds the leaves of the next requests and asks for what will be looked at in them, so that the
  // cache misses of several requests overlap. What it finds are hints.
  void LookAhead(uint32_t first) {
    const uint32_t end = std::min(first + kAhead, static_cast<uint32_t>(batch_.size()));
    const bool alone = end - first == 1;
    for (uint32_t i = first; i < end; ++i) {
      const Request& r = request(i);
      const bool seeks = r.op < Op::kSample || r.op == Op::kScan || r.op == Op::kCount;
      ahead_[i - first] = !seeks || alone    ? btree::Link()
                          : r.hint.bits != 0 ? btree::Link{r.hint.bits}
                                             : reader_.FindLink(r.key);
    }
    if (alone) ahead_[0] = btree::Link{request(first).hint.bits};
    for (uint32_t i = first; i < end && !alone; ++i) {
      const ArenaAddress at = core_.table.Find(ahead_[i - first]);
      if (!at) continue;
      const NodeHeader* const node = core_.Node(at);
      const btree::NodeWord word{node->word.load(std::memory_order_acquire)};
      // A leaf that has left the tree may name outside blocks that are gone.
      if (!node->is_leaf() || word.retired()) continue;
      Layout::Leaf(core_.codec, node, word.used()).Prefetch(request(i).key);
    }
  }

  // Has something that is not read at a version.
  bool NeedsNewest() const {
    return std::ranges::any_of(batch_.requests(), [](const Request& r) {
      return r.op == Op::kSample || r.op == Op::kRequireUnchanged;
    });
  }

  // Protocol S of versions.h.
  Version BeginReading() {
    Version at = 0;
    if (core_.multi_version) {
      slot_.read_floor.store(core_.gate.released(), std::memory_order_seq_cst);
      at = core_.gate.released();
    }
    now_ms_ = core_.now.Advance(batch_.now_ms());
    return at;
  }
  void EndReading() { slot_.read_floor.store(Slot::kIdle, std::memory_order_release); }

  void BeginWrites() {
    core_.versions.BeginWrites(slot_);
    writes_ = true;
    wrote_ = true;
  }
  // In the middle of a long batch: it holds no pointers between two of its requests.
  void Reclaim() {
    PauseWrites();
    core_.versions.LeaveEpoch(slot_);
    upkeep_.AfterBatch(slot_);
    core_.versions.EnterEpoch(slot_);
  }
  // Before something that takes its time: nobody has to wait for versions of ours.
  void PauseWrites() {
    if (!writes_) return;
    core_.versions.EndWrites(slot_);
    upkeep_.Release();
    writes_ = false;
  }

  Version DoAtSnapshot() {
    const SnapshotRef snapshot = batch_.snapshot();
    slot_.read_floor.store(snapshot.version, std::memory_order_seq_cst);
    now_ms_ = snapshot.now_ms;
    if (core_.snapshots.IsLive(snapshot.id)) {
      DoReads(snapshot.version);
    } else {
      out_.RefuseAll({Code::kSnapshotTooOld, "the snapshot is gone"});
    }
    EndReading();
    return snapshot.version;
  }

  // A batch that only reads, all at one version.
  void DoReads(Version at) {
    if (batch_.kind() == Batch::Kind::kUnordered) {
      for (uint32_t i = 0; i < batch_.size(); ++i) Read(i, at);
      return;
    }
    ForEachPart(batch_, [&](const Part& part) {
      for (uint32_t i = part.begin; i < part.end; ++i) {
        Read(i, at);
        const Verdict verdict = out_.outcome(i).verdict;
        const bool stops = verdict == Verdict::kRefused ||
                           (IsCondition(request(i).op) && verdict != Verdict::kDone);
        if (!stops) continue;
        if (!part.is_first) {
          out_.AbortPart(part, i);
          return true;
        }
        out_.AbortAllBut(i);
        return false;
      }
      return true;
    });
  }

  void Read(uint32_t i, Version at) {
    if (const Status s = CheckRequest(request(i), batch_, traits_); !s.ok()) {
      out_.Refuse(i, s);
    } else if (IsRange(request(i).op)) {
      DoRange(i, at);
    } else {
      Get(i, at);
    }
  }

  // Reads a point at a version, or as it is now; a condition too.
  Version Get(uint32_t i, Version at) {
    const Request& r = request(i);
    std::optional<btree::LeafPlace> place;
    if (at == kNewest) place = reader_.FromHint(ahead_[i % kAhead], r.key);
    if (!place) place = reader_.Find(r.key, at);
    const Layout::Leaf leaf(core_.codec, place->node, place->word.used(), at);
    const Layout::Found found = leaf.Find(r.key);
    std::optional<PointState> state;
    if (found.present) state = {core_.codec.Whole(found.value), btree::DeadlineOf(found.value)};
    ApplyPoint(r, state, now_ms_, traits_.value_bytes_max, out_, i);
    const Version seen =
        found.known ? found.version : place->node->version.load(std::memory_order_relaxed);
    if (out_.outcome(i).present) out_.outcome(i).version = seen;
    if (r.has(Request::kWantHint)) out_.outcome(i).hint.bits = place->link.bits;
    return seen;
  }

  void DoRange(uint32_t i, Version at) {
    const btree::Ranges<Layout> ranges(core_, at, now_ms_);
    switch (request(i).op) {
      case Op::kScan:
        return ranges.Scan(request(i), batch_.scan_bytes_max(), batch_.scan_visits_max(), out_, i);
      case Op::kCount:
        return ranges.Count(request(i), out_, i);
      default:
        return ranges.RequireEmpty(request(i), out_, i);
    }
  }

  // One request of an unordered batch. What it has seen or made.
  Version DoSlot(uint32_t i) {
    const Request& r = request(i);
    if (const Status s = CheckRequest(r, batch_, traits_); !s.ok()) {
      out_.Refuse(i, s);
      return 0;
    }
    switch (r.op) {
      case Op::kGet:
        // Who stops the writers does not wait for a batch of reads.
        if (writes_) core_.versions.Raise(slot_);
        return Get(i, kNewest);
      case Op::kScan:
      case Op::kCount: {
        PauseWrites();
        const Version at = BeginReading();
        DoRange(i, at);
        EndReading();
        return at;
      }
      case Op::kSample:
        return Sample(i);
      case Op::kDeleteRange:
      case Op::kDeleteAll:
        return DeleteRange(i);
      case Op::kExpireRange:
        return ExpireRange(i);
      default:
        if (!writes_) BeginWrites();
        return writer_.Execute(slot_, r, &now_ms_, ahead_[i % kAhead], traits_.value_bytes_max,
                               out_, i);
    }
  }

  Version Sample(uint32_t i) {
    out_.BeginItems(i);
    btree::Sampler<Layout> sampler(core_, request(i).random, now_ms_);
    const auto item = sampler.Draw(out_.scratch());
    out_.outcome(i).verdict = item ? Verdict::kDone : Verdict::kAbsent;
    if (!item) return core_.Stamp(core_.versions.last_drawn());
    out_.AddItem(i, *item);
    return sampler.version();
  }

  Version DeleteRange(uint32_t i) {
    const Request& r = request(i);
    const bool all = r.op == Op::kDeleteAll;
    PauseWrites();
    BeginReading();
    BeginWrites();
    btree::RangeDelete<Layout> range_delete(core_, upkeep_);
    const auto result = range_delete.Run(
        slot_, all ? std::string_view() : r.key, r.other, all || r.has(Request::kNoUpperBound),
        all || r.limit == kNoLimit ? UINT64_MAX : r.limit, batch_.now_ms());
    EndReading();
    if (result.no_memory) {
      out_.Refuse(i, {Code::kOutOfMemory, "the memory limit is reached", core_.budget.limit()});
      return 0;
    }
    Outcome& outcome = out_.outcome(i);
    outcome.verdict = Verdict::kDone;
    outcome.integer = static_cast<int64_t>(result.keys);
    outcome.version = result.version;
    outcome.more = result.more;
    if (result.more) outcome.value = out_.scratch().Copy(result.bound);
    // That a key is absent may be due to a write that is not released.
    return result.version != 0 ? result.version : core_.Stamp(core_.versions.last_drawn());
  }

  // Each key by a write of its own. In steps, so that nobody waits for the nodes or versions of a
  // long range.
  Version ExpireRange(uint32_t i) {
    constexpr uint32_t kStep = 64;
    const Request r = request(i);
    const bool unbounded = r.has(Request::kNoUpperBound);
    int64_t changed = 0;
    std::string from(r.key);
    Outcome result = {.verdict = Verdict::kDone};
    std::vector<std::string> keys;
    do {
      keys.clear();
      PauseWrites();
      BeginWrites();
      btree::Cursor<Layout> cursor(core_, kNewest, now_ms_);
      cursor.SeekAtLeast(from);
      for (; keys.size() < kStep && cursor.Settle(r.other, unbounded); cursor.Next()) {
        keys.emplace_back(cursor.key());
      }
      for (const std::string& key : keys) {
        const auto stop_before = [&] {
          result.more = true;
          result.value = out_.scratch().Copy(key);
        };
        if (changed == int64_t{r.limit} && r.limit != kNoLimit) {
          stop_before();
          break;
        }
        Request one = r;
        one.op = Op::kExpire;
        one.key = key;
        one.flags = 0;
        writer_.Execute(slot_, one, &now_ms_, {}, traits_.value_bytes_max, out_, i);
        const Outcome& outcome = out_.outcome(i);
        if (outcome.verdict == Verdict::kRefused) {
          // What is refused has changed nothing.
          if (changed == 0) return core_.Stamp(core_.versions.last_drawn());
          stop_before();
          break;
        }
        if (outcome.verdict != Verdict::kDone) continue;
        ++changed;
        result.version = outcome.version;
      }
      if (slot_.retired.size() > kRetiredMax) Reclaim();
      if (!keys.empty()) from = keys.back() + '\0';
    } while (keys.size() == kStep && !result.more);
    result.integer = changed;
    out_.outcome(i) = result;
    // That a key is absent may be due to a write that is not released.
    return core_.Stamp(core_.versions.last_drawn());
  }

  Version DoAtomic() {
    BeginWrites();
    if (batch_.size() == 1 && IsRangeDelete(request(0).op)) {
      const Status s = CheckRequest(request(0), batch_, traits_);
      if (s.ok()) {
        const Version ticket = DeleteRange(0);
        if (out_.outcome(0).verdict == Verdict::kRefused) out_.AbortAllBut(0);
        return ticket;
      }
    }
    return btree::AtomicBatch<Layout>(core_, upkeep_, slot_, batch_, out_, traits_).Execute();
  }

  static bool IsRangeDelete(Op op) { return op == Op::kDeleteRange || op == Op::kDeleteAll; }

  Core& core_;
  btree::Upkeep& upkeep_;
  const EngineTraits& traits_;
  Slot& slot_;
  Batch& batch_;
  uint64_t now_ms_ = 0;
  BatchWriter out_;
  btree::Writer<Layout> writer_;
  const btree::Reader<Layout> reader_;
  static constexpr uint32_t kAhead = 16;
  std::array<btree::Link, kAhead> ahead_;  // where the requests from the last multiple on may be
  bool writes_ = false;                    // a write floor is announced
  bool wrote_ = false;                     // or was
};

}  // namespace

bool BtreeEngine::Impl::Plant() {
  Slot& slot = core_.slots.Take();
  {
    btree::Change<Layout> change(core_, slot, Arena::Limit::kExceed);
    core_.root = change.NewLeaf({}, {});
    if (core_.root) change.Publish();
  }
  core_.slots.Give(slot);
  return static_cast<bool>(core_.root);
}

Version BtreeEngine::Impl::Execute(Batch& batch) {
  core_.snapshots.CloseExpired(batch.now_ms());
  Slot& slot = core_.slots.Take();
  Run run(core_, upkeep_, traits_, slot, batch);
  const Version ticket = run.Do();
  if (run.wrote()) {
    upkeep_.Release();
    upkeep_.AfterBatch(slot);
  }
  core_.slots.Give(slot);
  return core_.Stamp(ticket);
}

// watches.h: under the leaf's lock no write of the key takes effect, and who locks the leaf later
// sees the watch.
uint64_t BtreeEngine::Impl::Watch(std::string_view key, uint64_t now_ms) {
  const uint64_t watch = core_.watches.Add(key);
  Slot& slot = core_.slots.Take();
  core_.versions.EnterEpoch(slot);
  core_.versions.BeginWrites(slot);
  const btree::Reader<Layout> reader(core_);
  for (bool armed = false; !armed;) {
    core_.versions.BeginOperation(slot);
    const btree::LeafPlace place = reader.Find(key, kNewest);
    if (!btree::TryLock(place.node, place.word.bits)) {
      std::this_thread::yield();
      continue;
    }
    armed = !core_.versions.PhaseChanged(slot);
    if (armed) {
      const auto found = Layout::Leaf(core_.codec, place.node, place.word.used()).Find(key);
      const uint64_t deadline_ms = found.present ? btree::DeadlineOf(found.value) : 0;
      const bool present = found.present && !HasExpired(deadline_ms, core_.now.Advance(now_ms));
      core_.watches.Arm(watch, present, present ? deadline_ms : 0);
    }
    btree::UnlockUnchanged(place.node, place.word.bits);
  }
  core_.versions.LeaveEpoch(slot);
  core_.versions.EndWrites(slot);
  upkeep_.Release();
  core_.slots.Give(slot);
  return watch;
}

BtreeEngine::BtreeEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BtreeEngine::~BtreeEngine() = default;

std::unique_ptr<Engine> BtreeEngine::Make(const EngineOptions& options) {
  auto engine = std::unique_ptr<BtreeEngine>(new BtreeEngine(nullptr));
  engine->impl_ = std::make_unique<Impl>(options, engine->gate_, engine->now_, engine->watches_);
  if (!engine->impl_->Plant()) return nullptr;
  return engine;
}

const EngineTraits& BtreeEngine::traits() const { return impl_->traits_; }
Version BtreeEngine::Execute(Batch& batch) { return impl_->Execute(batch); }
btree::Core& BtreeEngine::core() { return impl_->core_; }

Result<SnapshotRef> BtreeEngine::OpenSnapshot(uint64_t now_ms) {
  if (!impl_->traits_.snapshots) {
    return Fail(Code::kNotSupported, "this engine keeps one version of a key");
  }
  impl_->core_.snapshots.CloseExpired(now_ms);
  SnapshotRef snapshot = impl_->core_.snapshots.Open(gate_, NewSnapshotId(),
                                                     now_ms + impl_->options_.snapshot_age_ms_max);
  snapshot.now_ms = now_.Advance(now_ms);
  return snapshot;
}

Result<uint64_t> BtreeEngine::Watch(std::string_view key, uint64_t now_ms) {
  if (key.size() > impl_->traits_.key_bytes_max) {
    return Fail(Code::kTooLarge, "key exceeds the maximum size", impl_->traits_.key_bytes_max);
  }
  return impl_->Watch(key, now_ms);
}

void BtreeEngine::CloseSnapshot(SnapshotRef snapshot) { impl_->core_.snapshots.Close(snapshot.id); }

bool BtreeEngine::Maintain(uint64_t now_ms) {
  Slot& slot = impl_->core_.slots.Take();
  const bool expires =
      impl_->expirer_.Run(slot, now_.Advance(now_ms), impl_->options_.expiry_lag_ms);
  const bool more = impl_->upkeep_.Maintain(slot, now_ms) || expires;
  impl_->core_.slots.Give(slot);
  return more;
}

EngineStatistics BtreeEngine::Statistics() const {
  const Core& core = impl_->core_;
  const Version version = core.Stamp(core.versions.last_drawn());
  const auto reclaim = core.reclaimer.Statistics();
  const auto snapshots = core.snapshots.Statistics();
  return {.items = core.ItemCount(),
          .deadlines = core.DeadlineCount(),
          .expired_keys = core.expired_keys.load(std::memory_order_relaxed),
          .bytes = core.arena.Statistics().held_bytes + core.table.held_bytes(),
          .old_versions = reclaim.kept + reclaim.waiting,
          .snapshots = snapshots.count,
          .oldest_snapshot = snapshots.oldest,
          .version = version};
}

const char* BtreeEngine::Verify() const { return btree::VerifyTree<Layout>(impl_->core_); }

TreeStatistics BtreeEngine::Impl::Survey(const btree::SurveyBounds& bounds) {
  // A reader, so that nothing it looks at is freed.
  Slot& slot = core_.slots.Take();
  core_.versions.EnterEpoch(slot);
  TreeStatistics tree = btree::SurveyNodes(core_, bounds);
  core_.versions.LeaveEpoch(slot);
  core_.slots.Give(slot);
  btree::AddCounters(core_, &tree);
  return tree;
}

void BtreeEngine::Describe(uint64_t now_ms, const Teller& tell) const {
  btree::Tell(impl_->Survey(kDescribed), tell);
  const auto snapshots = impl_->core_.snapshots.Statistics();
  const uint64_t age_max = impl_->options_.snapshot_age_ms_max;
  const bool has_age = snapshots.count > 0 && now_ms + age_max > snapshots.oldest_deadline_ms;
  tell("expiring_leaves", impl_->core_.expiry.size());
  tell("snapshot_age_ms", has_age ? now_ms + age_max - snapshots.oldest_deadline_ms : 0);
}

TreeStatistics BtreeEngine::Tree() const {
  TreeStatistics tree = impl_->Survey({});
  tree.huge_bytes = impl_->core_.arena.HugeBytes().value_or(0);
  return tree;
}

}  // namespace skep
