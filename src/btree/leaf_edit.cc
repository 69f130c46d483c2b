#include "btree/leaf_edit.h"

#include <algorithm>

#include "engine/point.h"

namespace skep::btree {

namespace {

// Applies one edit in place.
void ApplyEdit(const Codec& codec, const LeafEdit& edit, std::vector<LeafItem>* items) {
  const auto at = std::ranges::partition_point(
      *items, [&](const LeafItem& item) { return codec.Compare(edit.key, item.key) > 0; });
  const bool found = at != items->end() && codec.Compare(edit.key, at->key) == 0;
  if (edit.erase) {
    if (found) items->erase(at);
  } else if (found) {
    *at = {.key = edit.stored_key, .value = edit.value};
  } else {
    items->insert(at, {.key = edit.stored_key, .value = edit.value});
  }
}

}  // namespace

void ApplyEdits(const Codec& codec, std::span<const LeafEdit> edits, std::vector<LeafItem>* items) {
  if (edits.size() == 1) return ApplyEdit(codec, edits[0], items);
  std::vector<LeafItem> merged;
  merged.reserve(items->size() + edits.size());
  auto item = items->begin();
  for (const LeafEdit& edit : edits) {
    const auto at = std::partition_point(
        item, items->end(), [&](const LeafItem& i) { return codec.Compare(edit.key, i.key) > 0; });
    merged.insert(merged.end(), item, at);
    item = at;
    if (item != items->end() && codec.Compare(edit.key, item->key) == 0) ++item;
    if (!edit.erase) merged.push_back({.key = edit.stored_key, .value = edit.value});
  }
  merged.insert(merged.end(), item, items->end());
  items->swap(merged);
}

uint64_t EraseExpired(uint64_t now_ms, std::vector<LeafItem>* items) {
  return std::erase_if(*items, [now_ms](const LeafItem& item) {
    return HasExpired(DeadlineOf(item.value), now_ms);
  });
}

}  // namespace skep::btree
