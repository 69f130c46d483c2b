#include "btree/verify.h"

#include <algorithm>
#include <optional>
#include <string>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/pieces.h"
#include "btree/reclaim.h"

namespace skep::btree {
namespace {

template <class Layout>
class Verifier {
 public:
  explicit Verifier(const Core& core) : core_(core) {}

  const char* Verify() {
    if (const char* wrong = VisitNode(core_.root, "", std::nullopt, std::nullopt)) return wrong;
    if (deadlines_ != core_.DeadlineCount()) return "T5: the threads count the deadlines";
    if (keys_ != core_.ItemCount()) return "T5: the threads count the keys";
    const bool something_leaves = SomethingLeaves();
    if (core_.table.allocated() < nodes_ ||
        (core_.table.allocated() > nodes_ && !something_leaves)) {
      return "T6: every LID is in the tree or on its way out";
    }
    const uint64_t allocated = core_.arena.Statistics().allocated_bytes;
    const uint64_t in_tree = node_bytes_ + BlockBytes();
    if (allocated < in_tree || (allocated > in_tree && !something_leaves)) {
      return "T9: what the arena holds is in the tree or on its way out";
    }
    return core_.arena.Verify();
  }

 private:
  bool SomethingLeaves() const {
    const ReclaimStatistics out = core_.reclaimer.Statistics();
    return out.waiting + out.kept + out.dying + out.detached + out.pinned > 0 || SlotsHoldSome();
  }

  bool SlotsHoldSome() const {
    bool some = false;
    core_.threads.ForEach([&](const ThreadState& thread) { some |= !thread.retired.empty(); });
    return some;
  }

  // The bytes of the outside blocks that the nodes name. Several nodes may name one block.
  uint64_t BlockBytes() {
    const auto place = [](const OutsideBlock& block) { return block.at.bits; };
    std::ranges::sort(blocks_, {}, place);
    const auto twice = std::ranges::unique(blocks_, {}, place);
    blocks_.erase(twice.begin(), twice.end());
    AddPieces(core_.arena, &blocks_);
    uint64_t bytes = 0;
    for (const OutsideBlock& block : blocks_) bytes += Arena::RoundUp(block.bytes);
    return bytes;
  }

  const char* VisitNode(Link link, const std::string& lower,
                        const std::optional<std::string>& upper, std::optional<uint8_t> level) {
    ++nodes_;
    const ArenaAddress at = core_.table.Find(link);
    if (!at) return "T2: a child's link leads to a node";
    const NodeHeader* const node = core_.Node(at);
    const NodeWord word{node->word.load(std::memory_order_acquire)};
    if (word.dead() || word.locked()) return "T1: a node of the tree is not dead or locked";
    if (level && node->level != *level) return "T3: levels fall by one";
    if (const char* wrong = Layout::Check(core_.codec, node, word.used())) return wrong;
    node_bytes_ += Arena::RoundUp(node->buffer_bytes());
    Layout::BlocksOf(core_.codec, node, word.used(), &blocks_);
    Scratch scratch;
    const auto fences = Layout::FencesOf(core_.codec, node);
    if (core_.codec.Whole(fences.lower, scratch) != lower ||
        fences.unbounded == upper.has_value() ||
        (upper && core_.codec.Whole(fences.upper, scratch) != *upper)) {
      return "T2: fences are the parent's separators";
    }
    if (const char* wrong = VisitChain(node)) return wrong;
    if (!node->is_leaf()) return VisitChildren(node, lower, upper);
    const typename Layout::Leaf leaf(core_.codec, node, word.used());
    if (leaf.newest_version() > core_.versions.last_drawn()) return "T4: versions were drawn";
    keys_ += leaf.CountPresent();
    typename Layout::LeafCursor cursor(leaf);
    for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) {
      deadlines_ += DeadlineOf(cursor.value()) != 0 ? 1 : 0;
    }
    if (const uint64_t deadline_ms = Layout::NodeDeadline(core_.codec, node);
        deadline_ms != Layout::kNoDeadline && core_.expiry.is_whole() &&
        core_.expiry.Find(link.lid()).value_or(UINT64_MAX) > deadline_ms) {
      return "T10: the expiry queue has every leaf with a deadline";
    }
    return nullptr;
  }

  const char* VisitChildren(const NodeHeader* node, const std::string& lower,
                            const std::optional<std::string>& upper) {
    const typename Layout::Inner inner(core_.codec, node);
    std::vector<typename Layout::InnerItem> items;
    inner.CopyTo(&items);
    const auto level = static_cast<uint8_t>(node->level - 1);
    std::string from = lower;
    Link child = inner.leftmost();
    for (const auto& item : items) {
      Scratch scratch;
      const std::string separator(core_.codec.Whole(item.separator, scratch));
      if (const char* wrong = VisitNode(child, from, separator, level)) return wrong;
      from = separator;
      child = item.child;
    }
    return VisitNode(child, from, upper, level);
  }

  const char* VisitChain(const NodeHeader* newest) {
    const NodeHeader* node = newest;
    Version version = node->version.load(std::memory_order_relaxed);
    if (version > core_.versions.last_drawn()) return "T4: versions were drawn";
    while (true) {
      const Older older{node->older.load(std::memory_order_acquire)};
      if (!older.buffer()) return nullptr;
      node = core_.Node(older.buffer());
      const Version before = node->version.load(std::memory_order_relaxed);
      if (before >= version) return "T4: versions fall along a chain";
      if (!NodeWord{node->word.load(std::memory_order_relaxed)}.replaced()) {
        return "T4: an older buffer is marked replaced";
      }
      version = before;
    }
  }

  const Core& core_;
  uint64_t nodes_ = 0;
  uint64_t keys_ = 0;
  uint64_t deadlines_ = 0;
  uint64_t node_bytes_ = 0;
  std::vector<OutsideBlock> blocks_;
};

}  // namespace

template <class Layout>
const char* VerifyTree(const Core& core) {
  return Verifier<Layout>(core).Verify();
}

template const char* VerifyTree<PaperLayout>(const Core& core);
template const char* VerifyTree<HeadLayout>(const Core& core);

}  // namespace skep::btree
