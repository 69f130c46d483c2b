// Merges the log of a leaf whose items all have one form, without a look at each of them: runs of
// items and heads between the log's items are copied as they are. Where many heads are alike, a
// merge that adds or erases keys looks at each key nevertheless, to choose the bits of heads anew
// (heads::TellAlikeApart); one that only replaces values does not. To split such a leaf, its items
// are merged into one run, of which the halves are built.

#include <algorithm>
#include <array>
#include <span>

#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"

namespace skep::btree {

namespace {

// The most bytes of a key and a value in the largest node.
constexpr Geometry kLargest{.node_bytes = 32768};
constexpr size_t kItemBytesMax = kLargest.key_inline_max() + kLargest.value_inline_max();

}  // namespace

class HeadLayout::Merger {
 public:
  Merger(const Codec& codec, const NodeHeader* leaf, uint32_t used)
      : codec_(codec), node_(leaf), leaf_(codec, leaf, used), sorted_(leaf) {}

  // Lists the changes of the log and an edit, or of the log alone. False: not all items are plain
  // and of the leaf's form.
  bool Plan(const StoredKey& key, const StoredValue* value);
  bool Plan();
  // Builds the merged leaf. Returns what MergeLeaf does.
  uint32_t WriteIfFits(uint32_t bytes_max, NodeHeader* buffer) const;
  ItemSpan CopyItems(Scratch& scratch) const;

 private:
  // A change to the sorted items.
  struct Piece {
    const char* item;  // key | value
    uint16_t rank;     // its place among the sorted items: heads::RankOf
    bool erases;
    uint32_t item_before() const { return heads::ItemOfRank(rank); }
    bool hides() const { return heads::IsOfItem(rank); }
  };

  uint32_t bytes() const;
  // Whether the merged leaf has the keys that the sorted items have: values are replaced alone.
  bool KeepsKeys() const {
    return std::ranges::all_of(std::span(pieces_.data(), piece_count_),
                               [](const Piece& piece) { return piece.hides() && !piece.erases; });
  }
  uint32_t Write(NodeHeader* buffer) const;
  bool AddEdit(const StoredKey& key, const StoredValue* value, const LeafCursor& order);
  bool AddLogItem(const heads::LogItem& item, uint16_t rank);
  void AddPiece(const char* item, uint16_t rank, bool erases);
  void WriteItems(std::byte* to) const;
  heads::Form MergedForm(const NodeHeader* buffer) const;
  void WriteHeads(const heads::Form& form, NodeHeader* buffer) const;
  // Calls run(begin, end) for each run of sorted items that stay, and item(piece) for each new
  // item, in order.
  template <class Run, class Item>
  void ForEach(Run run, Item item) const;

  const Codec& codec_;
  const NodeHeader* node_;
  const Leaf leaf_;
  const Sorted sorted_;
  uint32_t count_ = 0;  // number of items afterwards
  uint32_t piece_count_ = 0;
  std::array<Piece, kLogItemsMax + 1> pieces_;
  std::array<char, kItemBytesMax> edit_;  // the edit's item
};

bool HeadLayout::Merger::Plan(const StoredKey& key, const StoredValue* value) {
  if (!sorted_.is_plain()) return false;
  count_ = sorted_.count();
  LeafCursor order(leaf_);
  order.SortLog();
  return AddEdit(key, value, order);
}

bool HeadLayout::Merger::Plan() {
  if (!sorted_.is_plain()) return false;
  count_ = sorted_.count();
  LeafCursor order(leaf_);
  order.SortLog();
  for (uint32_t i = 0; i < order.entry_count_; ++i) {
    if (!AddLogItem(order.Entry(i), order.entry_ranks_[i])) return false;
  }
  return true;
}

// Merges the edit into the order of the log's items. It takes the place of a log item of its key.
bool HeadLayout::Merger::AddEdit(const StoredKey& key, const StoredValue* value,
                                 const LeafCursor& order) {
  const heads::Form& form = heads::FormOf(node_);
  if (heads::FormOfKey(key) != form.key_form) return false;
  if (value != nullptr && heads::FormOfValue(*value) != form.value_form) return false;
  char* const item = edit_.data();
  key.bytes.copy(item, key.bytes.size());
  if (value != nullptr) value->bytes.copy(item + key.bytes.size(), value->bytes.size());
  bool equal;
  const uint32_t at = sorted_.Seek(codec_, key, HeadInLeaf(sorted_, node_, key), &equal);
  const uint16_t rank = heads::RankOf(at, equal);
  bool is_added = false;
  for (uint32_t i = 0; i < order.entry_count_; ++i) {
    const heads::LogItem log_item = order.Entry(i);
    const uint16_t log_rank = order.entry_ranks_[i];
    if (!is_added && rank <= log_rank) {
      int compared = -1;
      if (rank == log_rank) compared = equal ? 0 : codec_.Compare(key, log_item.key());
      if (compared <= 0) {
        is_added = true;
        AddPiece(item, rank, value == nullptr);
      }
      if (compared == 0) continue;
    }
    if (!AddLogItem(log_item, log_rank)) return false;
  }
  if (!is_added) AddPiece(item, rank, value == nullptr);
  return true;
}

bool HeadLayout::Merger::AddLogItem(const heads::LogItem& item, uint16_t rank) {
  const heads::Form& form = heads::FormOf(node_);
  const StoredKey key = item.key();
  if (heads::FormOfKey(key) != form.key_form) return false;
  if (!item.deleted() && heads::FormOfValue(item.value()) != form.value_form) return false;
  AddPiece(key.bytes.data(), rank, item.deleted());
  return true;
}

void HeadLayout::Merger::AddPiece(const char* item, uint16_t rank, bool erases) {
  pieces_[piece_count_++] = {.item = item, .rank = rank, .erases = erases};
  count_ += !erases;
  count_ -= heads::IsOfItem(rank);
}

uint32_t HeadLayout::Merger::bytes() const {
  return heads::AfterHeads(true, count_) + count_ * sorted_.stride() +
         (node_->log_begin - node_->shortcut_end);
}

template <class Run, class Item>
void HeadLayout::Merger::ForEach(Run run, Item item) const {
  uint32_t at = 0;
  for (uint32_t i = 0; i < piece_count_; ++i) {
    const Piece& piece = pieces_[i];
    const uint32_t end = piece.item_before();
    if (at < end) run(at, end);
    if (!piece.erases) item(piece);
    at = end + piece.hides();
  }
  if (at < sorted_.count()) run(at, sorted_.count());
}

void HeadLayout::Merger::WriteItems(std::byte* to) const {
  const uint32_t stride = sorted_.stride();
  ForEach(
      [&](uint32_t begin, uint32_t end) {
        const uint32_t bytes = (end - begin) * stride;
        std::memcpy(to, node_->bytes() + sorted_.offset(begin), bytes);
        to += bytes;
      },
      [&](const Piece& piece) {
        CopyBytes(to, piece.item, stride);
        to += stride;
      });
}

void HeadLayout::Merger::WriteHeads(const heads::Form& form, NodeHeader* buffer) const {
  uint16_t* to = heads::NumbersAt(buffer, heads::kLeafHeadsAt);
  if (heads::MakesEqualHeads(form, heads::FormOf(node_))) {
    ForEach(
        [&](uint32_t begin, uint32_t end) {
          for (uint32_t i = begin; i < end; ++i) *to++ = sorted_.head(i);
        },
        [&](const Piece& piece) {
          *to++ = heads::HeadOf(form, std::string_view(piece.item, sorted_.key_bytes()));
        });
    return;
  }
  const Sorted merged(buffer);
  for (uint32_t i = 0; i < count_; ++i) {
    *to++ = heads::HeadOf(form, merged.key(i).bytes);
  }
}

// The form of the merged items, which `buffer` has, but for the item form.
heads::Form HeadLayout::Merger::MergedForm(const NodeHeader* buffer) const {
  const std::span<const Piece> pieces(pieces_.data(), piece_count_);
  const heads::Form& before = heads::FormOf(node_);
  if (heads::HasChosenBits(before) && KeepsKeys()) return before;
  const Fences fences = FencesOf(codec_, node_);
  const auto* const items =
      reinterpret_cast<const char*>(buffer->bytes()) + heads::AfterHeads(true, count_);
  const auto key = [&](uint32_t i) {
    return std::string_view(items + size_t{i} * sorted_.stride(), sorted_.key_bytes());
  };
  if (std::ranges::any_of(pieces, &Piece::erases)) {
    return heads::FormOfKeys(codec_, count_, fences, key);
  }
  return heads::FormOfGrown(codec_, before, count_, fences, key, piece_count_, [&](uint32_t i) {
    return std::string_view(pieces[i].item, sorted_.key_bytes());
  });
}

uint32_t HeadLayout::Merger::Write(NodeHeader* buffer) const {
  buffer->level = 0;
  buffer->sorted_count = static_cast<uint16_t>(count_);
  const uint32_t items = heads::AfterHeads(true, count_);
  WriteItems(buffer->bytes() + items);
  const uint32_t fences = items + count_ * sorted_.stride();
  const uint32_t fence_bytes = node_->log_begin - node_->shortcut_end;
  std::memcpy(buffer->bytes() + fences, node_->bytes() + node_->shortcut_end, fence_bytes);
  buffer->shortcut_end = static_cast<uint16_t>(fences);
  buffer->log_begin = static_cast<uint16_t>(fences + fence_bytes);

  heads::Form form = MergedForm(buffer);
  form.key_form = heads::FormOf(node_).key_form;
  form.value_form = heads::FormOf(node_).value_form;
  heads::PutForm(buffer, form);
  heads::PutEmptyLog(buffer, kNoDeadline);
  WriteHeads(form, buffer);
  // Whether chosen bits tell the keys better apart depends on the keys alone, so that a merge that
  // keeps them keeps the decision.
  if (!KeepsKeys()) {
    const Sorted merged(buffer);
    heads::TellAlikeApart(
        codec_, count_, [&](uint32_t i) { return merged.key(i).bytes; }, &form,
        heads::NumbersAt(buffer, heads::kLeafHeadsAt));
    heads::PutForm(buffer, form);
  }
  heads::FinishHeads(buffer);
  return buffer->log_begin;
}

uint32_t HeadLayout::Merger::WriteIfFits(uint32_t bytes_max, NodeHeader* buffer) const {
  if (count_ < 2) return 0;
  const uint32_t bytes = this->bytes();
  if (!heads::HasRoomForForms(codec_.geometry, bytes, count_)) return UINT32_MAX;
  return bytes > bytes_max ? bytes : Write(buffer);
}

uint32_t HeadLayout::MergeLeaf(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                               const StoredKey& key, const StoredValue* value, uint32_t bytes_max,
                               NodeHeader* buffer) {
  Merger merger(codec, leaf, used);
  return merger.Plan(key, value) ? merger.WriteIfFits(bytes_max, buffer) : 0;
}

uint32_t HeadLayout::MergeLog(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                              uint32_t bytes_max, NodeHeader* buffer) {
  Merger merger(codec, leaf, used);
  return merger.Plan() ? merger.WriteIfFits(bytes_max, buffer) : 0;
}

ItemSpan HeadLayout::Merger::CopyItems(Scratch& scratch) const {
  char* const to = scratch.Allocate(size_t{count_} * sorted_.stride());
  WriteItems(reinterpret_cast<std::byte*>(to));
  return {.at = to,
          .count = count_,
          .key_bytes = sorted_.key_bytes(),
          .value_bytes = sorted_.value_bytes()};
}

ItemSpan HeadLayout::GatherPlain(const Codec& codec, const NodeHeader* leaf, uint32_t used,
                                 Scratch& scratch) {
  Merger merger(codec, leaf, used);
  return merger.Plan() ? merger.CopyItems(scratch) : ItemSpan{};
}

}  // namespace skep::btree
