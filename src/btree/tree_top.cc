#include "btree/tree_top.h"

#include <utility>
#include <vector>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {
namespace {

// Collects links until one of the limits is reached.
template <class Layout>
class LinkReader {
 public:
  LinkReader(const Core& core, uint32_t links_max, size_t bytes_max)
      : core_(core), links_max_(links_max), bytes_max_(bytes_max) {}

  // Adds the links of the leaves below the key's lowest inner node, from the key's on. Returns
  // whether to go on; `next` is then the key to go on from, or, at a limit, what was not read.
  bool ReadNode(std::string_view key, std::string* next) {
    const auto [link, node] = LowestInner(key);
    const Fences fences = Layout::FencesOf(core_.codec, node);
    if (node->is_leaf()) {
      Add(fences.lower, link);
      next->clear();
      return false;
    }
    const typename Layout::Inner inner(core_.codec, node);
    uint32_t child = 0;
    inner.ChildOf(key, &child);
    inner.CopyTo(&items_);
    if (child == 0) Add(fences.lower, inner.leftmost());
    for (size_t i = std::max(child, 1u) - 1; i < items_.size(); ++i) {
      if (IsFull()) {
        Assign(items_[i].separator, next);
        return false;
      }
      Add(items_[i].separator, items_[i].child);
    }
    next->clear();
    if (fences.unbounded) return false;
    Assign(fences.upper, next);
    return !IsFull();
  }

  LeafLinks Take(std::string next) {
    result_.next = std::move(next);
    return std::move(result_);
  }

 private:
  struct Place {
    Link link;
    const NodeHeader* node;
  };

  // The parent of the key's leaf; the root, if that is a leaf.
  Place LowestInner(std::string_view key) const {
    Place at{.link = core_.root, .node = core_.Head(core_.root)};
    while (at.node->level > 1) {
      at.link = typename Layout::Inner(core_.codec, at.node).ChildOf(key);
      at.node = core_.Head(at.link);
    }
    return at;
  }

  // A page has at least one link, so that those who ask for the next one get on.
  bool IsFull() const {
    const size_t links = result_.links.size();
    return links > 0 && (links >= links_max_ || result_.bytes.used() >= bytes_max_);
  }

  void Add(const StoredKey& lower, Link link) {
    scratch_.Clear();
    result_.links.push_back({.lower = result_.bytes.Copy(core_.codec.Whole(lower, scratch_)),
                             .hint = {link.bits},
                             .hits = core_.table.Hits(link.lid())});
  }

  void Assign(const StoredKey& key, std::string* to) {
    scratch_.Clear();
    to->assign(core_.codec.Whole(key, scratch_));
  }

  const Core& core_;
  const uint32_t links_max_;
  const size_t bytes_max_;
  LeafLinks result_;
  std::vector<InnerItem> items_;
  Scratch scratch_;
};

}  // namespace

template <class Layout>
LeafLinks LinksOfLeaves(const Core& core, std::string_view from, uint32_t links_max,
                        size_t bytes_max) {
  LinkReader<Layout> reader(core, links_max, bytes_max);
  std::string key(from);
  std::string next;
  while (reader.ReadNode(key, &next)) key = next;
  return reader.Take(std::move(next));
}

template LeafLinks LinksOfLeaves<PaperLayout>(const Core&, std::string_view, uint32_t, size_t);
template LeafLinks LinksOfLeaves<HeadLayout>(const Core&, std::string_view, uint32_t, size_t);

}  // namespace skep::btree
