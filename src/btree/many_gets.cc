#include "btree/many_gets.h"

#include <algorithm>

#include "btree/heads/head_layout_search.h"
#include "btree/look_ahead.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {

template <class Layout>
Version ManyGets<Layout>::Do() {
  core_.versions.EnterEpoch(thread_);
  for (size_t first = 0; first < keys_.size(); first += kWindow) {
    if (first > 0 && first % kRestEvery == 0) {
      core_.versions.LeaveEpoch(thread_);
      core_.versions.EnterEpoch(thread_);
    }
    const size_t count = std::min<size_t>(keys_.size() - first, kWindow);
    DoWindow(keys_.subspan(first, count), answers_.subspan(first, count));
  }
  core_.versions.LeaveEpoch(thread_);
  return seen_;
}

template <class Layout>
void ManyGets<Layout>::DoWindow(Keys keys, std::span<GetAnswer> answers) {
  if (!FindNodes(keys)) return;
  FindSpots(keys);
  core_.Sync(SyncPoint::kReaderInLeaf);
  const auto count = static_cast<uint32_t>(keys.size());
  const bool samples = IsTimeToSample(thread_, count);
  // The thread's gets since the last sample choose one as well as chance.
  const Path& sampled = paths_[thread_.unsampled % count];
  if (samples && sampled.node != nullptr) core_.table.CountHit(sampled.link.lid());
  for (uint32_t i = 0; i < count; ++i) {
    if (paths_[i].node != nullptr) Answer(paths_[i], keys[i], &answers[i]);
  }
}

// Finds nodes that may be the leaves of the keys. False: the tree has no quick way to them.
template <class Layout>
bool ManyGets<Layout>::FindNodes(Keys keys) {
  const LeafDirectory* const directory = core_.directory.current();
  if (directory != nullptr) {
    if (core_.reclaimer.detached()) return false;
    AskDirectory(*directory, keys);
    return true;
  }
  constexpr uint64_t kLeavesMin = DirectoryKeeper::Limits{}.leaves_min;
  if (core_.leaves.load(std::memory_order_relaxed) >= kLeavesMin) return false;
  const Reader<Layout> reader(core_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const LeafPlace place = reader.Find(keys[i], Reader<Layout>::kNewest);
    paths_[i].node = place.node;
    paths_[i].link = place.link;
  }
  return true;
}

template <class Layout>
void ManyGets<Layout>::AskDirectory(const LeafDirectory& directory, Keys keys) {
  std::array<LeafDirectory::Place, kWindow> places;
  for (size_t i = 0; i < keys.size(); ++i) places[i] = directory.Locate(keys[i]);
  for (size_t i = 0; i < keys.size(); ++i) {
    paths_[i].link = directory.LinkAt(places[i]);
    if (paths_[i].link.lid() < core_.table.end()) core_.table.Prefetch(paths_[i].link.lid());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const ArenaAddress at = paths_[i].link ? core_.table.Find(paths_[i].link) : ArenaAddress();
    paths_[i].node = at ? core_.Node(at) : nullptr;
    if (at) Layout::PrefetchLeaf(core_.codec, paths_[i].node, true);
  }
  core_.Sync(SyncPoint::kReaderAtHint);
}

// Finds where the leaves have the keys, as far as their first lines tell, and fetches the items.
// Drops nodes that are no leaves of the tree.
template <class Layout>
void ManyGets<Layout>::FindSpots(Keys keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    Path& path = paths_[i];
    if (path.node == nullptr) continue;
    const NodeWord word{path.node->word.load(std::memory_order_seq_cst)};
    if (word.retired() || !Layout::IsLeaf(path.node)) {
      path.node = nullptr;
      continue;
    }
    path.spot = typename Layout::Leaf(core_.codec, path.node, word.used()).Prefetch(keys[i]);
  }
  uint32_t by_offsets = 0;
  std::array<uint8_t, kWindow> numbers;
  for (size_t i = 0; i < keys.size(); ++i) {
    Path& path = paths_[i];
    if (path.node == nullptr || !path.spot.known) continue;
    const typename Layout::Leaf leaf(core_.codec, path.node, path.spot.used);
    if (leaf.PrefetchItems(1, &path.spot)) numbers[by_offsets++] = static_cast<uint8_t>(i);
    leaf.PrefetchCovers(path.spot);
  }
  for (uint32_t i = 0; i < by_offsets; ++i) {
    const Path& path = paths_[numbers[i]];
    typename Layout::Leaf(core_.codec, path.node, path.spot.used).PrefetchByOffsets(1, path.spot);
  }
}

template <class Layout>
void ManyGets<Layout>::Answer(const Path& path, std::string_view key, GetAnswer* answer) {
  if (!values_.HasRoomFor(1)) return;
  const NodeWord word{path.node->word.load(std::memory_order_seq_cst)};
  if (word.dead()) return;
  std::string_view value;
  if (!Layout::FindPlain(path.node, word.used(), key, path.spot, &value)) {
    if (Layout::CoversAt(core_.codec, path.node, key, path.spot)) {
      AnswerFromLeaf(path, word.used(), key, answer);
    }
    return;
  }
  *answer = AnswerOf(values_.at.Copy(value));
  seen_ = std::max(seen_, path.node->version.load(std::memory_order_relaxed));
}

// Reads a key, which the leaf covers, where its sorted items alone do not tell.
template <class Layout>
void ManyGets<Layout>::AnswerFromLeaf(const Path& path, uint32_t used, std::string_view key,
                                      GetAnswer* answer) {
  const typename Layout::Leaf leaf(core_.codec, path.node, used, Reader<Layout>::kNewest);
  const typename Layout::Found found = leaf.Find(key, path.spot);
  if (!found.present) {
    if (key.size() > key_bytes_max_) return;
    answer->verdict = Verdict::kAbsent;
  } else {
    if (found.value.outside || found.value.has_metadata) return;
    *answer = AnswerOf(values_.at.Copy(found.value.bytes));
  }
  const Version version =
      found.known ? found.version : path.node->version.load(std::memory_order_relaxed);
  seen_ = std::max(seen_, version);
}

template class ManyGets<PaperLayout>;
template class ManyGets<HeadLayout>;

}  // namespace skep::btree
