#include "server/kscan_token.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace skep {
namespace {

constexpr SipKey kSecret = {0x1234567890abcdef, 42};

KeyScan RandomScan(std::mt19937_64& rng) {
  const auto bytes = [&](size_t size_max) {
    std::string text(rng() % (size_max + 1), '\0');
    for (char& c : text) c = static_cast<char>(rng());
    return text;
  };
  KeyScan scan{.number = rng() >> (rng() % 64),
               .keyspace = static_cast<uint32_t>(rng() % 65536),
               .version = rng() >> (rng() % 64),
               .now_ms = rng() >> (rng() % 64),
               .lo = bytes(40),
               .hi = bytes(40),
               .unbounded = rng() % 2 == 0,
               .options = {.limit = static_cast<uint32_t>(rng()) >> (rng() % 32),
                           .reverse = rng() % 2 == 0,
                           .keys_only = rng() % 2 == 0},
               .with_deadlines = rng() % 2 == 0};
  if (scan.unbounded) scan.hi.clear();
  return scan;
}

void ExpectSame(const KeyScan& got, const KeyScan& wanted) {
  EXPECT_EQ(got.number, wanted.number);
  EXPECT_EQ(got.keyspace, wanted.keyspace);
  EXPECT_EQ(got.version, wanted.version);
  EXPECT_EQ(got.now_ms, wanted.now_ms);
  EXPECT_EQ(got.lo, wanted.lo);
  EXPECT_EQ(got.hi, wanted.hi);
  EXPECT_EQ(got.unbounded, wanted.unbounded);
  EXPECT_EQ(got.options.limit, wanted.options.limit);
  EXPECT_EQ(got.options.reverse, wanted.options.reverse);
  EXPECT_EQ(got.options.keys_only, wanted.options.keys_only);
  EXPECT_EQ(got.with_deadlines, wanted.with_deadlines);
}

// Goal: a token reads back as the scan it was made of, and needs no quotes anywhere.
TEST(KscanToken, SaysWhatItWasMadeOf) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 2000; ++i) {
    const KeyScan scan = RandomScan(rng);
    const std::string token = KscanTokenOf(scan, kSecret);
    EXPECT_EQ(token.front(), 'K');
    EXPECT_TRUE(std::ranges::all_of(token, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
             c == '-' || c == '_';
    })) << token;
    const auto read = ReadKscanToken(token, kSecret);
    ASSERT_TRUE(read.has_value());
    ExpectSame(*read, scan);
  }
}

// Goal: only a token that was made is accepted: not with another secret, not with a character
// changed, left out or added at any place, not any bytes.
TEST(KscanToken, AnythingElseIsRefused) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 50; ++i) {
    const std::string token = KscanTokenOf(RandomScan(rng), kSecret);
    EXPECT_FALSE(ReadKscanToken(token, {kSecret[0], kSecret[1] + 1}));
    EXPECT_FALSE(ReadKscanToken(token + 'A', kSecret));
    for (size_t at = 0; at < token.size(); ++at) {
      std::string other = token;
      do {
        other[at] = static_cast<char>(rng());
      } while (other[at] == token[at]);
      EXPECT_FALSE(ReadKscanToken(other, kSecret)) << at;
      EXPECT_FALSE(ReadKscanToken(token.substr(0, at), kSecret)) << at;
      EXPECT_FALSE(ReadKscanToken(std::string(token).erase(at, 1), kSecret)) << at;
    }
    std::string any(rng() % 100, '\0');
    for (char& c : any) c = static_cast<char>(rng());
    EXPECT_FALSE(ReadKscanToken(any, kSecret));
  }
}

// Goal: a token's length is bounded, and a bound that is cut means the same for every possible key.
// Method: keys around the cut, compared with the bound and with the one in the token.
TEST(KscanToken, LongBoundsAreCut) {
  constexpr size_t kKeyBytesMax = kScanBoundBytesMax - 1;
  for (const size_t size : {kKeyBytesMax, kKeyBytesMax + 1, kKeyBytesMax + 2, size_t{10} << 20}) {
    const std::string bound(size, 'm');
    const KeyScan scan{.lo = bound, .hi = bound, .options = {.limit = 7}};
    const std::string token = KscanTokenOf(scan, kSecret);
    EXPECT_LE(token.size(), kKscanTokenBytesMax);
    const auto read = ReadKscanToken(token, kSecret);
    ASSERT_TRUE(read.has_value());
    for (const size_t key_bytes : {size_t{0}, size_t{1}, kKeyBytesMax - 1, kKeyBytesMax}) {
      for (const char last : {'a', 'm', 'z', '\0'}) {
        std::string key(key_bytes, 'm');
        if (!key.empty()) key.back() = last;
        EXPECT_EQ(key < read->lo, key < bound) << size << ' ' << key_bytes << ' ' << last;
        EXPECT_EQ(key < read->hi, key < bound) << size << ' ' << key_bytes << ' ' << last;
      }
    }
  }
  EXPECT_FALSE(ReadKscanToken(std::string(kKscanTokenBytesMax + 1, 'K'), kSecret));
}

}  // namespace
}  // namespace skep
