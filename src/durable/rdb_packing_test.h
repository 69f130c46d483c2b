// rdb_packing_test.h: packs strings as Redis does (rdb_packed.h), for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/decimal.h"

namespace skep::durable {

using PackedEntries = std::vector<std::string>;

inline std::string LittleEndian(uint64_t number, size_t bytes) {
  return {reinterpret_cast<const char*>(&number), bytes};
}
inline std::string BigEndian(uint64_t number, size_t bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(number >> 8 * bytes);
  return text;
}
inline std::string ByteText(uint64_t byte) { return LittleEndian(byte, 1); }
inline bool Fits(int64_t number, int bits) {
  return number >= -(int64_t{1} << (bits - 1)) && number < int64_t{1} << (bits - 1);
}

// An entry of a listpack, integers in the fewest bytes.
inline std::string ListpackEntry(std::string_view text) {
  std::string entry;
  if (const auto parsed = ParseInt64(text)) {
    const int64_t number = *parsed;
    const auto bits = static_cast<uint64_t>(number);
    if (number >= 0 && number < 128) {
      entry = ByteText(bits);
    } else if (Fits(number, 13)) {
      entry = BigEndian((bits & 0x1fff) | 0xc000, 2);
    } else if (Fits(number, 16)) {
      entry = "\xf1" + LittleEndian(bits, 2);
    } else if (Fits(number, 24)) {
      entry = "\xf2" + LittleEndian(bits, 3);
    } else if (Fits(number, 32)) {
      entry = "\xf3" + LittleEndian(bits, 4);
    } else {
      entry = "\xf4" + LittleEndian(bits, 8);
    }
  } else {
    const size_t bytes = text.size();
    entry = bytes < 64     ? ByteText(0x80 | bytes)
            : bytes < 4096 ? BigEndian(0xe000 | bytes, 2)
                           : "\xf0" + LittleEndian(bytes, 4);
    entry += text;
  }
  // The length of all that, seven bits a byte; the first byte has the highest, and no flag. Redis's
  // limits of two, three and four bytes are one too low.
  const uint64_t length = entry.size();
  size_t bytes = 1;
  while (bytes < 5 && length >= (uint64_t{1} << 7 * bytes) - (bytes > 1 ? 1 : 0)) ++bytes;
  for (size_t i = bytes; i-- > 0;) {
    entry += static_cast<char>((length >> 7 * i & 0x7f) | (i + 1 < bytes ? 0x80 : 0));
  }
  return entry;
}

inline std::string Listpack(const PackedEntries& entries) {
  std::string body;
  for (const std::string& entry : entries) body += ListpackEntry(entry);
  return LittleEndian(body.size() + 7, 4) + LittleEndian(entries.size(), 2) + body + "\xff";
}

// An entry of a ziplist without the length of the entry before it.
inline std::string ZiplistEntry(std::string_view text) {
  if (const auto parsed = ParseInt64(text)) {
    const int64_t number = *parsed;
    const auto bits = static_cast<uint64_t>(number);
    if (number >= 0 && number <= 12) return ByteText(0xf1 + bits);
    if (Fits(number, 8)) return "\xfe" + LittleEndian(bits, 1);
    if (Fits(number, 16)) return "\xc0" + LittleEndian(bits, 2);
    if (Fits(number, 24)) return "\xf0" + LittleEndian(bits, 3);
    if (Fits(number, 32)) return "\xd0" + LittleEndian(bits, 4);
    return "\xe0" + LittleEndian(bits, 8);
  }
  const size_t bytes = text.size();
  const std::string head = bytes < 64       ? ByteText(bytes)
                           : bytes < 16'384 ? BigEndian(0x4000 | bytes, 2)
                                            : "\x80" + BigEndian(bytes, 4);
  return head + std::string(text);
}

// `long_lengths`: every length of an entry before takes five bytes, as Redis leaves it where an
// entry has become shorter.
inline std::string Ziplist(const PackedEntries& entries, bool long_lengths = false) {
  constexpr size_t kHeadBytes = 10;
  std::string body;
  size_t last = 0;
  for (const std::string& entry : entries) {
    const size_t before = body.size() - last;
    last = body.size();
    body += before < 254 && !long_lengths ? ByteText(before) : "\xfe" + LittleEndian(before, 4);
    body += ZiplistEntry(entry);
  }
  return LittleEndian(body.size() + kHeadBytes + 1, 4) + LittleEndian(last + kHeadBytes, 4) +
         LittleEndian(entries.size(), 2) + body + "\xff";
}

// Of keys and values in turns. Behind each value are so many unused bytes.
inline std::string Zipmap(const PackedEntries& entries, uint8_t unused = 0) {
  std::string map = ByteText(entries.size() / 2 < 254 ? entries.size() / 2 : 254);
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t bytes = entries[i].size();
    map += bytes < 254 ? ByteText(bytes) : "\xfe" + LittleEndian(bytes, 4);
    if (i % 2 == 1) map += ByteText(unused);
    map += entries[i];
    if (i % 2 == 1) map += std::string(unused, 'u');
  }
  return map + "\xff";
}

inline std::string Intset(const std::vector<int64_t>& numbers, size_t bytes) {
  std::string set = LittleEndian(bytes, 4) + LittleEndian(numbers.size(), 4);
  for (const int64_t number : numbers) set += LittleEndian(static_cast<uint64_t>(number), bytes);
  return set;
}

}  // namespace skep::durable
