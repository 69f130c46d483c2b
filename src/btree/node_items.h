// node_items.h: the items and fences that nodes are built of, whatever their layout.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "btree/link.h"
#include "btree/stored.h"
#include "skep/batch.h"

namespace skep::btree {

struct LeafItem {
  StoredKey key;
  StoredValue value;
};

struct InnerItem {
  StoredKey separator;
  Link child;  // has the keys from the separator up
};

// The key range of a node: the lower fence is in it, the upper one is not.
struct Fences {
  StoredKey lower;
  StoredKey upper;  // ignored if unbounded
  bool unbounded = true;

  bool Cover(const Codec& codec, std::string_view key) const {
    return codec.Compare(key, lower) >= 0 && (unbounded || codec.Compare(key, upper) < 0);
  }
};

// The earliest deadline of the items; UINT64_MAX: none has one.
inline uint64_t EarliestDeadline(std::span<const LeafItem> items) {
  uint64_t before = UINT64_MAX;
  for (const LeafItem& item : items) before = std::min(before, DeadlineOf(item.value) - 1);
  return before == UINT64_MAX ? before : before + 1;
}

// The result of a search for a key in a leaf: its value, and what a writer needs to append to it.
struct Found {
  bool present = false;  // there is a value
  bool known = false;    // the leaf has an item of this key, maybe a delete marker
  StoredKey key;         // if known: as stored
  StoredValue value;     // if present
  Version version = 0;   // of the item, if known; in the sorted block: the node version

  // The layout's AppendToLog needs these.
  uint16_t head = 0;          // HeadLayout: the key's head in this node
  uint16_t rank = 0;          // HeadLayout: its place among the sorted items (heads::RankOf)
  uint16_t back_pointer = 0;  // PaperLayout
  uint8_t order_hint = 0;     // PaperLayout
};

// The caller's knowledge of a key that it looks for in a leaf.
enum class KeyIs : uint8_t {
  kOfLeaf,  // between the fences; the upper one is allowed
  kAny,
};

// A scan of at most so many items has its log items fetched one by one, with its window
// (look_ahead.h). For a longer scan the whole log is fetched.
inline constexpr uint32_t kShortScan = 32;

// The result so far of a search for a key in a leaf. Valid while the leaf has this buffer.
struct LeafSpot {
  uint16_t head;    // the key's
  uint16_t at;      // the first sorted item that has no lower head
  bool known;       // false: the other fields say nothing
  uint32_t used;    // NodeWord::used() at that time
  uint32_t tagged;  // a bit for each log item before `used` that may have the key
};

// The form of items that are stored whole and without metadata, with keys of one length and values
// of one length. Such items are copied as bytes: key | value | key | value ...
struct PlainForm {
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;

  uint32_t stride() const { return key_bytes + value_bytes; }
};

}  // namespace skep::btree
