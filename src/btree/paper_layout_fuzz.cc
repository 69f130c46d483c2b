// Property: whatever the bytes, Check() reads nothing outside them; if it finds nothing wrong, then
// the views read nothing outside them either and tell one story: what the cursor walks forward it
// walks backward, Find finds it, CountPresent counts it, and a copy of an inner node checks too.
//
// Input: byte 0 chooses geometry and read version; the rest is a node from byte 0 of its header up
// to its last byte in use. Outside keys are compared by their heads: there is no arena.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "btree/paper_layout.h"

namespace skep::btree {
namespace {

struct SeenItem {
  StoredKey key;
  StoredValue value;
  Version version;
  friend bool operator==(const SeenItem& a, const SeenItem& b) {
    return a.key.bytes.data() == b.key.bytes.data() &&
           a.value.bytes.data() == b.value.bytes.data() && a.version == b.version;
  }
};

SeenItem ItemAt(const PaperLayout::LeafCursor& cursor) {
  return {.key = cursor.key(), .value = cursor.value(), .version = cursor.version()};
}

// Reads every byte, so that AddressSanitizer sees one that is outside.
void Touch(std::string_view bytes) {
  volatile unsigned sum = 0;
  for (const char byte : bytes) sum = sum + static_cast<unsigned char>(byte);
}

std::vector<SeenItem> Walk(const PaperLayout::Leaf& leaf) {
  std::vector<SeenItem> items;
  PaperLayout::LeafCursor cursor(leaf);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) {
    items.push_back(ItemAt(cursor));
    Touch(items.back().key.bytes);
    Touch(items.back().value.bytes);
  }
  return items;
}

void CheckBackwards(const PaperLayout::Leaf& leaf, const std::vector<SeenItem>& items) {
  PaperLayout::LeafCursor cursor(leaf);
  cursor.SeekLast();
  for (size_t i = items.size(); i-- > 0; cursor.Prev()) {
    SKEP_CHECK(cursor.valid() && ItemAt(cursor) == items[i]);
  }
  SKEP_CHECK(!cursor.valid());
}

// All that follows from the order of keys: not where a part of the keys is not known.
void CheckSearches(const PaperLayout::Leaf& leaf, const std::vector<SeenItem>& items) {
  SKEP_CHECK(leaf.CountPresent() == items.size());
  PaperLayout::LeafCursor cursor(leaf);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string_view key = items[i].key.bytes;
    const auto found = leaf.Find(key);
    SKEP_CHECK(found.present && found.known);
    SKEP_CHECK((SeenItem{found.key, found.value, found.version} == items[i]));
    cursor.SeekAtLeast(key);
    SKEP_CHECK(cursor.valid() && ItemAt(cursor) == items[i]);
    cursor.SeekBelow(key);
    SKEP_CHECK(cursor.valid() == (i > 0));
    SKEP_CHECK(i == 0 || ItemAt(cursor) == items[i - 1]);
    SKEP_CHECK(PaperLayout::Covers(leaf.codec(), leaf.node(), key));
  }
}

bool HasOutsideKeys(const Codec& codec, const NodeHeader* node, uint32_t used) {
  const auto fences = PaperLayout::FencesOf(codec, node);
  bool has = fences.lower.outside || (!fences.unbounded && fences.upper.outside);
  for (paper::SortedPosition at(codec, node); !at.at_end(); at.Next()) has |= at.key().outside;
  for (uint32_t at = node->log_begin; at < used; at = paper::LogItem(node, at).end()) {
    has |= paper::LogItem(node, at).key().outside;
  }
  return has;
}

void CheckLeaf(const Codec& codec, const NodeHeader* node, uint32_t used, Version read_version) {
  const PaperLayout::Leaf leaf(codec, node, used, read_version);
  const std::vector<SeenItem> items = Walk(leaf);
  if (!HasOutsideKeys(codec, node, used)) {
    CheckBackwards(leaf, items);
    CheckSearches(leaf, items);
    return;
  }
  PaperLayout::LeafCursor cursor(leaf);
  for (cursor.SeekLast(); cursor.valid(); cursor.Prev()) Touch(cursor.key().bytes);
  for (const SeenItem& item : items) {
    leaf.Find(item.key.bytes);
    cursor.SeekBelow(item.key.bytes);
  }
  leaf.CountPresent();
}

void CheckInner(const Codec& codec, const NodeHeader* node) {
  const PaperLayout::Inner inner(codec, node);
  std::vector<PaperLayout::InnerItem> items;
  inner.CopyTo(&items);
  SKEP_CHECK(items.size() == inner.count());
  for (const auto& item : items) {
    Touch(item.separator.bytes);
    uint32_t index;
    inner.ChildBelow(item.separator.bytes, &index);
    const Link child = inner.ChildOf(item.separator.bytes, &index);
    SKEP_CHECK(item.separator.outside || (child == item.child && index > 0));
  }
  SKEP_CHECK(inner.rightmost() == (items.empty() ? inner.leftmost() : items.back().child));

  const auto fences = PaperLayout::FencesOf(codec, node);
  uint32_t bytes = codec.geometry.fences_begin() + PaperLayout::FenceBytes(fences);
  for (const auto& item : items) bytes += PaperLayout::InnerItemBytes(item);
  std::vector<uint64_t> buffer((bytes + 7) / 8);
  auto* const copy = reinterpret_cast<NodeHeader*>(buffer.data());
  const uint32_t used =
      PaperLayout::BuildInner(codec, node->level, inner.leftmost(), items, fences, copy);
  if (used <= codec.geometry.node_bytes) {
    SKEP_CHECK(PaperLayout::Check(codec, copy, used) == nullptr);
  }
}

void CheckNode(uint8_t choice, const uint8_t* data, uint32_t used) {
  Codec codec;
  codec.geometry.node_bytes = 2048u << (choice & 3);
  codec.geometry.log_bytes_max = 512;
  // Of its own and exactly as long as the node, so that AddressSanitizer sees its end.
  const std::unique_ptr<void, decltype(&std::free)> buffer(std::malloc(used), &std::free);
  std::memcpy(buffer.get(), data, used);
  auto* const node = static_cast<NodeHeader*>(buffer.get());
  // Before the check: what it says of the log is about what a reader above this version sees.
  if (used >= sizeof(NodeHeader)) node->version.store(1);
  if (PaperLayout::Check(codec, node, used) != nullptr) return;
  if (!node->is_leaf()) return CheckInner(codec, node);
  for (const Version read_version : {Version{1}, Version{1} + (choice >> 2), UINT64_MAX}) {
    CheckLeaf(codec, node, used, read_version);
  }
}

}  // namespace
}  // namespace skep::btree

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1 + 16384) return 0;
  skep::btree::CheckNode(data[0], data + 1, static_cast<uint32_t>(size - 1));
  return 0;
}
