// look_ahead.h: the paths down to the leaves of many requests, side by side.
//
// One descent is a chain of cache misses, each of which has to come before the next can be asked
// for; a core can wait for dozens of misses at a time. So a window of requests goes down together,
// level by level, and each step asks for what all of them need in the next one:
//
//   lowest inner level   search the node  ->  link  ->  row of the page table  ->  the leaf's
//   header leaves               search line  ->  segment of heads  ->  the item
//
// The nodes above are so few that they stay in the caches.
//
// A long scan reads more than a window of them could keep in the cache; it is fetched when the
// request before it is executed.
//
// What it finds are places, not truths: between here and the execution of a request, requests
// before it in the batch and other threads change the tree. Holds() says whether a place still
// holds: then the leaf's node is the newest of its LID, which is in the tree, so its key range is
// what it was when the tree led here.
//
//   Proof. A buffer is replaced by mapping another one, and marked later; it leaves the tree by a
//   mark, or in a detached subtree. Holds() sees detached() false, then the row, then the mark,
//   as Reader::FromHint does. If row and mark are as before, the node was current when the row was
//   loaded, so it has every write of its keys that finished before that, this thread's own ones
//   included. The epoch keeps the buffer from being another node. Who makes room for a write leaves
//   it: then what was found is forgotten. That the epoch's number is the same again would not be
//   enough: between reading the number and announcing it a thread holds nothing back.
//
// A read of the newest state needs no such look as long as nothing but such reads was executed
// since its window was looked at. Its buffer was the newest of a node of the tree when the row was
// loaded, which is within the batch's time. Rows and, at the end, words are loaded in the order of
// the requests, and a buffer that was replaced has no write that the next one lacks; so of two
// reads of one key the later one sees what the first saw, or more.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/check.h"
#include "btree/core.h"
#include "btree/reader.h"
#include "skep/batch.h"

namespace skep::btree {

// Owner: one batch; `thread` is in its epoch.
template <class Layout>
class LookAhead {
 public:
  // Requests of a window: enough to keep all misses a core can have in flight, few enough that what
  // was fetched for the last one is still there.
  static constexpr uint32_t kWindow = 32;

  using Requests = std::span<const Request>;

  LookAhead(const Core& core, const ThreadState& thread)
      : core_(core), thread_(thread), reader_(core) {}

  // To be called for each request in turn, before it is executed. Looks for the leaves of a window
  // of requests whenever one begins; the places of others are forgotten.
  void Prepare(Requests requests, uint32_t i) {
    if (i % kWindow == 0) {
      Look(requests, i);
      if (has_scans_) FetchScan(requests, i);
    }
    is_fresh_ &= requests[i].op == Op::kGet;
    if (has_scans_) FetchScan(requests, i + 1);
  }

  // The leaf of request `i` for a reader at version `at`, if it has been found and the place still
  // holds: what was found is the newest buffer; if that was made at `at` or before, it is what such
  // a reader sees.
  std::optional<LeafPlace> CurrentAt(uint32_t i, Version at) const;
  // The newest leaf of request `i`, wherever it comes from: the window, the request's hint, the
  // root.
  LeafPlace Newest(uint32_t i, const Request& request) {
    if (is_fresh_ && thread_.epoch_entries == epoch_entry_) {
      const Path& path = paths_[i - first_];
      const NodeWord word{path.node == nullptr ? NodeWord::kRetired
                                               : path.node->word.load(std::memory_order_seq_cst)};
      if (!word.dead()) return PlaceOf(path, word);
      is_fresh_ = false;
    }
    return NewestAgain(i, request);
  }

 private:
  // The way down of one request. Set as far as it goes: a batch does not pay for what it does not
  // look for.
  struct Path {
    NodeHeader* node;  // null: not looked for; in the end a leaf
    uint64_t link_bits;
    uint64_t located;          // in an inner node
    LeafSpot spot;             // in the leaf
    const NodeHeader* beyond;  // the leaf behind, if a scan goes on to it

    Link link() const { return {link_bits}; }
  };
  // To the leaf behind, of the request of that number in the window.
  struct Step {
    uint64_t link_bits;
    uint32_t request;
  };

  // The leaf's word, if the place of request `i` holds; else nothing is said of it.
  bool Holds(uint32_t i, NodeWord* word) const;
  static LeafPlace PlaceOf(const Path& path, NodeWord word) {
    return {.link = path.link(), .node = path.node, .word = word, .spot = path.spot};
  }
  LeafPlace NewestAgain(uint32_t i, const Request& request) const;
  void Look(Requests requests, uint32_t first);
  void Descend(Requests requests, uint32_t root_level);
  void FetchBeyond(Requests requests, std::span<const Step> steps);
  void FetchScan(Requests requests, uint32_t i) const;
  void FetchItemsBeyond(const Path& path, uint32_t items) const;

  // How many items are fetched for it. A range that has an end may be a short one.
  static uint32_t ItemsOf(const Request& r) {
    if (r.op != Op::kScan) return 1;
    const uint32_t items = std::max(r.limit, 1u);
    return r.has(Request::kNoUpperBound) ? items : std::min(items, kShortScan);
  }
  typename Layout::Leaf LeafOf(const NodeHeader* node) const {
    const NodeWord word{node->word.load(std::memory_order_seq_cst)};
    return {core_.codec, node, word.used()};
  }

  const Core& core_;
  const ThreadState& thread_;
  const Reader<Layout> reader_;
  uint64_t epoch_entry_ = 0;  // of the thread in an epoch, when the window was looked at
  uint32_t first_ = 0;
  uint32_t end_ = 0;
  bool is_fresh_ =
      false;  // since the window was looked at, nothing was done but reads at its places
  bool has_scans_ = false;  // that are fetched one by one
  std::array<Path, kWindow> paths_;
};

template <class Layout>
void LookAhead<Layout>::Look(Requests requests, uint32_t first) {
  epoch_entry_ = thread_.epoch_entries;
  first_ = first;
  end_ = std::min(first + kWindow, static_cast<uint32_t>(requests.size()));
  has_scans_ = false;
  // What is alone has nobody to wait beside.
  is_fresh_ = end_ - first_ >= 2;
  if (!is_fresh_) {
    end_ = first_;
    return;
  }
  NodeHeader* const root = core_.Head(core_.root);
  for (uint32_t i = first_; i < end_; ++i) {
    const Request& r = requests[i];
    const bool seeks = r.op < Op::kSample || r.op == Op::kScan || r.op == Op::kCount;
    const bool looks = seeks && r.hint.bits == 0 && !r.has(Request::kReverse);
    has_scans_ |= r.op == Op::kScan && ItemsOf(r) > kShortScan;
    Path& path = paths_[i - first_];
    path.node = looks ? root : nullptr;
    path.link_bits = core_.root.bits;
    path.spot.known = false;
    path.beyond = nullptr;
  }
  core_.Sync(SyncPoint::kReaderAtRoot);
  Descend(requests, root->level);
  core_.Sync(SyncPoint::kReaderInLeaf);
}

template <class Layout>
void LookAhead<Layout>::Descend(Requests requests, uint32_t root_level) {
  const Request* const window = requests.data() + first_;
  const auto for_each = [&](auto visit) {
    const uint32_t count = end_ - first_;
    for (uint32_t i = 0; i < count; ++i) {
      if (paths_[i].node != nullptr) visit(paths_[i], window[i]);
    }
  };
  for (uint32_t level = root_level; level > 1; --level) {
    for_each([&](Path& path, const Request& r) {
      path.node = core_.Head(typename Layout::Inner(core_.codec, path.node).ChildOf(r.key));
      Layout::PrefetchHead(core_.codec, path.node);
    });
    core_.Sync(SyncPoint::kReaderAtChild);
  }
  if (root_level > 0) {
    for_each([&](Path& path, const Request& r) {
      path.located = typename Layout::Inner(core_.codec, path.node).Locate(r.key);
    });
    for_each([&](Path& path, const Request&) {
      const Link link = typename Layout::Inner(core_.codec, path.node).Located(path.located);
      path.link_bits = link.bits;
      core_.table.Prefetch(link.lid());
    });
    core_.Sync(SyncPoint::kReaderAtChild);
    for_each([&](Path& path, const Request& r) {
      path.node = core_.Head(path.link());
      Layout::PrefetchLeaf(core_.codec, path.node, r.op == Op::kGet);
    });
  }
  for_each([&](Path& path, const Request& r) {
    SKEP_DCHECK(path.node->is_leaf());
    const NodeWord word{path.node->word.load(std::memory_order_seq_cst)};
    // A leaf that has left the tree may name outside blocks that are gone.
    if (word.retired()) return;
    path.spot = typename Layout::Leaf(core_.codec, path.node, word.used()).Prefetch(r.key);
  });
  std::array<Step, kWindow> steps;
  uint32_t step_count = 0;
  for_each([&](Path& path, const Request& r) {
    if (!path.spot.known) return;
    const typename Layout::Leaf leaf(core_.codec, path.node, path.spot.used);
    const uint32_t items = ItemsOf(r);
    leaf.PrefetchItems(items, &path.spot);
    if (r.op == Op::kGet) return;
    if (IsWrite(r.op)) leaf.PrefetchWrite();
    if (r.op != Op::kScan || !leaf.GoesBeyond(path.spot, items)) return;
    const Link right{path.node->right.load(std::memory_order_acquire)};
    if (!right) return;
    steps[step_count++] = {.link_bits = right.bits,
                           .request = static_cast<uint32_t>(&path - paths_.data())};
    core_.table.Prefetch(right.lid());
  });
  FetchBeyond(requests, std::span<const Step>(steps).first(step_count));
}

// The leaves that scans go on to.
template <class Layout>
void LookAhead<Layout>::FetchBeyond(Requests requests, std::span<const Step> steps) {
  for (const Step& step : steps) {
    const ArenaAddress at = core_.table.Find(Link{step.link_bits});
    if (!at) continue;
    const NodeHeader* const node = core_.Node(at);
    Layout::PrefetchLeaf(core_.codec, node, false);
    paths_[step.request].beyond = node;
  }
  for (const Step& step : steps) {
    Path& path = paths_[step.request];
    if (path.beyond == nullptr) continue;
    if (!path.beyond->is_leaf()) {
      path.beyond = nullptr;
      continue;
    }
    LeafOf(path.beyond).PrefetchFences();
    const uint32_t items = ItemsOf(requests[first_ + step.request]);
    if (items <= kShortScan) FetchItemsBeyond(path, items);
  }
}

// What a scan reads beyond what the window asks for. All that at once would be more than a cache
// holds and more than a core can wait for; so it is asked for while the scan before it copies.
template <class Layout>
void LookAhead<Layout>::FetchScan(Requests requests, uint32_t i) const {
  if (i >= end_ || thread_.epoch_entries != epoch_entry_) return;
  const Request& r = requests[i];
  const Path& path = paths_[i - first_];
  const uint32_t items = ItemsOf(r);
  if (items <= kShortScan || !path.spot.known) return;
  LeafOf(path.node).PrefetchScan(path.spot.at, items);
  if (path.beyond != nullptr) FetchItemsBeyond(path, items);
}

template <class Layout>
void LookAhead<Layout>::FetchItemsBeyond(const Path& path, uint32_t items) const {
  const uint32_t here = uint32_t{path.node->sorted_count} - path.spot.at;
  if (here < items) LeafOf(path.beyond).PrefetchScan(0, items - here);
}

template <class Layout>
bool LookAhead<Layout>::Holds(uint32_t i, NodeWord* word) const {
  if (i < first_ || i >= end_ || thread_.epoch_entries != epoch_entry_) return false;
  const Path& path = paths_[i - first_];
  if (path.node == nullptr || core_.reclaimer.detached()) return false;
  if (core_.Head(path.link()) != path.node) return false;
  core_.Sync(SyncPoint::kReaderAtHint);
  *word = {path.node->word.load(std::memory_order_seq_cst)};
  return !word->dead();
}

template <class Layout>
std::optional<LeafPlace> LookAhead<Layout>::CurrentAt(uint32_t i, Version at) const {
  NodeWord word;
  if (!Holds(i, &word)) return std::nullopt;
  if (paths_[i - first_].node->version.load(std::memory_order_relaxed) > at) return std::nullopt;
  return PlaceOf(paths_[i - first_], word);
}

template <class Layout>
LeafPlace LookAhead<Layout>::NewestAgain(uint32_t i, const Request& request) const {
  if (NodeWord word; Holds(i, &word)) return PlaceOf(paths_[i - first_], word);
  if (const auto place = reader_.FromHint(Link{request.hint.bits}, request.key)) return *place;
  return reader_.Find(request.key, Reader<Layout>::kNewest);
}

}  // namespace skep::btree
