#include "btree/directory_keeper.h"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "btree/core.h"
#include "btree/fence_words.h"
#include "btree/heads/head_layout_search.h"
#include "btree/leaf_directory.h"
#include "btree/paper/paper_layout.h"
#include "btree/reader.h"
#include "btree/tree_top.h"

namespace skep::btree {
namespace {

static_assert(Core::kLidsMax <= uint64_t{1} << LeafDirectory::kLidBits);

constexpr uint64_t kRoomFactor = 4;
constexpr uint64_t kPatienceMax = uint64_t{1} << 20;

// At most so many fences are looked at for the choice of words.
constexpr Lid kFencesSampled = 256;

// Words for the lower fences of the leaves. The lowest but one and the highest give what all but
// the first have in common; nodes with LIDs far from each other, whose lower fences are those of
// leaves, give what differs.
template <class Layout>
FenceWords WordsOfFences(const Core& core) {
  Scratch scratch;
  const auto lower_of = [&](const NodeHeader* node) {
    scratch.Clear();
    return std::string(core.codec.Whole(Layout::FencesOf(core.codec, node).lower, scratch));
  };
  const LeafLinks first = LinksOfLeaves<Layout>(core, {}, 2, SIZE_MAX);
  if (first.links.size() < 2) return FenceWords({});
  std::vector<std::string> fences;
  fences.emplace_back(first.links[1].lower);
  fences.push_back(lower_of(Reader<Layout>(core).FindLast(Reader<Layout>::kNewest).node));
  std::string prefix = fences[0].substr(0, heads::CommonPrefix(fences[0], fences[1]));
  const Lid end = core.table.end();
  const Lid step = std::max<Lid>(end / kFencesSampled, 1);
  for (Lid lid = 1; lid < end; lid += step) {
    const ArenaAddress buffer = core.table.Load(lid).buffer();
    if (!buffer) continue;
    std::string fence = lower_of(core.Node(buffer));
    if (fence.starts_with(prefix)) fences.push_back(std::move(fence));
  }
  return {std::move(prefix), fences};
}

}  // namespace

DirectoryKeeper::DirectoryKeeper(MemoryBudget& budget) : budget_(budget) {}
DirectoryKeeper::~DirectoryKeeper() { budget_.Release(held_bytes()); }

template <class Layout>
bool DirectoryKeeper::Maintain(Core& core, ThreadState& thread) {
  if (!mutex_.try_lock()) return false;
  const MutexLock lock(mutex_, std::adopt_lock);
  FreeRetired(core);
  if (retired_ != nullptr) return false;
  try {
    if (made_ != nullptr) return Build<Layout>(core, thread);
    const uint64_t leaves = core.leaves.load(std::memory_order_relaxed);
    if (owned_ != nullptr && leaves < owned_->leaves() / 2) Publish(core, nullptr);
    return retired_ == nullptr && IsDue(core, leaves) && Begin<Layout>(core, thread, leaves);
  } catch (const std::bad_alloc&) {
    core.versions.LeaveEpoch(thread);
    GiveUp(core);
    return false;
  }
}

bool DirectoryKeeper::IsDue(const Core& core, uint64_t leaves) const {
  if (leaves < limits_.leaves_min) return false;
  return core.Sum(&ThreadState::unguided) - noted_ >= leaves * patience_ / kUnguidedShare;
}

template <class Layout>
bool DirectoryKeeper::Begin(Core& core, ThreadState& thread, uint64_t leaves) {
  // Leaves that are split meanwhile find room, too.
  const uint64_t leaves_max = leaves + leaves / 16 + LeafDirectory::kGroup;
  core.versions.EnterEpoch(thread);
  FenceWords words = WordsOfFences<Layout>(core);
  core.versions.LeaveEpoch(thread);
  if (!budget_.HasRoomFor(kRoomFactor * LeafDirectory::BytesOf(leaves_max))) {
    GiveUp(core);
    return false;
  }
  next_.clear();
  made_ = LeafDirectory::Make(leaves_max, std::move(words));
  if (made_ == nullptr) {
    GiveUp(core);
    return false;
  }
  Charge(*made_);
  return true;
}

// Reads the links of some leaves. Returns whether there are more.
template <class Layout>
bool DirectoryKeeper::Build(Core& core, ThreadState& thread) {
  core.versions.EnterEpoch(thread);
  const LeafLinks page = LinksOfLeaves<Layout>(core, next_, limits_.leaves_maintain, SIZE_MAX);
  core.versions.LeaveEpoch(thread);
  // The first leaf of the page may begin before `next_`, if leaves were joined meanwhile.
  std::string_view lower = next_;
  for (const LeafLink& link : page.links) {
    const Link leaf{link.hint.bits};
    if (leaf == core.root || !made_->Add(&link == &page.links.front() ? lower : link.lower, leaf)) {
      GiveUp(core);
      return false;
    }
  }
  next_ = page.next;
  if (!next_.empty()) return true;
  made_->Finish();
  if (made_->alike() * kAlikeShare > made_->leaves()) {
    GiveUp(core);
    return false;
  }
  Publish(core, std::move(made_));
  patience_ = 1;
  builds_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void DirectoryKeeper::Publish(Core& core, std::unique_ptr<LeafDirectory> directory) {
  noted_ = core.Sum(&ThreadState::unguided);
  current_.store(directory.get(), std::memory_order_seq_cst);  // (1)
  retired_ = std::exchange(owned_, std::move(directory));
  if (retired_ == nullptr) return;
  retired_epoch_ = core.versions.AdvanceEpoch();  // (2)
  FreeRetired(core);
}

void DirectoryKeeper::FreeRetired(const Core& core) {
  if (retired_ == nullptr || core.versions.LowestEpoch() <= retired_epoch_) return;
  Discard(std::move(retired_));
}

void DirectoryKeeper::GiveUp(const Core& core) {
  if (made_ != nullptr) Discard(std::move(made_));
  noted_ = core.Sum(&ThreadState::unguided);
  patience_ = std::min(2 * patience_, kPatienceMax);
}

void DirectoryKeeper::Charge(const LeafDirectory& directory) {
  budget_.Charge(directory.bytes());
  held_bytes_.fetch_add(directory.bytes(), std::memory_order_relaxed);
}

void DirectoryKeeper::Discard(std::unique_ptr<LeafDirectory> directory) {
  budget_.Release(directory->bytes());
  held_bytes_.fetch_sub(directory->bytes(), std::memory_order_relaxed);
}

void DirectoryKeeper::Replace(Core& core, std::unique_ptr<LeafDirectory> directory) {
  const MutexLock lock(mutex_);
  Charge(*directory);
  Publish(core, std::move(directory));
}

template bool DirectoryKeeper::Maintain<PaperLayout>(Core&, ThreadState&);
template bool DirectoryKeeper::Maintain<HeadLayout>(Core&, ThreadState&);

}  // namespace skep::btree
