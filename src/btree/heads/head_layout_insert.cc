// Inserts a child into an inner node: everything else is copied as it is.

#include <cstring>

#include "btree/heads/head_layout_build.h"
#include "btree/heads/head_layout_search.h"

namespace skep::btree {

uint32_t HeadLayout::InsertChild(const Codec& codec, const NodeHeader* old, uint32_t child,
                                 Link left, const StoredKey& separator, Link right,
                                 NodeHeader* buffer) {
  const Inner inner(codec, old);
  const uint32_t count = inner.count();
  if (count < 2) return 0;
  const auto copy = [&](uint32_t to, uint32_t from, uint32_t bytes) {
    std::memcpy(buffer->bytes() + to, old->bytes() + from, bytes);
  };
  buffer->level = old->level;
  buffer->sorted_count = static_cast<uint16_t>(count + 1);
  buffer->left.store(child == 0 ? left.bits : inner.leftmost().bits, std::memory_order_relaxed);

  const uint32_t links = heads::AfterHeads(false, count + 1);
  copy(links, inner.links(), 8 * child);
  if (child > 0) field::Store(buffer, links + 8 * (child - 1), left);
  field::Store(buffer, links + 8 * child, right);
  copy(links + 8 * (child + 1), inner.links() + 8 * child, 8 * (count - child));

  const uint32_t offsets = links + 8 * (count + 1);
  const uint32_t old_offsets = inner.links() + 8 * count;
  const uint32_t keys = offsets + 2 * (count + 1);
  const uint32_t old_keys = old_offsets + 2 * count;
  const uint32_t old_middle =
      child < count ? field::Load<uint16_t>(old, old_offsets + 2 * child) : old->shortcut_end;
  const uint32_t middle = keys + (old_middle - old_keys);
  const uint32_t separator_bytes = field::BytesOf(separator);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t is_behind = i >= child ? 1 : 0;
    const uint32_t offset = field::Load<uint16_t>(old, old_offsets + 2 * i) - old_keys + keys +
                            is_behind * separator_bytes;
    field::Store(buffer, offsets + 2 * (i + is_behind), static_cast<uint16_t>(offset));
  }
  field::Store(buffer, offsets + 2 * child, static_cast<uint16_t>(middle));
  copy(keys, old_keys, old_middle - old_keys);
  field::PutKey(buffer, middle, separator);
  // The keys behind the new one, and the fences.
  copy(middle + separator_bytes, old_middle, old->log_begin - old_middle);
  buffer->shortcut_end =
      static_cast<uint16_t>(middle + separator_bytes + (old->shortcut_end - old_middle));
  buffer->log_begin =
      static_cast<uint16_t>(middle + separator_bytes + (old->log_begin - old_middle));

  const auto own_bytes = [&](uint32_t i) {
    const auto offset = field::Load<uint16_t>(buffer, offsets + 2 * i);
    return heads::OwnBytes(field::KeyAt(buffer, offset));
  };
  const heads::Form& before = heads::FormOf(old);
  const heads::Form form =
      heads::FormOfGrown(codec, before, count + 1, FencesOf(codec, old), own_bytes, 1,
                         [&](uint32_t) { return own_bytes(child); });
  heads::PutForm(buffer, form);
  uint16_t* const to = heads::NumbersAt(buffer, heads::kInnerHeadsAt);
  const auto head_of = [&](uint32_t i) { return heads::HeadOf(form, own_bytes(i)); };
  if (heads::MakesEqualHeads(form, before)) {
    const uint16_t* const from = heads::HeadsOf(old, false);
    std::copy(from, from + child, to);
    to[child] = head_of(child);
    std::copy(from + child, from + count, to + child + 1);
  } else {
    for (uint32_t i = 0; i <= count; ++i) to[i] = head_of(i);
  }
  heads::FinishHeads(buffer);
  return buffer->log_begin;
}

}  // namespace skep::btree
