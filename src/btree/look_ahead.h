// look_ahead.h: the paths down to the leaves of many requests, side by side.
//
// One descent is a chain of cache misses, each of which has to come before the next can be asked
// for; a core can wait for dozens of misses at a time. So a window of requests goes down together,
// level by level, and each step fetches the lines that all of them need in the next one:
//
//   lowest inner level   search the node  ->  link  ->  row of the page table  ->  the leaf's
//   header leaves               search line  ->  segment of heads  ->  the item
//
// The nodes above are so few that they stay in the caches.
//
// A scan of many items reads more than the cache could keep for a whole window; its items are
// fetched when the request before it is executed.
//
// The look-ahead finds places, which may go out of date: between here and the execution of a
// request, requests before it in the batch and other threads change the tree. Holds() says whether
// a place still holds: then the leaf's node is the newest of its LID, which is in the tree, so its
// key range is what it was when the tree led here.
//
//   Proof. A buffer is replaced by mapping another one, and marked later; it leaves the tree by a
//   mark, or in a detached subtree. Holds() sees detached() false, then the row, then the mark, as
//   Reader::FromHint does. If row and mark are as before, the node was current when the row was
//   loaded, so it has every write of its keys that finished before that, this thread's own ones
//   included. The epoch keeps the buffer from being reused for another node. A write that asks for
//   room (Upkeep::MakeRoom) leaves the epoch, so everything found before is forgotten then. The
//   thread counts its entries into epochs for that: an equal epoch number would not be enough,
//   since between reading the number and announcing it a thread holds nothing back.
//
// A read of the newest state needs no such check as long as nothing but such reads was executed
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
  // The number of requests in a window: enough to keep all misses in flight that a core can have,
  // few enough that the lines fetched for the last one are still in the cache.
  static constexpr uint32_t kWindow = 32;

  using Requests = std::span<const Request>;

  LookAhead(const Core& core, const ThreadState& thread)
      : core_(core), thread_(thread), reader_(core) {}

  // Called for each request in turn, before it is executed. Looks for the leaves of a window of
  // requests whenever one begins, and forgets the places of the window before.
  void Prepare(Requests requests, uint32_t i) {
    if (i % kWindow == 0) {
      Look(requests, i);
      if (has_scans_) FetchScan(requests, i);
    }
    is_fresh_ &= requests[i].op == Op::kGet;
    if (has_scans_) FetchScan(requests, i + 1);
  }

  // The leaf of request `i` for a reader at version `at`, if it was found and the place still
  // holds. The place has the newest buffer; such a reader sees that if it was made at `at` or
  // before.
  std::optional<LeafPlace> CurrentAt(uint32_t i, Version at) const;
  // The newest leaf of request `i`, from the window, from the request's hint or from the root.
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
  // The way down of one request. Its fields are set only as far as the way has gone, so that a
  // batch does not pay for requests that are not looked for.
  struct Path {
    NodeHeader* node;  // null: not looked for; at the end of the descent a leaf
    uint64_t link_bits;
    uint64_t located;          // result of Inner::Locate
    LeafSpot spot;             // where the key is in the leaf
    const NodeHeader* beyond;  // the next leaf, if a scan goes on to it

    Link link() const { return {link_bits}; }
  };
  // A step to the next leaf, for the request of that number in the window.
  struct Step {
    uint64_t link_bits;
    uint32_t request;
  };

  // Whether the place of request `i` still holds; if so, `word` gets the leaf's word.
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

  // How many items are fetched for a request. A range with an upper bound may be short.
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
  uint64_t epoch_entry_ = 0;  // ThreadState::epoch_entries when the window was looked at
  uint32_t first_ = 0;
  uint32_t end_ = 0;
  // True: since the window was looked at, nothing was done but reads at its places.
  bool is_fresh_ = false;
  bool has_scans_ = false;  // the window has scans whose items are fetched one by one
  std::array<Path, kWindow> paths_;
};

template <class Layout>
void LookAhead<Layout>::Look(Requests requests, uint32_t first) {
  epoch_entry_ = thread_.epoch_entries;
  first_ = first;
  end_ = std::min(first + kWindow, static_cast<uint32_t>(requests.size()));
  has_scans_ = false;
  // A window of one request gains nothing from looking ahead: there is no other miss to overlap
  // with.
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

// Fetches the leaves that scans go on to.
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

// Fetches the items of a long scan that the window has left out. Those of all scans together would
// be more than a cache holds and than a core can wait for, so they are fetched while the scan
// before copies.
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
