#include "tests/linearizability/tree_probe.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "btree/core.h"
#include "engine/forwarding_engine.h"

namespace skep::linearizability {
namespace {

using btree::SyncPoint;

// The generator is not seeded: the schedule of real threads cannot be repeated anyway.
uint64_t NextRandom() {
  static std::atomic<uint64_t> threads{0};
  static thread_local uint64_t state = threads.fetch_add(0x9e3779b97f4a7c15) + 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// Waits long enough for another thread to do several operations.
void LetOthersRun() {
  if (NextRandom() % 4 != 0) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(1));  // plus the kernel's timer slack
  }
}

Engine& InnermostOf(Engine& engine) {
  Engine* at = &engine;
  while (const auto* const outer = dynamic_cast<const ForwardingEngine*>(at)) at = &outer->inner();
  return *at;
}

}  // namespace

void TreeTally::Note(const TreeStatistics& tree) {
  leaves_max_ = std::max(leaves_max_, tree.leaves);
  height_min_ = std::min(height_min_, tree.height);
  height_max_ = std::max(height_max_, tree.height);
}

uint64_t TreeTally::buffers() const { return Reached(SyncPoint::kMergeMapped); }
uint64_t TreeTally::restructurings() const { return Reached(SyncPoint::kStructureLocked); }
uint64_t TreeTally::range_deletes() const { return Reached(SyncPoint::kDetachMapped); }
uint64_t TreeTally::siblings() const { return Reached(SyncPoint::kReaderAtSibling); }

std::ostream& operator<<(std::ostream& out, const TreeTally& tally) {
  return out << tally.buffers() << " buffers mapped, " << tally.restructurings()
             << " splits and joins begun, " << tally.range_deletes() << " range deletes, "
             << tally.siblings() << " sibling links followed; up to " << tally.leaves_max()
             << " leaves and height " << tally.height_max();
}

TreeProbe::TreeProbe(Engine& engine, TreeTally& tally, uint32_t one_in)
    : tree_(dynamic_cast<BtreeEngine*>(&InnermostOf(engine))), tally_(tally), one_in_(one_in) {
  if (tree_ != nullptr) tree_->core().hook = {.call = AtPoint, .context = this};
}

void TreeProbe::AtPoint(void* context, SyncPoint point) {
  const auto& probe = *static_cast<const TreeProbe*>(context);
  probe.tally_.Count(point);
  if (probe.one_in_ != 0 && NextRandom() % probe.one_in_ == 0) LetOthersRun();
}

void TreeProbe::Note() {
  if (tree_ != nullptr) tally_.Note(tree_->Tree());
}

}  // namespace skep::linearizability
