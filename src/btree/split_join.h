// split_join.h: splits and joins of nodes, by which the tree grows and shrinks (Honeycomb, section
// 3.4; spec 5.3, 5.4).
//
// Every change of structure is neutral: it moves items between nodes and changes no key or value.
// Writers ask for it when an item finds no room, and then begin their own operation again.
//
//   split    node -> two new nodes, even in bytes, or cut where the writer asks for it
//   join     two siblings under one parent -> one new node, or two even ones
//   root     keeps its LID: it grows by moving its content into two new children, and takes over
//            the content of its child when it has only one
//
// Each is one StructureChange (structure_change.h): the node, its parent and, for a join, the
// sibling are locked; the old nodes leave the tree, new LIDs take their place, and the parent's
// buffer is swapped, which is the paper's root of the split. A parent that has no room for one more
// separator is split first, in the same way and on its own. So no change ever needs more than one
// level, and a split of three levels is three small changes instead of a lock on the whole path.
//
// Sibling links are redirected after the swap, by Relink: it finds the leaves on both sides of a
// fence and stores each other's link in them, without locks, and looks whether both are still the
// newest. A writer that replaces a leaf copies the links, maps the new buffer, and then looks at
// the old links again. All of these are seq_cst, so either Relink sees the new mapping and repeats,
// or the writer sees the new link. If both give up a link stays late, which costs a reader one way
// down (reader.h) and nothing else. The paper locks both neighbours instead.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "btree/core.h"
#include "btree/node_items.h"
#include "btree/reader.h"
#include "btree/structure_change.h"

namespace skep::btree {

// A node on the way down, as it was read.
struct Step {
  Link link = {};
  NodeHeader* node = nullptr;
  uint64_t word = 0;
  uint32_t child = 0;  // inner nodes: the number of the child that the way goes on to
};

// The nodes from the root to a leaf.
class Path {
 public:
  static constexpr size_t kDepthMax = 24;

  void clear() { size_ = 0; }
  void push(const Step& step) { steps_[size_++] = step; }
  size_t size() const { return size_; }
  Step& operator[](size_t i) { return steps_[i]; }
  const Step& operator[](size_t i) const { return steps_[i]; }
  const Step& leaf() const { return steps_[size_ - 1]; }

 private:
  std::array<Step, kDepthMax> steps_;
  size_t size_ = 0;
};

// Thread safety: stateless but for the core. The caller is inside an epoch, has announced that it
// writes, and has called Versions::BeginOperation before it descended.
template <class Layout>
class SplitJoin {
 public:
  explicit SplitJoin(Core& core) : core_(core), reader_(core) {}

  // Finds the newest way to the leaf of the key. Cost: half of each inner node, for the child's
  // number.
  void Descend(std::string_view key, Path* path) const;

  // Splits the node at `depth`. `separator` is a key that becomes the first possible one of the
  // right half (leaves only; kAgain if it is not strictly inside the fences); null: even halves.
  // Even if not kDone, `path` may be out of date afterwards.
  Attempt Split(ThreadState& thread, const Path& path, size_t depth, Arena::Limit limit,
                const std::string_view* separator = nullptr);

  // Merges the log of the key's leaf, or splits the leaf; kAgain if that is done, since the caller
  // then has to find its place again.
  Attempt Refresh(ThreadState& thread, std::string_view key, Arena::Limit limit);

  // Joins nodes around the key that have become too small, as far as no other writer is in the way.
  // Never fails: a join that is not possible now is done on a later occasion. Returns the leaf of
  // the key as it last saw it.
  const NodeHeader* Balance(ThreadState& thread, std::string_view key);

  // Makes the leaves on both sides of the fence link to each other.
  void Relink(std::string_view fence) const;

  // Appends the keys of the leaf that have a value, in order, as of `used`: views into the node.
  void Gather(const NodeHeader* leaf, uint32_t used,
              std::vector<typename Layout::LeafItem>* items) const;

 private:
  using LeafItem = typename Layout::LeafItem;
  using InnerItem = typename Layout::InnerItem;
  using Fences = typename Layout::Fences;
  struct Halves {
    Link left, right;
    StoredKey separator;  // as the parent will hold it
    std::string text;     // the whole separator
  };

  Attempt GrowRoot(ThreadState& thread, const Step& root, Arena::Limit limit,
                   const std::string_view* separator);
  Attempt BalanceStep(ThreadState& thread, const Path& path);
  Attempt CollapseRoot(ThreadState& thread, const Step& root);
  Attempt Join(ThreadState& thread, const Path& path, size_t depth);
  bool MakeHalves(StructureChange<Layout>& change, const Step& node,
                  const std::string_view* separator, Halves* halves) const;
  bool CanCut(std::span<const LeafItem> items, size_t cut, const Fences& fences,
              std::string_view separator) const;
  bool MakeLeafHalves(StructureChange<Layout>& change, std::span<const LeafItem> items,
                      const Fences& fences, const std::string_view* separator,
                      Halves* halves) const;
  bool MakePlainHalves(StructureChange<Layout>& change, const ItemSpan& items, const Fences& fences,
                       Halves* halves) const;
  size_t EvenCut(std::span<const LeafItem> items, std::string* separator) const;
  template <class Items>
  bool BuildLeafHalves(StructureChange<Layout>& change, const Items& left_items,
                       const Items& right_items, const Fences& fences, Halves* halves) const;
  bool MakeInnerHalves(StructureChange<Layout>& change, uint8_t level, Link leftmost,
                       std::span<const InnerItem> items, const Fences& fences,
                       Halves* halves) const;
  bool JoinLeaves(StructureChange<Layout>& change, const Step& left, const Step& right,
                  Halves* halves) const;
  bool JoinInner(StructureChange<Layout>& change, const Step& left, const Step& right,
                 const StoredKey& between, Halves* halves) const;
  bool IsTooSmall(const NodeHeader* node) const;
  bool IsInside(const NodeHeader* node, std::string_view key) const;

  Core& core_;
  const Reader<Layout> reader_;
};

// The shortest key that is above `left` and not above `right`; left < right.
std::string_view ShortestSeparator(std::string_view left, std::string_view right);

}  // namespace skep::btree
