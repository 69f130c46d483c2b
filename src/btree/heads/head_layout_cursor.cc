// Walks the merged order of a leaf's sorted block and log.

#include <algorithm>
#include <bit>
#include <cstring>

#include "btree/heads/head_layout_search.h"

namespace skep::btree {

using heads::LogItem;

namespace {

// The rank of no log item.
constexpr uint16_t kNoRank = 0xffff;

}  // namespace

HeadLayout::LeafCursor::LeafCursor(const Leaf& leaf) : leaf_(&leaf), sorted_(leaf.node()) {}

// Sorts the visible log items that `items` has a bit for; the walk passes no others then. Puts each
// where its place says: behind as many items as have a lower rank, or an equal one and came before
// it. No branch depends on the ranks, but on whether there are equal ones.
void HeadLayout::LeafCursor::SortLog(uint32_t items) {
  if (has_sorted_log_) return;
  has_sorted_log_ = true;
  entry_count_ = static_cast<uint32_t>(std::popcount(items));
  if (entry_count_ == 0) return;
  entry_ranks_.fill(kNoRank);
  if (entry_count_ == 1) {  // as most often in short scans
    order_[0] = static_cast<uint8_t>(std::countr_zero(items));
    entry_ranks_[0] = heads::LogRank(leaf_->node_, order_[0]);
    return;
  }
  std::array<uint16_t, kLogItemsMax> arrived;
  std::array<uint8_t, kLogItemsMax> numbers;
  heads::CopyLogRanks(leaf_->node_, arrived.data());
  for (uint32_t i = 0; items != 0; items &= items - 1, ++i) {
    numbers[i] = static_cast<uint8_t>(std::countr_zero(items));
    arrived[i] = arrived[numbers[i]];
  }
  std::array<uint16_t, kLogItemsMax> places;
  PlacesAmong24(arrived.data(), entry_count_, places.data());
  for (uint32_t i = 0; i < entry_count_; ++i) {
    order_[places[i]] = numbers[i];
    entry_ranks_[places[i]] = arrived[i];
  }
  if (HasEqualNeighbors24(entry_ranks_.data(), entry_count_)) SettleEqualRanks();
}

// Items with equal ranks are in the order they came: sorts them by their keys, and keeps the last
// item of each key. Those with the rank of a sorted item all have its key.
void HeadLayout::LeafCursor::SettleEqualRanks() {
  const Codec& codec = *leaf_->codec_;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < entry_count_; ++i) {
    const uint16_t rank = entry_ranks_[i];
    const uint8_t item = order_[i];
    if (kept == 0 || entry_ranks_[kept - 1] != rank) {
      order_[kept] = item;
      entry_ranks_[kept++] = rank;
      continue;
    }
    uint32_t to = kept;
    int order = 1;
    for (; to > 0 && entry_ranks_[to - 1] == rank; --to) {
      order =
          heads::IsOfItem(rank) ? 0 : codec.Compare(leaf_->Log(item).key(), Entry(to - 1).key());
      if (order >= 0) break;
    }
    if (order == 0) {
      order_[to - 1] = item;
      continue;
    }
    std::copy_backward(order_.begin() + to, order_.begin() + kept, order_.begin() + kept + 1);
    order_[to] = item;
    entry_ranks_[kept++] = rank;
  }
  std::fill(entry_ranks_.begin() + kept, entry_ranks_.end(), kNoRank);
  entry_count_ = kept;
}

void HeadLayout::LeafCursor::SeekFirst(uint32_t items) {
  SortLog(LogItemsAmong(0, items));
  at_ = 0;
  entry_ = 0;
  StepForward();
}

void HeadLayout::LeafCursor::SeekLast() {
  SortLog();
  at_ = sorted_.count();
  entry_ = entry_count_;
  StepBack();
}

void HeadLayout::LeafCursor::SeekAtLeast(std::string_view key, KeyIs where) {
  SortLog();
  GoToGapBefore(key, where);
  StepForward();
}

void HeadLayout::LeafCursor::SeekAtLeast(std::string_view key, const LeafSpot& spot,
                                         uint32_t items) {
  const uint16_t rank = GoToSorted(key, spot);
  SortLog(LogItemsAmong(rank, items));
  GoToEntry(key, rank);
  StepForward();
}

// The log items from a rank on, that of sorted item at_ or of the gap before it, which the next
// `items` items may be among or lie between, and those of the first item behind these. All from
// the rank on, if it is not known how far these go: to the end of the leaf, or where items have
// expired or were deleted, beyond `items` sorted ones. UINT32_MAX: the whole log, so that the
// cursor may go back as well.
uint32_t HeadLayout::LeafCursor::LogItemsAmong(uint32_t rank, uint32_t items) const {
  if (items == UINT32_MAX) return WholeLog();
  const auto from_rank = [&] { return leaf_->LogItemsRanked(rank, kNoRank); };
  const uint64_t end = uint64_t{heads::ItemOfRank(rank)} + items;
  if (end >= sorted_.count() || leaf_->now_ms_ != Leaf::kNoTime) return from_rank();
  const uint32_t among =
      leaf_->LogItemsRanked(rank, heads::RankOf(static_cast<uint32_t>(end), true) + 1u);
  return HasDeletion(among) ? from_rank() : among;
}

bool HeadLayout::LeafCursor::HasDeletion(uint32_t log_items) const {
  for (; log_items != 0; log_items &= log_items - 1) {
    if (leaf_->Log(static_cast<uint32_t>(std::countr_zero(log_items))).deleted()) return true;
  }
  return false;
}

void HeadLayout::LeafCursor::SeekAtMost(std::string_view key, const LeafSpot& spot) {
  const uint16_t rank = GoToSorted(key, spot);
  SortLog(LogItemsNearFloor(rank));
  GoToEntry(key, rank);
  if (entry_ < entry_count_ && leaf_->codec_->Compare(key, Entry(entry_).key()) == 0) ++entry_;
  if (heads::IsOfItem(rank)) ++at_;
  StepBack();
}

// The log items that the last item with a key up to one of this rank may be among, or that hide it.
// The sorted item of that key, or else the one before sorted item at_, is not above that last item,
// so only log items from its rank on matter, unless one of them is a deletion or the sorted item
// has expired.
uint32_t HeadLayout::LeafCursor::LogItemsNearFloor(uint16_t rank) const {
  if (rank == 0 || leaf_->now_ms_ != Leaf::kNoTime) return WholeLog();
  const uint32_t floor = heads::IsOfItem(rank) ? at_ : at_ - 1;
  const uint32_t near = leaf_->LogItemsRanked(heads::RankOf(floor, true), rank + 1u);
  return HasDeletion(near) ? WholeLog() : near;
}

void HeadLayout::LeafCursor::SeekBelow(std::string_view key, KeyIs where) {
  SortLog();
  GoToGapBefore(key, where);
  StepBack();
}

// The heads say nothing of a key that lacks the prefix of all keys of the leaf: goes to an end
// then.
bool HeadLayout::LeafCursor::GoToEndIfOutside(std::string_view key) {
  const NodeHeader* const node = leaf_->node_;
  if (heads::FormOf(node).prefix == 0) return false;
  const Fences fences = FencesOf(*leaf_->codec_, node);
  const uint32_t guaranteed = heads::GuaranteedPrefix(fences);
  const std::string_view lower = heads::OwnBytes(fences.lower);
  const int order = key.substr(0, guaranteed).compare(lower.substr(0, guaranteed));
  if (order == 0) return false;
  at_ = order < 0 ? 0 : sorted_.count();
  entry_ = order < 0 ? 0 : entry_count_;
  return true;
}

void HeadLayout::LeafCursor::GoToGapBefore(std::string_view key, KeyIs where) {
  if (where == KeyIs::kAny && GoToEndIfOutside(key)) return;
  GoToEntry(key, GoToSorted(key, {}));
}

// Goes to the first sorted item >= the key. Returns the key's rank.
uint16_t HeadLayout::LeafCursor::GoToSorted(std::string_view key, const LeafSpot& spot) {
  const uint16_t head = spot.known ? spot.head : HeadInLeaf(sorted_, leaf_->node_, key);
  const uint32_t lower_bound = spot.known ? spot.at : sorted_.LowerBound(head);
  bool equal;
  at_ = sorted_.SeekFrom(*leaf_->codec_, key, head, lower_bound, &equal);
  return heads::RankOf(at_, equal);
}

// Goes to the first log item >= the key, which has this rank.
void HeadLayout::LeafCursor::GoToEntry(std::string_view key, uint16_t rank) {
  const Codec& codec = *leaf_->codec_;
  if (entry_count_ == 0) return;
  entry_ = heads::CountBelow24(entry_ranks_.data(), rank);
  if (heads::IsOfItem(rank)) return;
  while (entry_ < entry_count_ && entry_ranks_[entry_] == rank &&
         codec.Compare(key, Entry(entry_).key()) > 0) {
    ++entry_;
  }
}

void HeadLayout::LeafCursor::StepForward() {
  for (TakeNext(); HasExpired(); TakeNext()) PassCurrent();
}

void HeadLayout::LeafCursor::TakeNext() {
  for (;; ++entry_) {
    const bool has_sorted = at_ < sorted_.count();
    if (entry_ == entry_count_) {
      source_ = has_sorted ? Source::kSorted : Source::kNone;
      return;
    }
    const int order = has_sorted ? CompareWithSorted(entry_, at_) : -1;
    source_ = order > 0 ? Source::kSorted : Source::kLog;
    hides_ = order == 0;
    if (order > 0 || !Entry(entry_).deleted()) return;
    at_ += hides_;
  }
}

void HeadLayout::LeafCursor::PassCurrent() {
  if (source_ == Source::kSorted) {
    ++at_;
    return;
  }
  at_ += hides_;
  ++entry_;
}

void HeadLayout::LeafCursor::Next() {
  PassCurrent();
  StepForward();
}

void HeadLayout::LeafCursor::Prev() { StepBack(); }

void HeadLayout::LeafCursor::StepBack() {
  do TakePrevious();
  while (HasExpired());
}

void HeadLayout::LeafCursor::TakePrevious() {
  for (;;) {
    if (entry_ == 0) {
      source_ = at_ > 0 ? Source::kSorted : Source::kNone;
      at_ -= at_ > 0;
      return;
    }
    const int order = at_ == 0 ? 1 : CompareWithSorted(entry_ - 1, at_ - 1);
    if (order < 0) {
      --at_;
      source_ = Source::kSorted;
      return;
    }
    --entry_;
    hides_ = order == 0;
    at_ -= hides_;
    if (Entry(entry_).deleted()) continue;
    source_ = Source::kLog;
    return;
  }
}

StoredKey HeadLayout::LeafCursor::key() const {
  return source_ == Source::kSorted ? sorted_.key(at_) : Entry(entry_).key();
}

StoredValue HeadLayout::LeafCursor::value() const {
  return source_ == Source::kSorted ? sorted_.value(at_) : Entry(entry_).value();
}

Version HeadLayout::LeafCursor::version() const {
  return leaf_->node_version_ + (source_ == Source::kSorted ? 0 : Entry(entry_).delta());
}

namespace {

// Copies `count` consecutive items of the form. Returns where the copies end.
inline char* CopyItems(const std::byte* from, uint32_t count, const PlainForm& form, bool keys_only,
                       char* to) {
  if (!keys_only) {
    const size_t size = size_t{count} * form.stride();
    CopyBytes(to, reinterpret_cast<const char*>(from), size);
    return to + size;
  }
  for (uint32_t i = 0; i < count; ++i, from += form.stride(), to += form.key_bytes) {
    std::memcpy(to, from, form.key_bytes);
  }
  return to;
}

}  // namespace

uint32_t HeadLayout::LeafCursor::CopyPlain(uint32_t most, bool keys_only, char* to) {
  const PlainForm form = *plain_form();
  const std::byte* const bytes = leaf_->node_->bytes();
  uint32_t left = most;
  const auto copy_sorted = [&](uint32_t count) {
    if (count == 0) return;
    to = CopyItems(bytes + sorted_.offset(at_), count, form, keys_only, to);
    at_ += count;
    left -= count;
  };
  while (left > 0 && entry_ < entry_count_) {
    const LogItem item = Entry(entry_);
    const uint16_t rank = entry_ranks_[entry_];
    copy_sorted(std::min(heads::ItemOfRank(rank) - at_, left));
    if (left == 0) break;
    if (!item.deleted()) {
      if (!item.is_plain(form.key_bytes, form.value_bytes)) break;
      to = CopyItems(bytes + item.at() + heads::kLogItemHeaderBytes, 1, form, keys_only, to);
      --left;
    }
    at_ += heads::IsOfItem(rank) ? 1 : 0;
    ++entry_;
  }
  if (entry_ == entry_count_) copy_sorted(std::min(sorted_.count() - at_, left));
  StepForward();
  return most - left;
}

uint32_t HeadLayout::LeafCursor::TakeWhole(std::span<Item> items, bool keys_only,
                                           size_t bytes_max) {
  if (sorted_.is_uniform()) return 0;
  const NodeHeader* const node = leaf_->node_;
  uint32_t taken = 0;
  size_t bytes = 0;
  const auto take = [&](std::string_view key, std::string_view value) {
    items[taken++] = {.key = key, .value = keys_only ? std::string_view() : value};
    bytes += key.size() + (keys_only ? 0 : value.size());
  };
  // Where sorted item at_ lies.
  uint32_t field = at_ < sorted_.count() ? sorted_.offset(at_) : 0;
  while (taken < items.size() && bytes <= bytes_max) {
    const uint16_t rank = entry_ < entry_count_ ? entry_ranks_[entry_] : kNoRank;
    const bool has_sorted = at_ < sorted_.count();
    if (has_sorted && heads::RankOf(at_, true) < rank) {
      const StoredKey key = field::KeyAt(node, field);
      const uint32_t behind_key = field::AfterField(node, field);
      const StoredValue value = field::ValueAt(node, behind_key);
      if (key.outside || value.outside || value.has_metadata) break;
      take(key.bytes, value.bytes);
      field = field::AfterField(node, behind_key);
      ++at_;
      continue;
    }
    if (rank == kNoRank) break;
    const LogItem item = Entry(entry_);
    if (!item.deleted()) {
      const StoredValue value = item.value();
      if (item.key().outside || value.outside || value.has_metadata) break;
      take(item.key().bytes, value.bytes);
    }
    if (heads::IsOfItem(rank)) {
      field = field::AfterField(node, field::AfterField(node, field));
      ++at_;
    }
    ++entry_;
  }
  StepForward();
  return taken;
}

}  // namespace skep::btree
