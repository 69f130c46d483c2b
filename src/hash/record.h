// record.h: the bytes of a key and value that lie in a slab.
//
//   short (key up to 126 bytes, key and value up to 510, no deadline)
//   +------+-----------+-------------+
//   | form | key bytes | value bytes |        2 bytes more than the key and value
//   +------+-----------+-------------+
//   long (up to 512 bytes in all)
//   +------+---------+------------+-----------+-------------+
//   | form | (zero)  | key length | value     | deadline    |  key, value: 20 bytes more
//   | 2    | 2       | 4          | length 4  | 8           |
//   +------+---------+------------+-----------+-------------+
//   large: as long, but the key and value are one allocation of the arena
//   |      |         |            |           |             | arena address 8 |
//
//   form, bits 0..6   length of a short key; 127: not short
//         bits 7..15  short: length of the key and value; else 0: long, 1: large
//
// Cost: comparing a key reads one cache line if the record is short, as most are, and two if it is
// large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/arena.h"
#include "engine/pair_iterator.h"

namespace skep::hash {

class Record {
 public:
  enum class Form : uint8_t { kShort, kLong, kLarge };

  static constexpr size_t kSlabBytesMax = 512;
  static constexpr size_t kShortKeyBytesMax = 126;
  static constexpr size_t kShortBytesMax = 510;
  static constexpr size_t kShortHeaderBytes = 2;
  static constexpr size_t kLongHeaderBytes = 20;
  static constexpr size_t kLargeBytes = 28;

  static Form FormOf(const Pair& pair) {
    const size_t bytes = pair.key.size() + pair.value.size();
    if (pair.deadline_ms == 0 && pair.key.size() <= kShortKeyBytesMax && bytes <= kShortBytesMax) {
      return Form::kShort;
    }
    return bytes + kLongHeaderBytes <= kSlabBytesMax ? Form::kLong : Form::kLarge;
  }
  // Returns how many bytes of a slab the record takes.
  static size_t SlabBytes(const Pair& pair, Form form) {
    const size_t bytes = pair.key.size() + pair.value.size();
    switch (form) {
      case Form::kShort:
        return kShortHeaderBytes + bytes;
      case Form::kLong:
        return kLongHeaderBytes + bytes;
      case Form::kLarge:
        return kLargeBytes;
    }
    __builtin_unreachable();
  }

  explicit Record(const std::byte* at) : at_(at) {}

  Form form() const {
    const uint32_t form = Load<uint16_t>(0);
    if ((form & kKeyMask) != kNotShort) return Form::kShort;
    return form >> kKeyBits == 0 ? Form::kLong : Form::kLarge;
  }
  Pair Read(const Arena& arena) const {
    const uint32_t form = Load<uint16_t>(0);
    const size_t key = form & kKeyMask;
    if (key != kNotShort) return Views(at_ + kShortHeaderBytes, key, (form >> kKeyBits) - key, 0);
    const bool is_large = form >> kKeyBits != 0;
    const std::byte* const body = is_large ? arena.At(body_at()) : at_ + kLongHeaderBytes;
    return Views(body, Load<uint32_t>(4), Load<uint32_t>(8), deadline_ms());
  }
  // Returns 0 unless the record is long or large.
  uint64_t deadline_ms() const { return form() == Form::kShort ? 0 : Load<uint64_t>(12); }
  // Of a large record: where its key and value are, and how many bytes they take.
  ArenaAddress body_at() const { return {.bits = Load<uint64_t>(kLongHeaderBytes)}; }
  size_t body_bytes() const { return size_t{Load<uint32_t>(4)} + Load<uint32_t>(8); }

  // Writes the record; `body` and `body_at` say where the key and value of a large one go. The
  // value may be a view of the old value at the same place.
  static void Write(std::byte* at, const Pair& pair, Form form, std::byte* body,
                    ArenaAddress body_at) {
    const size_t bytes = pair.key.size() + pair.value.size();
    if (form == Form::kShort) {
      WriteBody(at + kShortHeaderBytes, pair);
      Store(at, 0, static_cast<uint16_t>(pair.key.size() | bytes << kKeyBits));
      return;
    }
    WriteBody(form == Form::kLong ? at + kLongHeaderBytes : body, pair);
    Store(at, 0, static_cast<uint32_t>(kNotShort | (form == Form::kLarge ? 1u << kKeyBits : 0)));
    Store(at, 4, static_cast<uint32_t>(pair.key.size()));
    Store(at, 8, static_cast<uint32_t>(pair.value.size()));
    Store(at, 12, pair.deadline_ms);
    if (form == Form::kLarge) Store(at, kLongHeaderBytes, body_at.bits);
  }
  // Writes the deadline of a long or large record.
  static void WriteDeadline(std::byte* at, uint64_t deadline_ms) { Store(at, 12, deadline_ms); }

 private:
  static constexpr uint32_t kKeyBits = 7;
  static constexpr uint32_t kKeyMask = (1u << kKeyBits) - 1;
  static constexpr uint32_t kNotShort = kKeyMask;
  static_assert(kShortKeyBytesMax < kNotShort && kShortBytesMax < 1u << (16 - kKeyBits));
  static_assert(kLargeBytes <= 32);

  static Pair Views(const std::byte* body, size_t key, size_t value, uint64_t deadline_ms) {
    const auto* const at = reinterpret_cast<const char*>(body);
    return {.key = {at, key}, .value = {at + key, value}, .deadline_ms = deadline_ms};
  }
  static void WriteBody(std::byte* at, const Pair& pair) {
    const size_t key = pair.key.size();
    if (!pair.value.empty()) std::memmove(at + key, pair.value.data(), pair.value.size());
    if (key != 0) std::memmove(at, pair.key.data(), key);
  }

  template <typename T>
  T Load(size_t offset) const {
    T value;
    std::memcpy(&value, at_ + offset, sizeof(T));
    return value;
  }
  template <typename T>
  static void Store(std::byte* at, size_t offset, T value) {
    std::memcpy(at + offset, &value, sizeof(T));
  }

  const std::byte* at_;
};

}  // namespace skep::hash
