#include "server/kscan_token.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/varint.h"

namespace skep {
namespace {

constexpr char kForm = 0x29;
constexpr size_t kTagBytes = 8;

enum Flag : uint8_t { kDescending = 1, kKeysOnly = 2, kWithDeadlines = 4, kUnbounded = 8 };
constexpr uint8_t kFlags = 15;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr uint8_t kNoDigit = 64;
constexpr std::array<uint8_t, 256> kDigitValues = [] {
  std::array<uint8_t, 256> values;
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

std::string Base64Of(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + 4);
  uint32_t bits = 0;
  unsigned count = 0;  // number of bits
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) text.push_back(kDigits[bits >> (count - 6) & 63]);
  }
  if (count > 0) text.push_back(kDigits[bits << (6 - count) & 63]);
  return text;
}

// Nullopt if a character is no digit, or if the text is not the one that Base64Of writes.
std::optional<std::string> BytesOfBase64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  unsigned count = 0;
  for (const char digit : text) {
    const uint8_t value = kDigitValues[static_cast<uint8_t>(digit)];
    if (value == kNoDigit) return std::nullopt;
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  const bool is_whole = count < 6 && (bits & ((1u << count) - 1)) == 0;
  return is_whole ? std::optional(std::move(bytes)) : std::nullopt;
}

void AppendNumber(std::string& to, uint64_t number) {
  static_assert(std::endian::native == std::endian::little);
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

bool TakeNumber(std::string_view& from, uint64_t* number) {
  if (from.size() < sizeof(*number)) return false;
  std::memcpy(number, from.data(), sizeof(*number));
  from.remove_prefix(sizeof(*number));
  return true;
}

uint8_t FlagsOf(const KeyScan& scan) {
  return static_cast<uint8_t>(
      (scan.options.reverse ? kDescending : 0) | (scan.options.keys_only ? kKeysOnly : 0) |
      (scan.with_deadlines ? kWithDeadlines : 0) | (scan.unbounded ? kUnbounded : 0));
}

// A key is not below the longer bound if and only if it is not below the cut one.
void AppendBound(std::string& to, std::string_view bound) {
  if (bound.size() <= kScanBoundBytesMax) return AppendBytes(to, bound);
  std::string cut(bound.substr(0, kScanBoundBytesMax - 1));
  cut.push_back('\0');
  AppendBytes(to, cut);
}

bool TakeBound(std::string_view& from, std::string* bound) {
  std::string_view bytes;
  if (!TakeBytes(from, &bytes)) return false;
  *bound = bytes;
  return true;
}

std::optional<KeyScan> ReadFields(std::string_view bytes) {
  KeyScan scan;
  bytes.remove_prefix(1);
  if (!TakeNumber(bytes, &scan.number) || bytes.empty()) return std::nullopt;
  const auto flags = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  uint64_t keyspace = 0;
  uint64_t limit = 0;
  if ((flags & ~kFlags) != 0 || !TakeVarint(bytes, &keyspace) ||
      !TakeVarint(bytes, &scan.version) || !TakeVarint(bytes, &scan.now_ms) ||
      !TakeVarint(bytes, &limit) || !TakeBound(bytes, &scan.lo)) {
    return std::nullopt;
  }
  scan.unbounded = (flags & kUnbounded) != 0;
  if (!scan.unbounded && !TakeBound(bytes, &scan.hi)) return std::nullopt;
  scan.keyspace = static_cast<uint32_t>(keyspace);
  scan.options = {.limit = static_cast<uint32_t>(limit),
                  .reverse = (flags & kDescending) != 0,
                  .keys_only = (flags & kKeysOnly) != 0};
  scan.with_deadlines = (flags & kWithDeadlines) != 0;
  return bytes.empty() ? std::optional(std::move(scan)) : std::nullopt;
}

}  // namespace

std::string KscanTokenOf(const KeyScan& scan, const SipKey& secret) {
  std::string bytes(1, kForm);
  AppendNumber(bytes, scan.number);
  bytes.push_back(static_cast<char>(FlagsOf(scan)));
  for (const uint64_t number :
       {uint64_t{scan.keyspace}, scan.version, scan.now_ms, uint64_t{scan.options.limit}}) {
    AppendVarint(bytes, number);
  }
  AppendBound(bytes, scan.lo);
  if (!scan.unbounded) AppendBound(bytes, scan.hi);
  AppendNumber(bytes, SipHash(secret, bytes));
  return Base64Of(bytes);
}

std::optional<KeyScan> ReadKscanToken(std::string_view token, const SipKey& secret) {
  if (token.size() > kKscanTokenBytesMax) return std::nullopt;
  const auto bytes = BytesOfBase64(token);
  if (!bytes || bytes->size() <= kTagBytes || bytes->front() != kForm) return std::nullopt;
  std::string_view tag = *bytes;
  const std::string_view signed_bytes = tag.substr(0, tag.size() - kTagBytes);
  tag.remove_prefix(signed_bytes.size());
  uint64_t told = 0;
  TakeNumber(tag, &told);
  if (told != SipHash(secret, signed_bytes)) return std::nullopt;
  return ReadFields(signed_bytes);
}

}  // namespace skep
