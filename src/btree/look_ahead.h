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
// A request with a hint begins at the node that the hint names, which may be a leaf or an inner
// node, and one without at the leaf that the directory (leaf_directory.h) names, if there is one:
// the rows of all these links are fetched together, then the lines of their nodes. A node that the
// table does not have in the link's generation, or that has left the tree, is no place to begin:
// the way then goes down from the root like the others, in the same window.
//
//   group of the directory  ->  row of the page table  ->  search line  ->  as above, at that level
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
// Hints. Nothing about a hint, or a link of the directory, is believed but that it may name a node
// (Reader::FromHint has the argument). The window asks detached() before it loads the rows of these
// links, and looks at the marks after. An inner node must cover the key before it is gone down
// from. For a leaf that is left to the end, when its lines have come: the leaf has the key among
// its sorted items, or the key lies between its fences (Layout::CoversAt). So a link to another
// leaf is noticed before its place is used, and that request begins again at the root.
//
// Samples. One request in kSampleEvery is counted at its leaf (PageTable::CountHit): a window that
// brings the thread's number of requests to kSampleEvery counts one of its own. So a GET writes no
// line that others write, but in one case of 64.
//
// A read of the newest state needs no such check as long as nothing but such reads was executed
// since its window was looked at. Its buffer was the newest of a node of the tree when the row was
// loaded, which is within the batch's time. The rows of leaves (also of those that hints name) and,
// at the end, words are loaded in the order of the requests, and a buffer that was replaced has no
// write that the next one lacks; so of two reads of one key the later one sees what the first saw,
// or more. If the two have come to different nodes, one of these has left the tree, and was marked
// before a write could go to the other one. A request that has to look again ends this: it sees a
// later state than the places that were found for the requests behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/compare_bytes.h"
#include "btree/core.h"
#include "btree/leaf_directory.h"
#include "btree/reader.h"
#include "engine/only_reads.h"
#include "skep/batch.h"

namespace skep::btree {

inline constexpr uint32_t kSampleEvery = 64;

// Adds `requests` (< kSampleEvery) to the thread's requests since the last sample. Returns whether
// one of them is to be counted at its leaf.
inline bool IsTimeToSample(ThreadState& thread, uint32_t requests) {
  thread.unsampled += requests;
  if (thread.unsampled < kSampleEvery) return false;
  thread.unsampled -= kSampleEvery;
  return true;
}

// Owner: one batch; `thread` is in its epoch.
template <class Layout>
class LookAhead {
 public:
  // The number of requests in a window: enough to keep all misses in flight that a core can have,
  // few enough that the lines fetched for the last one are still in the cache.
  static constexpr uint32_t kWindow = 32;

  static_assert(kSampleEvery > kWindow);

  using Requests = std::span<const Request>;

  LookAhead(Core& core, ThreadState& thread) : core_(core), thread_(thread), reader_(core) {}

  // Called for each request in turn, before it is executed. Looks for the leaves of a window of
  // requests whenever one begins, and forgets the places of the window before. `ascend`: the keys
  // of the requests mostly do, so one that has the leaf of the key before it is found from there.
  void Prepare(Requests requests, uint32_t i, bool ascend = false) {
    if (i % kWindow == 0) {
      ascend_ = ascend;
      Look(requests, i);
      if (has_scans_) FetchScan(requests, i);
    }
    is_fresh_ &= ReadsPoint(requests[i]);
    if (has_scans_) FetchScan(requests, i + 1);
  }

  // The leaf of request `i` for a reader at version `at`, if it was found, in the window or by the
  // request's hint, and the place still holds. The place has the newest buffer; such a reader sees
  // that if it was made at `at` or before.
  std::optional<LeafPlace> CurrentAt(uint32_t i, const Request& request, Version at) const;
  // The newest leaf of request `i`, from the window, from the request's hint or from the root.
  LeafPlace Newest(uint32_t i, const Request& request) {
    if (const LeafPlace place = Surmised(i); place.node != nullptr) {
      if (LeadsTo(paths_[i - first_], request.key)) return place;
      is_fresh_ = false;
    }
    return NewestAgain(i, request);
  }
  // The newest leaf of request `i`, if its sorted items have the key, as far as the window knows
  // it; node is null: it does not.
  LeafPlace Surmised(uint32_t i) {
    if (!is_fresh_ || thread_.epoch_entries != epoch_entry_) return {};
    const Path& path = paths_[i - first_];
    const NodeWord word{path.node == nullptr ? NodeWord::kRetired
                                             : path.node->word.load(std::memory_order_seq_cst)};
    is_fresh_ = !word.dead();
    return is_fresh_ ? PlaceOf(path, word) : LeafPlace();
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
    uint8_t level;             // of `node`
    bool is_surmised;          // a hint or the directory named the leaf: it may not be the key's
    bool is_stale;             // the request's hint named no node of the tree

    Link link() const { return {link_bits}; }
  };
  // A step to the next leaf, for the request of that number in the window.
  struct Step {
    uint64_t link_bits;
    uint32_t request;
  };

  // Whether the way down can begin before the request is executed. A point whose key was set aside
  // (types/form_scope.h) will not be executed.
  static bool Looks(const Request& r) {
    if (r.op < Op::kSample) return !IsSetAside(r);
    return (r.op == Op::kScan || r.op == Op::kCount) && !r.has(Request::kReverse);
  }
  // Whether the request is a point that only reads its key.
  static bool ReadsPoint(const Request& r) {
    return r.op == Op::kGet || (r.op == Op::kApply && OnlyReads(r));
  }
  // Whether the path ends at the key's leaf; its word was not dead.
  bool LeadsTo(const Path& path, std::string_view key) const {
    return !path.is_surmised || Layout::CoversAt(core_.codec, path.node, key, path.spot);
  }
  // Whether the place of request `i` still holds; if so, `word` gets the leaf's word.
  bool Holds(uint32_t i, NodeWord* word) const;
  static LeafPlace PlaceOf(const Path& path, NodeWord word) {
    return {.link = path.link(),
            .node = path.node,
            .word = word,
            .spot = path.spot,
            .is_stale_hint = path.is_stale};
  }
  LeafPlace NewestAgain(uint32_t i, const Request& request);
  LeafPlace FindNewest(uint32_t i, const Request& request) const;
  std::optional<LeafPlace> FromDirectory(const Request& request) const;
  void Look(Requests requests, uint32_t first);
  // Calls visit(path, request) for each request of the window that has a path.
  template <typename Visit>
  void ForEachPath(Requests requests, Visit visit) {
    for (uint32_t i = first_; i < end_; ++i) {
      if (paths_[i - first_].node != nullptr) visit(paths_[i - first_], requests[i]);
    }
  }
  bool AskDirectory(Requests requests);
  void FollowLinks(Requests requests, NodeHeader* root);
  void DescendInner(Requests requests);
  void Descend(Requests requests);
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

  Core& core_;
  ThreadState& thread_;
  const Reader<Layout> reader_;
  uint64_t epoch_entry_ = 0;  // ThreadState::epoch_entries when the window was looked at
  uint32_t first_ = 0;
  uint32_t end_ = 0;
  // True: since the window was looked at, nothing was done but reads at its places.
  bool is_fresh_ = false;
  bool has_scans_ = false;  // the window has scans whose items are fetched one by one
  bool ascend_ = false;     // the keys of the window's requests mostly ascend
  bool samples_ = false;    // a request without a window is to be counted
  std::array<Path, kWindow> paths_;
};

template <class Layout>
void LookAhead<Layout>::Look(Requests requests, uint32_t first) {
  epoch_entry_ = thread_.epoch_entries;
  first_ = first;
  end_ = std::min(first + kWindow, static_cast<uint32_t>(requests.size()));
  has_scans_ = false;
  const bool samples = IsTimeToSample(thread_, end_ - first_);
  // A window of one request gains nothing from looking ahead: there is no other miss to overlap
  // with.
  is_fresh_ = end_ - first_ >= 2;
  if (!is_fresh_) {
    samples_ = samples;
    end_ = first_;
    return;
  }
  // Asked before the rows of links are loaded.
  const bool takes_links = !core_.reclaimer.detached();
  NodeHeader* const root = core_.Head(core_.root);
  bool has_links = false;
  for (uint32_t i = first_; i < end_; ++i) {
    const Request& r = requests[i];
    has_scans_ |= r.op == Op::kScan && ItemsOf(r) > kShortScan;
    Path& path = paths_[i - first_];
    path.node = Looks(r) ? root : nullptr;
    path.link_bits = core_.root.bits;
    path.spot.known = false;
    path.beyond = nullptr;
    path.level = root->level;
    path.is_surmised = false;
    path.is_stale = false;
    if (r.hint.bits == 0) continue;
    // The root keeps its LID when it grows: then its hint is from when it was a leaf.
    const Link hint{r.hint.bits};
    has_links |= hint != core_.root;
    path.is_stale = hint == core_.root && root->level > 0;
    if (takes_links) path.link_bits = hint.bits;
  }
  core_.Sync(SyncPoint::kReaderAtRoot);
  if (takes_links) {
    has_links |= AskDirectory(requests);
    if (has_links) FollowLinks(requests, root);
  }
  Descend(requests);
  core_.Sync(SyncPoint::kReaderInLeaf);
  // The thread's requests since the last sample choose one as well as chance.
  const Path& sampled = paths_[thread_.unsampled % (end_ - first_)];
  if (samples && sampled.node != nullptr) core_.table.CountHit(sampled.link().lid());
}

// Gives the paths of requests without hints the links that the directory has for their keys.
// Returns whether there is a directory.
template <class Layout>
bool LookAhead<Layout>::AskDirectory(Requests requests) {
  const LeafDirectory* const directory = core_.directory.current();
  std::array<LeafDirectory::Place, kWindow> places;
  int64_t asked = 0;
  const auto for_each = [&](auto visit) {
    ForEachPath(requests, [&](Path& path, const Request& r) {
      if (r.hint.bits == 0) visit(path, places[static_cast<size_t>(&path - paths_.data())], r);
    });
  };
  for_each([&](Path&, LeafDirectory::Place& place, const Request& r) {
    ++asked;
    if (directory != nullptr) place = directory->Locate(r.key);
  });
  if (directory == nullptr) {
    thread_.NoteUnguided(asked);
    return false;
  }
  for_each([&](Path& path, const LeafDirectory::Place& place, const Request&) {
    if (const Link link = directory->LinkAt(place)) path.link_bits = link.bits;
  });
  return true;
}

// Moves the paths that have links from the root to the nodes that these name.
template <class Layout>
void LookAhead<Layout>::FollowLinks(Requests requests, NodeHeader* root) {
  const auto for_each = [&](auto visit) {
    ForEachPath(requests, [&](Path& path, const Request& r) {
      if (path.link() != core_.root) visit(path, r);
    });
  };
  const auto go_to_root = [&](Path& path, const Request& r) {
    path.node = root;
    path.link_bits = core_.root.bits;
    path.level = root->level;
    path.is_surmised = false;
    path.is_stale = r.hint.bits != 0;
    if (!path.is_stale) thread_.NoteUnguided();
  };
  for_each([&](Path& path, const Request&) {
    if (path.link().lid() < core_.table.end()) core_.table.Prefetch(path.link().lid());
  });
  for_each([&](Path& path, const Request& r) {
    const ArenaAddress at = core_.table.Find(path.link());
    if (!at) return go_to_root(path, r);
    path.node = core_.Node(at);
    Layout::PrefetchLeaf(core_.codec, path.node, ReadsPoint(r));
  });
  core_.Sync(SyncPoint::kReaderAtHint);
  for_each([&](Path& path, const Request& r) {
    const NodeWord word{path.node->word.load(std::memory_order_seq_cst)};
    path.is_surmised = Layout::IsLeaf(path.node);
    path.level = path.is_surmised ? 0 : path.node->level;
    const bool may_lead = path.is_surmised || Layout::Covers(core_.codec, path.node, r.key);
    if (word.retired() || !may_lead) go_to_root(path, r);
  });
}

// Goes down to the leaves; a path that begins at a lower level waits for the others to come there.
template <class Layout>
void LookAhead<Layout>::DescendInner(Requests requests) {
  uint32_t top = 0;
  ForEachPath(requests,
              [&](Path& path, const Request&) { top = std::max<uint32_t>(top, path.level); });
  for (uint32_t level = top; level > 1; --level) {
    ForEachPath(requests, [&](Path& path, const Request& r) {
      if (path.level != level) return;
      path.node = core_.Head(typename Layout::Inner(core_.codec, path.node).ChildOf(r.key));
      Layout::PrefetchHead(core_.codec, path.node);
      --path.level;
    });
    core_.Sync(SyncPoint::kReaderAtChild);
  }
  if (top == 0) return;
  const Path* before = nullptr;
  std::string_view key_before;
  ForEachPath(requests, [&](Path& path, const Request& r) {
    if (path.level == 0) return;
    const typename Layout::Inner inner(core_.codec, path.node);
    const bool is_near = ascend_ && before != nullptr && before->node == path.node &&
                         CompareBytes(key_before, r.key) <= 0;
    path.located = is_near ? inner.LocateFrom(r.key, before->located) : inner.Locate(r.key);
    before = &path;
    key_before = r.key;
  });
  ForEachPath(requests, [&](Path& path, const Request&) {
    if (path.level == 0) return;
    const Link link = typename Layout::Inner(core_.codec, path.node).Located(path.located);
    path.link_bits = link.bits;
    core_.table.Prefetch(link.lid());
  });
  core_.Sync(SyncPoint::kReaderAtChild);
}

template <class Layout>
void LookAhead<Layout>::Descend(Requests requests) {
  DescendInner(requests);
  const auto for_each = [&](auto visit) { ForEachPath(requests, visit); };
  for_each([&](Path& path, const Request& r) {
    // A root that was a leaf may have grown: its LID then leads to an inner node.
    if (path.is_surmised || path.link() == core_.root) return;
    path.node = core_.Head(path.link());
    Layout::PrefetchLeaf(core_.codec, path.node, r.op == Op::kGet);
  });
  for_each([&](Path& path, const Request& r) {
    SKEP_DCHECK(path.node->is_leaf());
    const NodeWord word{path.node->word.load(std::memory_order_seq_cst)};
    // A leaf that has left the tree may name outside blocks that are gone.
    if (word.retired()) return;
    path.spot = typename Layout::Leaf(core_.codec, path.node, word.used()).Prefetch(r.key);
  });
  std::array<Step, kWindow> steps;
  uint32_t step_count = 0;
  bool are_by_offsets = false;
  for_each([&](Path& path, const Request& r) {
    if (!path.spot.known) return;
    const typename Layout::Leaf leaf(core_.codec, path.node, path.spot.used);
    const uint32_t items = ItemsOf(r);
    are_by_offsets |= leaf.PrefetchItems(items, &path.spot);
    if (path.is_surmised) leaf.PrefetchCovers(path.spot);
    if (ReadsPoint(r)) return;
    if (IsWrite(r.op)) leaf.PrefetchWrite();
    if (r.op != Op::kScan || !leaf.GoesBeyond(path.spot, items)) return;
    const Link right{path.node->right.load(std::memory_order_acquire)};
    if (!right) return;
    steps[step_count++] = {.link_bits = right.bits,
                           .request = static_cast<uint32_t>(&path - paths_.data())};
    core_.table.Prefetch(right.lid());
  });
  if (are_by_offsets) {
    for_each([&](Path& path, const Request& r) {
      if (!path.spot.known) return;
      const typename Layout::Leaf leaf(core_.codec, path.node, path.spot.used);
      leaf.PrefetchByOffsets(ItemsOf(r), path.spot);
    });
  }
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
std::optional<LeafPlace> LookAhead<Layout>::CurrentAt(uint32_t i, const Request& request,
                                                      Version at) const {
  std::optional<LeafPlace> place;
  if (NodeWord word; Holds(i, &word)) {
    if (LeadsTo(paths_[i - first_], request.key)) {
      place = PlaceOf(paths_[i - first_], word);
    } else if (request.hint.bits == 0) {
      thread_.NoteUnguided();
    }
  } else if (Looks(request)) {
    place = reader_.FromHint(Link{request.hint.bits}, request.key);
    if (!place) place = FromDirectory(request);
  }
  if (!place || place->node->version.load(std::memory_order_relaxed) > at) return std::nullopt;
  return place;
}

template <class Layout>
LeafPlace LookAhead<Layout>::NewestAgain(uint32_t i, const Request& request) {
  const LeafPlace place = FindNewest(i, request);
  if (samples_) core_.table.CountHit(place.link.lid());
  samples_ = false;
  return place;
}

template <class Layout>
LeafPlace LookAhead<Layout>::FindNewest(uint32_t i, const Request& request) const {
  if (NodeWord word; Holds(i, &word)) {
    if (LeadsTo(paths_[i - first_], request.key)) return PlaceOf(paths_[i - first_], word);
    if (request.hint.bits == 0) thread_.NoteUnguided();
  } else if (const auto place = reader_.FromHint(Link{request.hint.bits}, request.key)) {
    return *place;
  } else if (const auto guess = FromDirectory(request)) {
    return *guess;
  }
  LeafPlace place = reader_.Find(request.key, Reader<Layout>::kNewest);
  place.is_stale_hint = request.hint.bits != 0;
  return place;
}

// The newest leaf of a request in a window of one, if the directory leads there.
template <class Layout>
std::optional<LeafPlace> LookAhead<Layout>::FromDirectory(const Request& request) const {
  if (first_ != end_ || request.hint.bits != 0) return std::nullopt;
  const LeafPlace place = reader_.Surmise(thread_, request.key, ItemsOf(request), false);
  if (place.node != nullptr) {
    const typename Layout::Leaf leaf(core_.codec, place.node, place.word.used());
    if (!OnlyReads(request)) leaf.PrefetchWrite();
    if (Layout::CoversAt(core_.codec, place.node, request.key, place.spot)) return place;
  }
  if (place.link || core_.directory.current() == nullptr) thread_.NoteUnguided();
  return std::nullopt;
}

}  // namespace skep::btree
