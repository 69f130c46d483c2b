// bucket.h: one cache line of the table: ten slots and their contents (KV-Direct, section 3.3.1).
//
//   bits      size  field
//     0..399   400  ten slots of 5 bytes, filled from the first one on, without gaps
//   400..429    30  types: bit i of the three planes at 400, 410 and 420 is of slot i
//   430..479    50  lengths: five bits a slot
//   480..510    31  chain: address of the next bucket in units of 32 B; 0: this is the last
//   511          1  (zero)
//
//   type (planes 2 1 0)  slot
//   000            empty
//   001..101       pointer to a slab of 32, 64, 128, 256, 512 B (slabs.h):
//                    bits 0..30 address in units of 32 B, bits 31..39 secondary hash
//   110            first slot of an inline pair
//   111            another slot of it
//
// An inline pair lies in the bytes of its slots: the key, the value, and up to five bytes of zero
// padding. Its lengths share one code, in the length bits of its first slot, or of its first two.
// The code of a pair of n slots, k bytes of key and p bytes of padding:
//   n == 1   6 * k + p    at most 30, five bits; p is 0..5
//   n >= 2   8 * k + p    at most 404, ten bits; p is 0..4
// So any pair of up to 50 bytes has a code, the empty key and value included, and no slot has a
// header. (The paper marks the ends of keys and values in a bitmap of the same 50 bits, and does
// not say how it tells an empty value.)
//
// There is no word for a lock or a version: a bucket is read and written under its partition's
// lock.
//
// Invariants. Verify() checks them.
//   B1  the slots that are not empty are the first used() ones.
//   B2  a 111 follows a 110 or a 111; the code of a pair fits its slots.
//   B3  unused slots and length bits, padding and bit 511 are zero.
// A bucket of zero bytes is empty.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "hash/key.h"
#include "hash/slot_windows.h"
#include "skep/copy_bytes.h"

namespace skep::hash {

// The address of a slab: its offset in the arena in units of 32 B. 0: none.
using SlabAddress = uint32_t;
inline constexpr size_t kSlabUnitBytes = 32;
inline constexpr SlabAddress kSlabAddressMax = (1u << 31) - 1;

constexpr uint64_t LowBits(uint32_t count) { return (uint64_t{1} << count) - 1; }

// An item of a bucket: a pointer (one slot) or an inline pair.
struct BucketItem {
  uint8_t slot;
  uint8_t slots;
};

// It has 42 methods, of a few instructions each: a name for each thing that can be asked of the
// bits of a line, or done to them, so that nothing else knows where they are.
class alignas(64) Bucket {
 public:
  static constexpr uint32_t kSlots = kSlotCount;
  static constexpr uint32_t kInlineBytesMax = kSlots * kSlotBytes;
  static constexpr uint32_t kAllSlots = (1u << kSlots) - 1;

  struct Pair {
    std::string_view key;
    std::string_view value;
  };
  struct Pointer {
    uint8_t size_class;  // 0: 32 B, .. 4: 512 B
    uint32_t secondary;
    SlabAddress address;
  };

  static uint32_t SlotsFor(size_t pair_bytes) {
    return pair_bytes == 0 ? 1 : static_cast<uint32_t>((pair_bytes + kSlotBytes - 1) / kSlotBytes);
  }

  uint32_t used() const {
    const uint32_t t = types();
    return static_cast<uint32_t>(std::bit_width((t | t >> 10 | t >> 20) & kAllSlots));
  }
  uint32_t room() const { return kSlots - used(); }

  SlabAddress chain() const { return Load<uint32_t>(60) & kSlabAddressMax; }
  void set_chain(SlabAddress next) { Store<uint32_t>(60, next); }

  // Returns a bit for each slot that is a pointer, or begins an inline pair.
  uint32_t pointers() const {
    const uint32_t t = types();
    return (t | t >> 10 | t >> 20) & ~(t >> 10 & t >> 20) & kAllSlots;
  }
  uint32_t pairs() const {
    const uint32_t t = types();
    return t >> 20 & t >> 10 & ~t & kAllSlots;
  }

  // Returns a bit for each pointer with this secondary hash.
  uint32_t Match(uint32_t secondary) const {
    constexpr uint64_t kSecondaryMask = LowBits(kSecondaryBits) << 31;
    return SlotsLike(bytes_, uint64_t{secondary} << 31, kSecondaryMask) & pointers();
  }

  // Returns a bit for the first slot of each inline pair that may have this key, by the first bytes
  // of its key. At most two or three bits where keys are alike; the bit of the key itself is always
  // among them.
  uint32_t PairsLike(const Key& key) const {
    return SlotsLike(bytes_, key.head, HeadMaskOf(key.bytes.size())) & pairs();
  }

  // Returns the inline pair of this key; one of no slots if there is none.
  BucketItem Find(const Key& key) const {
    const Found found = Search(PairsLike(key), key);
    return {.slot = static_cast<uint8_t>(found.slot), .slots = static_cast<uint8_t>(found.slots)};
  }
  // Finds the value of the inline pair of this key; false if there is none. `like` is
  // PairsLike(key).
  bool FindValue(uint32_t like, const Key& key, std::string_view* value) const {
    const Found found = Search(like, key);
    if (found.slots == 0) return false;
    *value = {reinterpret_cast<const char*>(&bytes_[found.slot * kSlotBytes]) + key.bytes.size(),
              ValueBytes(found, key)};
    return true;
  }
  bool FindValue(const Key& key, std::string_view* value) const {
    return FindValue(PairsLike(key), key, value);
  }

  BucketItem ItemAt(uint32_t slot) const {
    const uint32_t t = types();
    return {.slot = static_cast<uint8_t>(slot),
            .slots = static_cast<uint8_t>(SlotsFrom(t >> 20 & t >> 10 & t, slot))};
  }
  bool IsPair(BucketItem item) const { return (pairs() >> item.slot & 1) != 0; }
  // The pair's key and value are views of the bucket.
  Pair PairOf(BucketItem item) const {
    const uint32_t code = Code(item.slot, item.slots);
    const auto* const at = reinterpret_cast<const char*>(&bytes_[item.slot * kSlotBytes]);
    const uint32_t key = KeyBytes(code, item.slots);
    const uint32_t value = item.slots * kSlotBytes - key - Padding(code, item.slots);
    return {.key = {at, key}, .value = {at + key, value}};
  }
  Pointer PointerAt(uint32_t slot) const {
    const uint64_t word = SlotWord(slot);
    return {.size_class = static_cast<uint8_t>(TypeAt(slot) - 1),
            .secondary = static_cast<uint32_t>(word >> 31),
            .address = static_cast<SlabAddress>(word & kSlabAddressMax)};
  }

  // Calls visit(item) for each item, in order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t slot = 0, end = used(); slot < end;) {
      const BucketItem item = ItemAt(slot);
      visit(item);
      slot += item.slots;
    }
  }

  // Appends a pointer. There must be room.
  void AddPointer(const Pointer& pointer) {
    const uint32_t slot = used();
    SetSlot(slot, pointer);
    SetType(slot, pointer.size_class + 1u);
  }
  // Appends a pair, which must not be a view of this bucket. There must be room.
  void AddPair(std::string_view key, std::string_view value) {
    const uint32_t slots = SlotsFor(key.size() + value.size());
    const uint32_t slot = used();
    const auto bits = static_cast<uint32_t>(LowBits(slots)) << slot;
    set_types(types() | (bits & (bits - 1)) | bits << 10 | bits << 20);
    // The padding is zero already, as all unused slots are.
    uint8_t* const at = &bytes_[slot * kSlotBytes];
    CopyBytes(at, key.data(), key.size());
    CopyBytes(at + key.size(), value.data(), value.size());
    const size_t padding = slots * kSlotBytes - key.size() - value.size();
    set_lengths(lengths() | CodeOf(slots, key.size(), padding) << 5 * slot);
  }
  // Appends a copy of an item of another bucket. There must be room.
  void Add(const Bucket& from, BucketItem item) {
    const uint32_t slot = used();
    CopyBytes(&bytes_[slot * kSlotBytes],
              reinterpret_cast<const char*>(&from.bytes_[item.slot * kSlotBytes]),
              item.slots * kSlotBytes);
    constexpr uint32_t kFirstSlots = 1u | 1u << 10 | 1u << 20;
    const uint32_t of_item =
        from.types() >> item.slot & static_cast<uint32_t>(LowBits(item.slots)) * kFirstSlots;
    set_types(types() | of_item << slot);
    const uint64_t codes = from.lengths() >> 5 * item.slot & LowBits(5 * item.slots);
    set_lengths(lengths() | codes << 5 * slot);
  }

  // Replaces a pair and leaves all other items in place. The new pair must take as many slots.
  void SetPair(BucketItem item, std::string_view key, std::string_view value) {
    set_lengths(lengths() & ~(LowBits(5 * item.slots) << 5 * item.slot));
    Fill(item.slot, item.slots, key, value);
  }

  // Removes an item; those behind it move up.
  void Remove(BucketItem item) {
    const uint32_t begin = item.slot * kSlotBytes;
    const uint32_t bytes = item.slots * kSlotBytes;
    std::memmove(&bytes_[begin], &bytes_[begin + bytes], kInlineBytesMax - begin - bytes);
    std::memset(&bytes_[kInlineBytesMax - bytes], 0, bytes);
    const uint32_t t = types();
    uint32_t left = 0;
    for (uint32_t plane = 0; plane < 3; ++plane) {
      const uint32_t bits = t >> 10 * plane & kAllSlots;
      left |= static_cast<uint32_t>(Without(bits, item.slot, item.slots)) << 10 * plane;
    }
    set_types(left);
    set_lengths(Without(lengths(), 5 * item.slot, 5 * item.slots));
  }

  // Returns null, or a literal that names the broken invariant.
  const char* Verify() const;

 private:
  static constexpr uint32_t kPairType = 6;
  static constexpr uint32_t kMoreType = 7;
  static constexpr uint64_t kLengthsMask = (uint64_t{1} << 50) - 1;

  static uint64_t Without(uint64_t bits, uint32_t at, uint32_t count) {
    return (bits & LowBits(at)) | (bits >> count & ~LowBits(at));
  }
  static uint32_t SlotsFrom(uint32_t more, uint32_t slot) {
    return 1 + static_cast<uint32_t>(std::countr_one(more >> slot >> 1));
  }
  static uint64_t CodeOf(uint32_t slots, size_t key_bytes, size_t padding) {
    return key_bytes * (slots == 1 ? 6 : 8) + padding;
  }
  static uint32_t KeyBytes(uint32_t code, uint32_t slots) {
    return slots == 1 ? code / 6 : code >> 3;
  }
  static uint32_t Padding(uint32_t code, uint32_t slots) {
    return slots == 1 ? code % 6 : code & 7;
  }

  struct Found {
    uint32_t slot;
    uint32_t slots;  // 0: not found
    uint32_t code;
  };
  static size_t ValueBytes(const Found& found, const Key& key) {
    return found.slots * kSlotBytes - key.bytes.size() - Padding(found.code, found.slots);
  }
  Found Search(uint32_t like, const Key& key) const {
    const size_t size = key.bytes.size();
    const uint32_t t = types();
    for (uint32_t left = like; left != 0; left &= left - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(left));
      const uint32_t slots = SlotsFrom(t >> 20 & t >> 10 & t, slot);
      const uint32_t code = Code(slot, slots);
      if (KeyBytes(code, slots) != size) continue;
      const uint8_t* const rest = &bytes_[slot * kSlotBytes + 8];
      if (size > 8 && std::memcmp(rest, key.bytes.data() + 8, size - 8) != 0) continue;
      return {.slot = slot, .slots = slots, .code = code};
    }
    return {.slot = 0, .slots = 0, .code = 0};
  }

  template <typename T>
  T Load(size_t at) const {
    T value;
    std::memcpy(&value, &bytes_[at], sizeof(T));
    return value;
  }
  template <typename T>
  void Store(size_t at, T value) {
    std::memcpy(&bytes_[at], &value, sizeof(T));
  }

  // The fields that do not begin at a byte are read with their neighbours.
  uint32_t types() const { return Load<uint32_t>(50) & ((1u << 30) - 1); }
  void set_types(uint32_t types) {
    Store<uint32_t>(50, (Load<uint32_t>(50) & ~((1u << 30) - 1)) | types);
  }
  uint64_t lengths() const { return Load<uint64_t>(53) >> 6 & kLengthsMask; }
  void set_lengths(uint64_t lengths) {
    Store<uint64_t>(53, (Load<uint64_t>(53) & ~(kLengthsMask << 6)) | lengths << 6);
  }
  uint32_t Code(uint32_t slot, uint32_t slots) const {
    return static_cast<uint32_t>(lengths() >> 5 * slot & (slots == 1 ? 0x1f : 0x3ff));
  }
  uint32_t TypeAt(uint32_t slot) const {
    const uint32_t t = types() >> slot;
    return (t & 1) | (t >> 9 & 2) | (t >> 18 & 4);
  }
  void SetType(uint32_t slot, uint32_t type) {
    set_types(types() | ((type & 1) | (type & 2) << 9 | (type & 4) << 18) << slot);
  }

  uint64_t SlotWord(uint32_t slot) const { return Load<uint64_t>(slot * kSlotBytes) & LowBits(40); }
  void SetSlot(uint32_t slot, const Pointer& pointer) {
    const uint64_t word = uint64_t{pointer.secondary} << 31 | pointer.address;
    std::memcpy(&bytes_[slot * kSlotBytes], &word, kSlotBytes);
  }
  void Fill(uint32_t slot, uint32_t slots, std::string_view key, std::string_view value) {
    SKEP_DCHECK(SlotsFor(key.size() + value.size()) == slots);
    const size_t padding = slots * kSlotBytes - key.size() - value.size();
    uint8_t* const at = &bytes_[slot * kSlotBytes];
    // The new value may be a view of the old one.
    if (!value.empty()) std::memmove(at + key.size(), value.data(), value.size());
    if (!key.empty()) std::memmove(at, key.data(), key.size());
    std::memset(at + key.size() + value.size(), 0, padding);
    set_lengths(lengths() | CodeOf(slots, key.size(), padding) << 5 * slot);
  }

  uint8_t bytes_[64];
};
static_assert(sizeof(Bucket) == 64);

}  // namespace skep::hash
