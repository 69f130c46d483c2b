// Tests what the hook makes of a datagram, byte by byte.
#include "netindex/xdp/xdp_answer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

namespace skep::xdp {
namespace {

constexpr uint64_t kInstance = 0x1122334455667788;

// A GET of one key, as docs/packed-protocol.md has it.
std::string Question(std::string_view key, uint64_t instance = 0) {
  std::string bytes("\xd5SKP\x01\0\0\0", 8);
  bytes.append("client##", 8);
  bytes.append(reinterpret_cast<const char*>(&instance), 8);
  const char header[] = {
      static_cast<char>(key.size() + 2), 0, 0, 0, 7, 0, 0, 0, 1, 0, 3, 0, 1, 0, 0, 0, 0,
      static_cast<char>(key.size())};
  return bytes.append(header, sizeof(header)).append(key);
}

XdpFixed FixedOf(std::string_view datagram) {
  XdpFixed fixed{};
  std::memcpy(&fixed, datagram.data(), XDP_FIXED_BYTES);
  return fixed;
}

bool Understands(const std::string& datagram) {
  const XdpFixed fixed = FixedOf(datagram);
  return XdpUnderstands(&fixed, static_cast<uint32_t>(datagram.size()), kInstance) != 0;
}

// Goal: a GET of any length of key is understood, to any server and to this one.
TEST(XdpAnswer, UnderstandsAGet) {
  for (size_t bytes = 1; bytes <= XDP_KEY_BYTES_MAX; ++bytes) {
    EXPECT_TRUE(Understands(Question(std::string(bytes, 'k')))) << bytes;
  }
  EXPECT_TRUE(Understands(Question("key", kInstance)));
  EXPECT_FALSE(Understands(Question("key", kInstance + 1)));
}

// Goal: whatever asks for anything else is the server's.
// Method: each byte of a question is changed, in each of its bits; only those of the limit of the
// answer, the client, the id, the wish for deadlines, the keyspace and the key may make no
// difference.
TEST(XdpAnswer, LeavesAllElseToTheServer) {
  const std::string question = Question("key", kInstance);
  const auto is_free = [](size_t at, int bit) {
    return (at >= 6 && at < 16) || (at >= 28 && at < 32) || (at == 33 && bit == 1) || at == 34 ||
           at == 35 || at >= 42;
  };
  for (size_t at = 0; at < question.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = question;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      EXPECT_EQ(Understands(changed), is_free(at, bit)) << "byte " << at << ", bit " << bit;
    }
  }
  EXPECT_FALSE(Understands(question + "x"));
  EXPECT_FALSE(Understands(question.substr(0, question.size() - 1)));
  EXPECT_FALSE(Understands(Question("")));
  EXPECT_FALSE(Understands(Question(std::string(XDP_KEY_BYTES_MAX + 1, 'k'))));
}

// Goal: the answer has the bytes of the protocol's page.
TEST(XdpAnswer, AnswersAsThePageSays) {
  XdpFixed fixed = FixedOf(Question("key"));
  fixed.flags = XDP_WANT_DEADLINES;
  XdpAnswer(&fixed, kInstance, 3);
  std::string expected("\xd5SKP\x01\0\0\0", 8);
  expected.append("client##", 8);
  expected.append(reinterpret_cast<const char*>(&kInstance), 8);
  expected.append("\x05\0\0\0\x07\0\0\0\x01\0\x03\0\x01\0\0\0\x28\x03", 18);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(&fixed), XDP_FIXED_BYTES), expected);
}

// Goal: the sum is that of RFC 1071.
// Method: its example, 00 01 f2 03 f4 f5 f6 f7, whose sum is ddf2; and one with every carry.
TEST(XdpAnswer, SumsInOnesComplement) {
  uint64_t words[2] = {0, 0};
  std::memcpy(words, "\x00\x01\xf2\x03\xf4\xf5\xf6\xf7", 8);
  const uint16_t sum = XdpFold(XdpSum(words, 2));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(&sum), 2), "\xdd\xf2");
  words[0] = words[1] = UINT64_MAX;
  EXPECT_EQ(XdpFold(XdpSum(words, 2)), 0xffff);
  EXPECT_EQ(XdpFold(UINT64_MAX), 0xffff);
}

}  // namespace
}  // namespace skep::xdp
