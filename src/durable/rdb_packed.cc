#include "durable/rdb_packed.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/decimal.h"

namespace skep::durable {
namespace {

constexpr char kEnd = static_cast<char>(0xff);
constexpr uint16_t kCountUnknown = 65535;

// The bytes of something packed, taken from the front.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  size_t left() const { return rest_.size(); }
  // What has been taken since `before`, which is an earlier left().
  size_t TakenSince(size_t before) const { return before - rest_.size(); }
  bool IsAtEnd() const { return rest_.size() == 1 && rest_.front() == kEnd; }

  std::optional<std::string_view> Take(uint64_t count) {
    if (count > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::optional<uint8_t> Byte() {
    const auto byte = Take(1);
    return byte ? std::optional(static_cast<uint8_t>(byte->front())) : std::nullopt;
  }
  // An unsigned number of so many bytes, little-endian. Here and below it has a value before it may
  // be reset, or GCC warns of a value that nobody reads.
  std::optional<uint64_t> Number(size_t bytes) {
    std::optional<uint64_t> number(0);
    const auto taken = Take(bytes);
    if (taken) std::memcpy(&*number, taken->data(), bytes);
    if (!taken) number.reset();
    return number;
  }
  std::optional<uint64_t> BigEndian(size_t bytes) {
    std::optional<uint64_t> number(0);
    const auto taken = Take(bytes);
    for (const char byte : taken.value_or(std::string_view())) {
      *number = *number << 8 | static_cast<uint8_t>(byte);
    }
    if (!taken) number.reset();
    return number;
  }
  // A string behind its length.
  std::optional<std::string_view> String(std::optional<uint64_t> length) {
    return length ? Take(*length) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

// An entry, whose integer lives in it as a decimal.
class Entry {
 public:
  bool SetString(std::optional<std::string_view> text) {
    if (text) text_ = *text;
    return text.has_value();
  }
  // A signed number of the lowest bits of `number`.
  bool SetInteger(std::optional<uint64_t> number, size_t bits) {
    if (!number) return false;
    const size_t unused = 64 - bits;
    const int64_t integer = static_cast<int64_t>(*number << unused) >> unused;
    text_ = {digits_, static_cast<size_t>(WriteDecimal(digits_, integer) - digits_)};
    return true;
  }
  std::string_view text() const { return text_; }

 private:
  char digits_[kDecimalBytesMax];
  std::string_view text_;
};

// Takes what a listpack's entry has before its length.
bool TakeListpackValue(Bytes& from, Entry& entry) {
  const auto byte = from.Byte();
  if (!byte) return false;
  const uint8_t first = *byte;
  if (first < 0x80) return entry.SetInteger(first, 8);
  if (first < 0xc0) return entry.SetString(from.Take(first & 0x3f));
  if (first < 0xf0) {
    const auto second = from.Byte();
    if (!second) return false;
    if (first < 0xe0) return entry.SetInteger(uint64_t{first & 0x1fu} << 8 | *second, 13);
    return entry.SetString(from.Take(uint64_t{first & 0x0fu} << 8 | *second));
  }
  switch (first) {
    case 0xf0:
      return entry.SetString(from.String(from.Number(4)));
    case 0xf1:
      return entry.SetInteger(from.Number(2), 16);
    case 0xf2:
      return entry.SetInteger(from.Number(3), 24);
    case 0xf3:
      return entry.SetInteger(from.Number(4), 32);
    case 0xf4:
      return entry.SetInteger(from.Number(8), 64);
    default:
      return false;
  }
}

// The bytes that Redis takes for the length of an entry, whose limits are one too low.
size_t BackLengthBytes(uint64_t length) {
  if (length <= 127) return 1;
  if (length < 16'383) return 2;
  if (length < 2'097'151) return 3;
  return length < 268'435'455 ? 4 : 5;
}

// Takes the length behind an entry; false if it is not this one.
bool TakeBackLength(Bytes& from, uint64_t length) {
  const size_t bytes = BackLengthBytes(length);
  for (size_t i = 0; i < bytes; ++i) {
    const uint64_t digit = length >> (7 * (bytes - 1 - i)) & 0x7f;
    if (from.Byte() != (i == 0 ? digit : digit | 0x80)) return false;
  }
  return true;
}

// Takes what a ziplist's entry has behind the length of the entry before.
bool TakeZiplistValue(Bytes& from, Entry& entry) {
  const auto byte = from.Byte();
  if (!byte) return false;
  const uint8_t first = *byte;
  switch (first >> 6) {
    case 0:
      return entry.SetString(from.Take(first));
    case 1: {
      const auto second = from.Byte();
      return second && entry.SetString(from.Take(uint64_t{first & 0x3fu} << 8 | *second));
    }
    case 2:
      return first == 0x80 && entry.SetString(from.String(from.BigEndian(4)));
    default:
      break;
  }
  switch (first) {
    case 0xc0:
      return entry.SetInteger(from.Number(2), 16);
    case 0xd0:
      return entry.SetInteger(from.Number(4), 32);
    case 0xe0:
      return entry.SetInteger(from.Number(8), 64);
    case 0xf0:
      return entry.SetInteger(from.Number(3), 24);
    case 0xfe:
      return entry.SetInteger(from.Number(1), 8);
    default:
      return first > 0xf0 && first < 0xfe && entry.SetInteger((first & 0x0fu) - 1, 8);
  }
}

// Takes the length of the entry before in a ziplist; false if it is not this one.
bool TakeLengthBefore(Bytes& from, uint64_t length) {
  constexpr uint8_t kLong = 254;
  const auto first = from.Byte();
  if (!first || *first > kLong) return false;
  return *first < kLong ? *first == length : from.Number(4) == length;
}

// Takes the length of a key or a value of a zipmap.
std::optional<uint64_t> TakeZipmapLength(Bytes& from) {
  constexpr uint8_t kLong = 254;
  const auto first = from.Byte();
  if (!first || *first > kLong) return std::nullopt;
  return *first < kLong ? std::optional<uint64_t>(*first) : from.Number(4);
}

}  // namespace

bool ReadListpack(std::string_view bytes, const OnPacked& on_entry) {
  Bytes from(bytes);
  if (from.Number(4) != bytes.size()) return false;
  const auto count = from.Number(2);
  if (!count) return false;
  uint64_t entries = 0;
  while (!from.IsAtEnd()) {
    const size_t before = from.left();
    Entry entry;
    if (!TakeListpackValue(from, entry) || !TakeBackLength(from, from.TakenSince(before))) {
      return false;
    }
    on_entry(entry.text());
    ++entries;
  }
  return *count == kCountUnknown || *count == entries;
}

bool ReadZiplist(std::string_view bytes, const OnPacked& on_entry) {
  Bytes from(bytes);
  if (from.Number(4) != bytes.size()) return false;
  const auto last = from.Number(4);
  const auto count = from.Number(2);
  if (!count) return false;
  uint64_t entries = 0;
  uint64_t length_before = 0;
  uint64_t at = bytes.size() - from.left();
  while (!from.IsAtEnd()) {
    const size_t before = from.left();
    at = bytes.size() - before;
    Entry entry;
    if (!TakeLengthBefore(from, length_before) || !TakeZiplistValue(from, entry)) return false;
    length_before = from.TakenSince(before);
    on_entry(entry.text());
    ++entries;
  }
  return *last == at && (*count == kCountUnknown || *count == entries);
}

bool ReadZipmap(std::string_view bytes, const OnPacked& on_entry) {
  constexpr uint8_t kZipmapCountUnknown = 254;
  Bytes from(bytes);
  const auto count = from.Byte();
  if (!count) return false;
  uint64_t entries = 0;
  while (!from.IsAtEnd()) {
    const auto key = from.String(TakeZipmapLength(from));
    const auto length = TakeZipmapLength(from);
    const auto unused = from.Byte();
    const auto value = from.String(length);
    if (!key || !unused || !value || !from.Take(*unused)) return false;
    on_entry(*key);
    on_entry(*value);
    ++entries;
  }
  return *count >= kZipmapCountUnknown || *count == entries;
}

bool ReadIntset(std::string_view bytes, const OnPacked& on_entry) {
  Bytes from(bytes);
  const auto each = from.Number(4);
  const auto count = from.Number(4);
  if (!count || (*each != 2 && *each != 4 && *each != 8)) return false;
  if (from.left() != *count * *each) return false;
  for (uint64_t i = 0; i < *count; ++i) {
    Entry entry;
    entry.SetInteger(from.Number(*each), 8 * *each);
    on_entry(entry.text());
  }
  return true;
}

}  // namespace skep::durable
