#include "hash/bucket.h"

namespace skep::hash {

const char* Bucket::Verify() const {
  const uint32_t end = used();
  for (uint32_t slot = 0; slot < end;) {
    const uint32_t type = TypeAt(slot);
    if (type == 0) return "B1: an empty slot before one that is not";
    if (type == kMoreType) return "B2: an inline pair without a first slot";
    const BucketItem item = ItemAt(slot);
    if (type != kPairType && item.slots != 1) return "B2: a pointer of several slots";
    if (type == kPairType) {
      const Pair pair = PairOf(item);
      const size_t bytes = pair.key.size() + pair.value.size();
      if (bytes > item.slots * kSlotBytes || SlotsFor(bytes) != item.slots) {
        return "B2: the code of a pair does not fit its slots";
      }
      for (size_t i = bytes; i < item.slots * kSlotBytes; ++i) {
        if (bytes_[slot * kSlotBytes + i] != 0) return "B3: padding is not zero";
      }
    } else if ((lengths() >> 5 * slot & 0x1f) != 0) {
      return "B3: a pointer has length bits";
    }
    slot += item.slots;
  }
  for (uint32_t i = end * kSlotBytes; i < kInlineBytesMax; ++i) {
    if (bytes_[i] != 0) return "B3: an unused slot is not zero";
  }
  if (end < kSlots && lengths() >> 5 * end != 0) return "B3: unused length bits are not zero";
  return Load<uint32_t>(60) > kSlabAddressMax ? "B3: bit 511 is not zero" : nullptr;
}

}  // namespace skep::hash
