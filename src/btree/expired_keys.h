// expired_keys.h: telling the tree's observer (engine/expiry_observer.h) of keys that have expired.
//
// Items that leave the tree with their leaf's old buffer are noted before it is replaced, because
// their keys are views of it, and told once the new one is published: if that fails, nothing is.
//
// Cost: a load where nobody observes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "btree/core.h"
#include "btree/node_items.h"
#include "engine/point.h"

namespace skep::btree {

// The observer, if it wants to be told now; else null.
inline ExpiryObserver* ExpiryObserverOf(const Core& core) {
  ExpiryObserver* const observer = core.expiry_observer.load(std::memory_order_acquire);
  return observer != nullptr && observer->wants_expired() ? observer : nullptr;
}

// Notes the keys of the items that have expired, if somebody wants to be told. Throws
// std::bad_alloc.
inline std::vector<std::string> ExpiredKeysOf(const Core& core, std::span<const LeafItem> items,
                                              uint64_t now_ms) {
  std::vector<std::string> keys;
  if (ExpiryObserverOf(core) == nullptr) return keys;
  for (const LeafItem& item : items) {
    if (!HasExpired(DeadlineOf(item.value), now_ms)) continue;
    Scratch scratch;
    keys.emplace_back(core.codec.Whole(item.key, scratch));
  }
  return keys;
}

inline void TellExpired(const Core& core, std::string_view key) {
  skep::TellExpired(core.expiry_observer.load(std::memory_order_acquire), key);
}
inline void TellExpired(const Core& core, std::span<const std::string> keys) {
  for (const std::string& key : keys) TellExpired(core, key);
}

}  // namespace skep::btree
