// layout_fuzz.h: the property that a node of unknown bytes must have in any layout.
//
// Whatever the bytes are, Check() reads nothing outside them. If it finds nothing wrong, the views
// read nothing outside them either, and agree: the items that the cursor walks forward it walks
// backward, Find finds them, CountPresent counts them, and a copy of an inner node passes Check,
// too.
//
// There is no arena, so outside keys are compared by their heads. Of nodes that have such keys,
// only what does not depend on the order of keys is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/stored.h"
#include "skep/items.h"

namespace skep::btree {

template <class Layout>
class LayoutFuzz {
 public:
  // `has_outside_keys` is asked about a node that has passed Check(); `used` is as
  // NodeWord::used().
  LayoutFuzz(const Geometry& geometry,
             bool (*has_outside_keys)(const Codec&, const NodeHeader*, uint32_t))
      : codec_{.geometry = geometry}, has_outside_keys_(has_outside_keys) {}

  // Checks a node of `bytes` bytes, with those before it; leaves are read also as of `above`
  // versions above the node's own.
  void CheckNode(const uint8_t* data, uint32_t bytes, uint32_t used, uint64_t above) {
    // A buffer exactly as long as the node, so that AddressSanitizer sees its end.
    const std::unique_ptr<void, decltype(&std::free)> buffer(std::malloc(bytes), &std::free);
    std::memcpy(buffer.get(), data, bytes);
    NodeHeader* const node = NodeIn(static_cast<std::byte*>(buffer.get()), Layout::kFrontBytes);
    // Set before the check, since what that says of the log depends on the reader's version.
    if (bytes >= Layout::kFrontBytes + sizeof(NodeHeader)) node->version.store(1);
    if (Layout::Check(codec_, node, used) != nullptr) return;
    std::vector<OutsideBlock> blocks;
    Layout::BlocksOf(codec_, node, used, &blocks);
    if (!node->is_leaf()) return CheckInner(node);
    for (const Version read_version : {Version{1}, Version{1} + above, UINT64_MAX}) {
      CheckLeaf(Leaf(codec_, node, used, read_version));
      CheckLeafAtATime(Leaf(codec_, node, used, read_version, 1 + above));
    }
  }

 private:
  using Leaf = typename Layout::Leaf;
  using Cursor = typename Layout::LeafCursor;

  struct SeenItem {
    StoredKey key;
    StoredValue value;
    Version version;
    friend bool operator==(const SeenItem& a, const SeenItem& b) {
      return a.key.bytes.data() == b.key.bytes.data() &&
             a.value.bytes.data() == b.value.bytes.data() && a.version == b.version;
    }
  };

  static SeenItem ItemAt(const Cursor& cursor) {
    return {.key = cursor.key(), .value = cursor.value(), .version = cursor.version()};
  }

  // Reads every byte, so that AddressSanitizer reports one that is outside.
  static void Touch(std::string_view bytes) {
    volatile unsigned sum = 0;
    for (const char byte : bytes) sum = sum + static_cast<unsigned char>(byte);
  }

  static std::vector<SeenItem> Walk(const Leaf& leaf) {
    std::vector<SeenItem> items;
    Cursor cursor(leaf);
    for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) {
      items.push_back(ItemAt(cursor));
      Touch(items.back().key.bytes);
      Touch(items.back().value.bytes);
    }
    return items;
  }

  static void CheckBackwards(const Leaf& leaf, const std::vector<SeenItem>& items) {
    Cursor cursor(leaf);
    cursor.SeekLast();
    for (size_t i = items.size(); i-- > 0; cursor.Prev()) {
      SKEP_CHECK(cursor.valid() && ItemAt(cursor) == items[i]);
    }
    SKEP_CHECK(!cursor.valid());
  }

  // Checks that CopyPlain and TakeWhole have the items that a walk sees.
  static void CheckCopies(const Leaf& leaf, const std::vector<SeenItem>& items) {
    Cursor cursor(leaf);
    cursor.SeekFirst();
    for (size_t i = 0; i < items.size();) {
      SKEP_CHECK(cursor.valid() && ItemAt(cursor) == items[i]);
      const auto form = cursor.plain_form();
      ItemSpan run;
      std::string copies;
      if (form) {
        run.key_bytes = form->key_bytes;
        run.value_bytes = form->value_bytes;
        copies.resize((items.size() - i) * form->stride());
        run.count = cursor.CopyPlain(static_cast<uint32_t>(items.size() - i), false, copies.data());
        run.at = copies.data();
      }
      for (uint32_t j = 0; j < run.count; ++j, ++i) {
        SKEP_CHECK(run[j].key == items[i].key.bytes && !items[i].key.outside);
        SKEP_CHECK(run[j].value == items[i].value.bytes && !items[i].value.outside);
        SKEP_CHECK(!items[i].value.has_metadata);
      }
      if (run.count > 0) continue;
      std::vector<Item> taken(items.size() - i);
      const uint32_t count = cursor.TakeWhole(taken, false, SIZE_MAX);
      for (uint32_t j = 0; j < count; ++j, ++i) {
        SKEP_CHECK(taken[j].key == items[i].key.bytes && !items[i].key.outside);
        SKEP_CHECK(taken[j].value == items[i].value.bytes && !items[i].value.outside);
        SKEP_CHECK(!items[i].value.has_metadata);
      }
      if (count == 0) {
        ++i;
        cursor.Next();
      }
    }
    SKEP_CHECK(!cursor.valid());
  }

  // Checks everything that follows from the order of keys.
  static void CheckSearches(const Leaf& leaf, const std::vector<SeenItem>& items) {
    Cursor cursor(leaf);
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
      SKEP_CHECK(Layout::Covers(leaf.codec(), leaf.node(), key));
    }
  }

  // Checks that a seek from any bytes ends between the keys below and those that are not.
  static void CheckSeek(const Leaf& leaf, std::string_view key) {
    Cursor cursor(leaf);
    cursor.SeekAtLeast(key);
    if (cursor.valid()) {
      SKEP_CHECK(cursor.key().bytes >= key);
      cursor.Prev();
      SKEP_CHECK(!cursor.valid() || cursor.key().bytes < key);
    }
    cursor.SeekBelow(key);
    if (!cursor.valid()) return;
    SKEP_CHECK(cursor.key().bytes < key);
    cursor.Next();
    SKEP_CHECK(!cursor.valid() || cursor.key().bytes >= key);
  }

  // For nodes in which parts of some keys are not known.
  static void OnlyRead(const Leaf& leaf, const std::vector<SeenItem>& items) {
    Cursor cursor(leaf);
    for (cursor.SeekLast(); cursor.valid(); cursor.Prev()) Touch(cursor.key().bytes);
    for (const SeenItem& item : items) {
      leaf.Find(item.key.bytes);
      cursor.SeekBelow(item.key.bytes);
    }
    leaf.CountPresent();
  }

  void CheckLeaf(const Leaf& leaf) const {
    const std::vector<SeenItem> items = Walk(leaf);
    if (has_outside_keys_(codec_, leaf.node(), leaf.used())) return OnlyRead(leaf, items);
    SKEP_CHECK(leaf.CountPresent() == items.size());
    CheckBackwards(leaf, items);
    CheckCopies(leaf, items);
    CheckSearches(leaf, items);
    for (size_t i = 0; i < items.size() && i < 16; ++i) CheckSeek(leaf, items[i].value.bytes);
  }

  void CheckLeafAtATime(const Leaf& leaf) const {
    const std::vector<SeenItem> items = Walk(leaf);
    if (has_outside_keys_(codec_, leaf.node(), leaf.used())) return OnlyRead(leaf, items);
    SKEP_CHECK(leaf.CountPresent() == items.size());
    CheckBackwards(leaf, items);
    CheckCopies(leaf, items);
  }

  void CheckInner(const NodeHeader* node) const {
    const typename Layout::Inner inner(codec_, node);
    std::vector<InnerItem> items;
    inner.CopyTo(&items);
    SKEP_CHECK(items.size() == inner.count());
    for (const InnerItem& item : items) {
      Touch(item.separator.bytes);
      uint32_t index;
      inner.ChildBelow(item.separator.bytes, &index);
      const Link child = inner.ChildOf(item.separator.bytes, &index);
      SKEP_CHECK(item.separator.outside || (child == item.child && index > 0));
    }
    SKEP_CHECK(inner.rightmost() == (items.empty() ? inner.leftmost() : items.back().child));

    const Fences fences = Layout::FencesOf(codec_, node);
    std::vector<std::byte> buffer(Layout::kFrontBytes + Layout::InnerBytes(codec_, items, fences));
    NodeHeader* const copy = NodeIn(buffer.data(), Layout::kFrontBytes);
    const uint32_t used =
        Layout::BuildInner(codec_, node->level, inner.leftmost(), items, fences, copy);
    if (used <= codec_.geometry.node_bytes) {
      SKEP_CHECK(Layout::Check(codec_, copy, used) == nullptr);
    }
  }

  const Codec codec_;
  bool (*const has_outside_keys_)(const Codec&, const NodeHeader*, uint32_t);
};

}  // namespace skep::btree
