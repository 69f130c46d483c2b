#include "btree/bulk_load.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "btree/split_join.h"
#include "engine/batch_writer.h"

namespace skep::btree {
namespace {

constexpr uint32_t FillOf(uint32_t bytes) { return bytes / 10 * 9; }

// Links two leaves as neighbours. No other thread knows them.
void Join(Core& core, Link left, Link right) {
  core.Head(left)->right.store(right.bits, std::memory_order_relaxed);
  core.Head(right)->left.store(left.bits, std::memory_order_relaxed);
}

}  // namespace

template <class Layout>
class TreeBulkLoad<Layout>::Part final : public BulkLoad::Part {
 public:
  Part(TreeBulkLoad& owner, std::string_view lower, std::optional<std::string> upper)
      : owner_(owner),
        core_(owner.core_),
        thread_(core_.threads.Take()),
        last_(lower),
        lower_(lower),
        upper_(std::move(upper)) {
    core_.versions.BeginWrites(thread_);
    BeginLeaf();
  }
  ~Part() override {
    change_.reset();
    core_.versions.EndWrites(thread_);
    core_.threads.Give(thread_);
  }

  Status Add(std::string_view key, std::string_view value, uint64_t deadline_ms,
             uint8_t type) override {
    const Request put = {
        .op = Op::kPut, .type = type, .key = key, .value = value, .deadline_ms = deadline_ms};
    if (const Status s = CheckSizes(put, owner_.traits_); !s.ok()) return s;
    const bool is_in_order = has_last_ ? key > last_ : key >= last_;
    if (!is_in_order || (upper_ && key >= *upper_)) {
      return {Code::kInvalidArgument, "a key of a bulk load is not in order"};
    }
    if (deadline_ms > kDeadlineMax) return {Code::kInvalidArgument, "the deadline is too late"};
    const uint32_t bytes = BytesOf(put);
    if (!items_.empty() && bytes_ + bytes > FillOf(Layout::LeafBytesMax(core_.codec.geometry))) {
      if (const Status s = EndLeaf(std::string(ShortestSeparator(last_, key))); !s.ok()) return s;
    }
    typename Layout::LeafItem& item = items_.emplace_back();
    if (!Store(put, &item)) return owner_.NoMemory();
    bytes_ += bytes;
    deadlines_ += deadline_ms != 0;
    last_.assign(key);
    has_last_ = true;
    return {};
  }

  Status Finish() override {
    if (const Status s = EndLeaf(upper_); !s.ok()) return s;
    const MutexLock lock(owner_.mutex_);
    owner_.parts_.push_back(std::move(leaves_));
    return {};
  }

 private:
  void BeginLeaf() {
    const Geometry& g = core_.codec.geometry;
    change_.emplace(core_, thread_, Arena::Limit::kObey);
    // The fences may be of any length that a node holds.
    bytes_ = Layout::FixedBytes(g) + 2 * (field::kLengthBytes + g.key_inline_max());
  }

  // The most bytes that the pair takes of a leaf.
  uint32_t BytesOf(const Request& put) const {
    const Geometry& g = core_.codec.geometry;
    const size_t metadata = MetadataBytes(put.deadline_ms, put.type);
    const size_t key = std::min<size_t>(put.key.size(), g.key_inline_max());
    const size_t value = std::min<size_t>(metadata + put.value.size(), g.value_inline_max());
    return Layout::LeafItemBytes({}) + static_cast<uint32_t>(key + value);
  }

  // Stores the pair in the form that the leaf will hold, as `put` is gone when the leaf is built.
  bool Store(const Request& put, typename Layout::LeafItem* item) {
    Storing& storing = change_->storing();
    if (!storing.Key(put.key, &item->key) ||
        !storing.Value(put.value, put.deadline_ms, put.type, &item->value)) {
      return false;
    }
    if (!item->key.outside) item->key.bytes = texts_.Copy(item->key.bytes);
    if (!item->value.outside && !item->value.has_metadata) {
      item->value.bytes = texts_.Copy(item->value.bytes);
    }
    return true;
  }

  // Ends the leaf: it has the keys below `upper`, where the next one begins.
  Status EndLeaf(std::optional<std::string> upper) {
    typename Layout::Fences fences{.unbounded = !upper};
    if (!change_->storing().Key(lower_, &fences.lower) ||
        (upper && !change_->storing().Key(*upper, &fences.upper))) {
      return owner_.NoMemory();
    }
    core_.versions.BeginOperation(thread_);
    const Link link = change_->NewLeaf(items_, fences);
    if (!link) return owner_.NoMemory();
    change_->Draw();  // never refused: no other thread stops writers
    change_->Publish();
    thread_.AddItems(static_cast<int64_t>(items_.size()), deadlines_);
    if (!leaves_.empty()) Join(core_, leaves_.back().link, link);
    leaves_.push_back({.lower = std::move(lower_), .link = link});
    lower_ = std::move(upper).value_or("");
    items_.clear();
    texts_.Clear();
    deadlines_ = 0;
    BeginLeaf();
    return {};
  }

  TreeBulkLoad& owner_;
  Core& core_;
  ThreadState& thread_;
  std::string last_;  // the key before; at first the lower bound of the part
  bool has_last_ = false;
  std::string lower_;  // lower fence of the leaf that is being filled
  const std::optional<std::string> upper_;
  std::optional<StructureChange<Layout>> change_;  // of the leaf that is being filled
  std::vector<typename Layout::LeafItem> items_;
  Scratch texts_;
  uint32_t bytes_ = 0;
  int64_t deadlines_ = 0;
  Children leaves_;
};

template <class Layout>
std::unique_ptr<BulkLoad::Part> TreeBulkLoad<Layout>::Open(std::string_view lower,
                                                           std::optional<std::string> upper) {
  return std::make_unique<Part>(*this, lower, std::move(upper));
}

// How many of the children fit into one inner node; at least two, if there are two.
template <class Layout>
size_t TreeBulkLoad<Layout>::CountFitting(std::span<const Child> children) const {
  const Geometry& g = core_.codec.geometry;
  uint32_t bytes = Layout::FixedBytes(g) + 2 * (field::kLengthBytes + g.key_inline_max());
  size_t count = 1;
  for (; count < children.size(); ++count) {
    const std::string_view text = children[count].lower;
    const StoredKey separator = {.bytes = text.substr(0, g.key_inline_max())};
    bytes += Layout::InnerItemBytes({.separator = separator, .child = {}});
    if (count > 1 && bytes > FillOf(g.inner_bytes_max())) break;
  }
  return count;
}

// Builds a node over the children, whose last one ends at `upper`; in place of `root`, if that is a
// link. No link: no memory.
template <class Layout>
Link TreeBulkLoad<Layout>::BuildInner(ThreadState& thread, uint8_t level,
                                      std::span<const Child> children, const std::string* upper,
                                      Link root) {
  StructureChange<Layout> change(core_, thread, Arena::Limit::kObey);
  typename Layout::Fences fences{.unbounded = upper == nullptr};
  bool has_memory = change.storing().Key(children[0].lower, &fences.lower) &&
                    (upper == nullptr || change.storing().Key(*upper, &fences.upper));
  std::vector<typename Layout::InnerItem> items(children.size() - 1);
  for (size_t i = 0; i < items.size() && has_memory; ++i) {
    items[i].child = children[i + 1].link;
    has_memory = change.storing().Key(children[i + 1].lower, &items[i].separator);
  }
  if (!has_memory) return {};
  core_.versions.BeginOperation(thread);
  Link link = root;
  if (!root) {
    link = change.NewInner(level, children[0].link, items, fences);
    if (!link) return {};
  } else {
    NodeHeader* const old = core_.Head(root);
    change.Lock(old, old->word.load(std::memory_order_relaxed));
    if (!change.ReplaceByInner(root, old, level, children[0].link, items, fences)) return {};
  }
  change.Draw();
  change.Publish();
  return link;
}

template <class Layout>
Status TreeBulkLoad<Layout>::Finish() {
  std::vector<Children> parts;
  {
    const MutexLock lock(mutex_);
    parts.swap(parts_);
  }
  std::ranges::sort(parts, {}, [](const Children& part) { return part.front().lower; });
  Children children;
  for (Children& part : parts) {
    if (!children.empty()) Join(core_, children.back().link, part.front().link);
    std::ranges::move(part, std::back_inserter(children));
  }
  SKEP_CHECK(!children.empty());
  TakenThreadState thread(core_.threads);
  core_.versions.BeginWrites(thread);
  bool has_memory = true;
  for (uint8_t level = 1; has_memory; ++level) {
    Children parents;
    const bool is_root = CountFitting(children) == children.size();
    for (size_t at = 0; at < children.size() && has_memory;) {
      const auto rest = std::span<const Child>(children).subspan(at);
      const size_t count = CountFitting(rest);
      const std::string* const upper = count == rest.size() ? nullptr : &rest[count].lower;
      const Link link =
          BuildInner(thread, level, rest.first(count), upper, is_root ? core_.root : Link{});
      has_memory = static_cast<bool>(link);
      parents.push_back({.lower = rest[0].lower, .link = link});
      at += count;
    }
    if (is_root) break;
    children = std::move(parents);
  }
  core_.versions.EndWrites(thread);
  upkeep_.Release();
  upkeep_.AfterBatch(thread);
  return has_memory ? Status() : NoMemory();
}

template class TreeBulkLoad<PaperLayout>;
template class TreeBulkLoad<HeadLayout>;

}  // namespace skep::btree
