#include "base/siphash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace skep {
namespace {

constexpr SipKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

// Goal: the function is the paper's. Method: the example of its appendix A.
TEST(SipHash, ThePapersExample) {
  std::string bytes;
  for (char byte = 0; byte < 15; ++byte) bytes.push_back(byte);
  EXPECT_EQ(SipHash(kKey, bytes), 0xa129ca6149be45e5);
}

// Goal: every bit of the key and of the bytes changes the tag, and so does the length.
// Method: each is changed alone, for all lengths around that of a word.
TEST(SipHash, EveryBitCounts) {
  for (size_t size = 0; size < 20; ++size) {
    std::string bytes(size, 'x');
    std::set<uint64_t> seen = {SipHash(kKey, bytes), SipHash(kKey, bytes + '\0')};
    size_t tags = 2;
    for (size_t bit = 0; bit < 8 * size; ++bit, ++tags) {
      std::string other = bytes;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
      seen.insert(SipHash(kKey, other));
    }
    for (size_t bit = 0; bit < 128; ++bit, ++tags) {
      SipKey other = kKey;
      other[bit / 64] ^= uint64_t{1} << (bit % 64);
      seen.insert(SipHash(other, bytes));
    }
    EXPECT_EQ(seen.size(), tags);
  }
}

}  // namespace
}  // namespace skep
