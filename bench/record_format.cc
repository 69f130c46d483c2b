#include "bench/record_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

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

}  // namespace

void KeyFormat::Render(uint64_t number, char* to) const {
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
