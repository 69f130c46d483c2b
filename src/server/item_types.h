// item_types.h: the types of the items that a scan has found.
//
// A scan tells them by effects, of items with a deadline or another type than plain bytes, in the
// order of the items (batch.h): its batch must have been told to note effects.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/ascii.h"
#include "skep/batch.h"
#include "types/value_type.h"

namespace skep {

class ItemTypes {
 public:
  // Of the items of the slot. The batch must outlive it.
  ItemTypes(const Batch& batch, uint32_t slot)
      : slot_(slot), at_(batch.effects().begin()), end_(batch.effects().end()) {
    while (at_ != end_ && at_->slot < slot_) ++at_;
  }

  // The name that TYPE has for the type of an item; to be called for each, in their order.
  std::string_view NameOf(const Item& item) {
    if (at_ == end_ || at_->slot != slot_ || at_->key != item.key) return types::NameOf(kPlainType);
    return types::NameOf((at_++)->type);
  }
  // Whether that is the wanted name, in whatever case; nothing: any is.
  bool IsWanted(const Item& item, const std::optional<std::string_view>& type) {
    return !type || EqualsIgnoringCase(*type, NameOf(item));
  }

 private:
  const uint32_t slot_;
  std::span<const Effect>::iterator at_;
  const std::span<const Effect>::iterator end_;
};

}  // namespace skep
