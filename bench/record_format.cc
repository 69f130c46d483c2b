#include "bench/record_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "base/random.h"
#include "bench/zipf.h"

namespace skep::bench {
namespace {

constexpr std::string_view kPrefix = "user";
constexpr size_t kDigitsMax = 19;  // decimal digits of a number up to 2^63
static_assert(kPrefix.size() + kDigitsMax == KeyFormat::kDecimalBytesMin);
static_assert(std::endian::native == std::endian::little);

void RenderDecimal(uint64_t hash, char* to, size_t bytes) {
  std::array<char, kDigitsMax + 1> digits;
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), hash).ptr;
  const auto count = static_cast<size_t>(end - digits.data());
  std::memset(to, '0', bytes);
  std::memcpy(to, kPrefix.data(), kPrefix.size());
  std::memcpy(to + bytes - count, digits.data(), count);
}

void RenderBinary(uint64_t hash, char* to, size_t bytes) {
  const uint64_t big_endian = __builtin_bswap64(hash);
  std::memset(to, '0', bytes);
  std::memcpy(to + bytes - sizeof(big_endian), &big_endian, sizeof(big_endian));
}

// Renders murmur3's finaliser, a bijection.
void RenderShort(uint64_t number, char* to, size_t bytes) {
  SKEP_DCHECK(number <= UINT32_MAX);
  auto word = static_cast<uint32_t>(number);
  word = (word ^ (word >> 16)) * 0x85ebca6b;
  word = (word ^ (word >> 13)) * 0xc2b2ae35;
  const uint32_t big_endian = __builtin_bswap32(word ^ (word >> 16));
  std::memset(to, '0', bytes);
  std::memcpy(to + bytes - sizeof(big_endian), &big_endian, sizeof(big_endian));
}

// The digits are ascending, so that keys are in the order of their hashes.
constexpr std::string_view kDigits64 =
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
static_assert(kDigits64.size() == 64);
constexpr size_t kDigits64Max = 11;  // digits of 64 bits

void RenderText(uint64_t hash, char* to, size_t bytes) {
  const size_t count = std::min(bytes, kDigits64Max);
  std::memset(to, '0', bytes - count);
  for (char* at = to + bytes - count; at != to + bytes; ++at, hash <<= 6) {
    *at = kDigits64[hash >> 58];
  }
}

// Returns splitmix64's finaliser, a bijection.
uint64_t Mix(uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// The first eight bytes alone distinguish numbers: they are a bijection of the number.
void RenderRandom(uint64_t number, char* to, size_t bytes) {
  uint64_t word = number;
  for (size_t at = 0; at < bytes; at += sizeof(word)) {
    word = Mix(word + 0x9e3779b97f4a7c15);
    std::memcpy(to + at, &word, std::min(sizeof(word), bytes - at));
  }
}

// Returns a number below `limit`, a power of 10 with an even number of digits: a bijection of
// `number` modulo the limit.
uint64_t MixBelow(uint64_t limit, uint64_t number) {
  const auto half = static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(limit))));
  // Numbers that end with 1, 3, 7 or 9 have no divisor in common with a power of 10.
  constexpr uint64_t kFactors[] = {6180339887498949, 2718281828459047, 3141592653589793};
  uint64_t mixed = number % limit;
  for (const uint64_t factor : kFactors) {
    mixed = static_cast<uint64_t>(static_cast<unsigned __int128>(mixed) * factor % limit);
    mixed = mixed % half * half + mixed / half;
  }
  return mixed;
}

void RenderDecimal16(uint64_t number, char* to) {
  fmt::format_to(to, "{:016}", MixBelow(10'000'000'000'000'000, number));
}

void RenderHex(uint64_t number, char* to) { fmt::format_to(to, "{:016x}", Mix(number)); }

void RenderUser(uint64_t number, char* to) {
  constexpr std::string_view kFields[] = {"email", "phone", "place", "state", "title"};
  constexpr uint64_t kCount = std::size(kFields);
  fmt::format_to(to, "user:{:010}:{}", MixBelow(10'000'000'000, number / kCount),
                 kFields[number % kCount]);
}

// The first twelve digits and the last four are a bijection of the number.
void RenderUuid(uint64_t number, char* to) {
  const uint64_t word = Mix(number);
  const uint64_t rest = Mix(word);
  fmt::format_to(to, "{:08x}-{:04x}-4{:03x}-{:04x}-{:08x}{:04x}", word >> 32, word >> 16 & 0xffff,
                 rest >> 52, 0x8000 | (rest >> 32 & 0x3fff), rest & 0xffffffff, word & 0xffff);
}

void RenderUrl(uint64_t number, char* to) {
  const uint64_t word = Mix(number);
  uint64_t shop = word % 500;  // some shops have many items
  shop = shop * shop % 331;
  const auto letter = [&](uint64_t part) { return static_cast<char>('a' + part % 26); };
  fmt::format_to(to, "https://shop.example/{}{}{}/item/{:016x}", letter(shop / 26), letter(shop),
                 letter(shop * 7), word);
}

}  // namespace

std::string_view NameOf(KeyKind kind) {
  constexpr std::string_view kNames[] = {"binary", "decimal", "hex", "user", "uuid", "url"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<KeyKind> KeyKindNamed(std::string_view name) {
  for (const KeyKind kind : kKeyKinds) {
    if (NameOf(kind) == name) return kind;
  }
  return std::nullopt;
}

KeyFormat KeyFormat::Of(KeyKind kind, size_t bytes) {
  switch (kind) {
    case KeyKind::kBinary:
      return Random(bytes);
    case KeyKind::kDecimal:
      return KeyFormat(16, Kind::kDecimal);
    case KeyKind::kHex:
      return KeyFormat(16, Kind::kHex);
    case KeyKind::kUser:
      return KeyFormat(21, Kind::kUser);
    case KeyKind::kUuid:
      return KeyFormat(36, Kind::kUuid);
    case KeyKind::kUrl:
      return KeyFormat(46, Kind::kUrl);
  }
  return Random(bytes);
}

void KeyFormat::Render(uint64_t number, char* to) const {
  switch (kind_) {
    case Kind::kDecimal:
      return RenderDecimal16(number, to);
    case Kind::kHex:
      return RenderHex(number, to);
    case Kind::kUser:
      return RenderUser(number, to);
    case Kind::kUuid:
      return RenderUuid(number, to);
    case Kind::kUrl:
      return RenderUrl(number, to);
    case Kind::kFile: {
      const std::string_view key = file_->at(number);
      const auto bytes = static_cast<FileKeyBytes>(key.size());
      std::memcpy(to, &bytes, sizeof(bytes));
      std::memcpy(to + sizeof(bytes), key.data(), key.size());
      return;
    }
    default:
      break;
  }
  SKEP_DCHECK(bytes_ >= (kind_ == Kind::kText ? kBytesMin : kShortBytesMin));
  if (bytes_ < kBytesMin) return RenderShort(number, to, bytes_);
  if (kind_ == Kind::kRandom || kind_ == Kind::kMixed) return RenderRandom(number, to, bytes_);
  const uint64_t hash = ScrambleFnv(number);
  if (bytes_ >= kDecimalBytesMin) {
    RenderDecimal(hash, to, bytes_);
  } else if (kind_ == Kind::kText) {
    RenderText(hash, to, bytes_);
  } else {
    RenderBinary(hash, to, bytes_);
  }
}

ValuePool::ValuePool(size_t value_bytes, uint64_t seed) : value_bytes_(value_bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  SeededRandom random(seed);
  text_.resize(kWindows + value_bytes);
  std::ranges::generate(text_, [&] { return kAlphabet[random.Below(kAlphabet.size())]; });
}

}  // namespace skep::bench
