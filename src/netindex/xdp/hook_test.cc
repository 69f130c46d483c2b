// Tests the program in the kernel: frame in, verdict and frame out. Needs root; else it is skipped,
// where the variable CI is set it fails.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "netindex/xdp/testing/loaded_hook.h"

namespace skep::xdp {
namespace {

class HookTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      if (std::getenv("CI") != nullptr) FAIL() << "needs root";
      GTEST_SKIP() << "needs root, to load a program";
    }
    ASSERT_EQ(hook_.Load(), "");
    hook_.map().TurnOn(2);
    ASSERT_TRUE(hook_.Fill("key", "value"));
  }
  // The frame of a question, with its head changed, and its checksums made right again.
  static std::string Changed(const std::function<void(FrameHead&)>& change) {
    std::string frame = FrameOf(Question("key"));
    FrameHead head = HeadOf(frame);
    head.ip.check = head.udp.check = 0;
    change(head);
    frame.replace(0, sizeof(head), BytesOf(head));
    head.ip.check = static_cast<uint16_t>(~IpSumOf(frame));
    if (head.udp.check == 0) head.udp.check = static_cast<uint16_t>(~UdpSumOf(frame));
    return frame.replace(0, sizeof(head), BytesOf(head));
  }

  LoadedHook hook_;
};

// Goal: an answer is a whole frame: back to where the question came from, with right lengths and
// checksums, for values of every length.
TEST_F(HookTest, AnswersWithAWholeFrame) {
  for (uint32_t bytes = 0; bytes <= XDP_VALUE_BYTES_MAX; ++bytes) {
    const std::string key(1 + bytes / 2, 'k');
    const std::string value(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_TRUE(hook_.Fill(key, value));
    const std::string question = FrameOf(Question(key));
    const auto [verdict, frame, ns] = hook_.Run(question);
    ASSERT_EQ(verdict, static_cast<uint32_t>(XDP_TX)) << bytes;
    ASSERT_EQ(frame.size(), sizeof(FrameHead) + XDP_FIXED_BYTES + bytes);
    EXPECT_EQ(IpSumOf(frame), 0xffff);
    EXPECT_EQ(UdpSumOf(frame), 0xffff);
    const FrameHead head = HeadOf(frame), asked = HeadOf(question);
    EXPECT_EQ(std::memcmp(head.ethernet.h_dest, asked.ethernet.h_source, ETH_ALEN), 0);
    EXPECT_EQ(std::memcmp(head.ethernet.h_source, asked.ethernet.h_dest, ETH_ALEN), 0);
    EXPECT_EQ(head.ip.saddr, kServer);
    EXPECT_EQ(head.ip.daddr, kClient);
    EXPECT_EQ(head.udp.source, htons(kPort));
    EXPECT_EQ(head.udp.dest, htons(5555));
    EXPECT_EQ(ntohs(head.udp.len), sizeof(udphdr) + XDP_FIXED_BYTES + bytes);
    EXPECT_EQ(ntohs(head.ip.tot_len), frame.size() - sizeof(ethhdr));
    XdpFixed expected{};
    std::memcpy(&expected, question.data() + sizeof(FrameHead), XDP_FIXED_BYTES);
    XdpAnswer(&expected, kInstance, bytes);
    EXPECT_EQ(frame.substr(sizeof(FrameHead)),
              std::string(BytesOf(expected).substr(0, XDP_FIXED_BYTES)) + value);
  }
}

// Goal: whatever is not for this server, or not whole, goes on to the system as it came.
TEST_F(HookTest, PassesTheRestOn) {
  struct Line {
    const char* what;
    std::string frame;
  };
  const std::vector<Line> lines = {
      {"a key without entry", FrameOf(Question("other"))},
      {"no packed message", FrameOf(std::string(60, 'x'))},
      {"another port", Changed([](auto& h) { h.udp.dest = htons(kPort + 1); })},
      {"another address", Changed([](auto& h) { h.ip.daddr = htonl(0x0a000003); })},
      {"no address", Changed([](auto& h) { h.ip.daddr = 0; })},
      {"an address that is not served", Changed([](auto& h) { h.ip.daddr = htonl(0x0a0000ff); })},
      {"a VLAN", Changed([](auto& h) { h.ethernet.h_proto = htons(ETH_P_8021Q); })},
      {"IPv6", Changed([](auto& h) { h.ethernet.h_proto = htons(ETH_P_IPV6); })},
      {"to many", Changed([](auto& h) { h.ethernet.h_dest[0] = 0x01; })},
      {"another version of IP", Changed([](auto& h) { h.ip.version = 5; })},
      {"options of IP", Changed([](auto& h) { h.ip.ihl = 6; })},
      {"TCP", Changed([](auto& h) { h.ip.protocol = IPPROTO_TCP; })},
      {"a first fragment", Changed([](auto& h) { h.ip.frag_off = htons(0x2000); })},
      {"a last fragment", Changed([](auto& h) { h.ip.frag_off = htons(0x0001); })},
      {"a length of IP", Changed([](auto& h) { h.ip.tot_len = htons(ntohs(h.ip.tot_len) - 1); })},
      {"a length of UDP", Changed([](auto& h) { h.udp.len = htons(ntohs(h.udp.len) - 1); })},
      {"a wrong checksum", Changed([](auto& h) { h.udp.check = 0x1234; })},
      {"cut off", FrameOf(Question("key")).substr(0, sizeof(FrameHead) + XDP_FIXED_BYTES + 2)},
      {"no payload", FrameOf("")}};
  for (const Line& line : lines) {
    const auto [verdict, frame, ns] = hook_.Run(line.frame);
    EXPECT_EQ(verdict, static_cast<uint32_t>(XDP_PASS)) << line.what;
    EXPECT_EQ(frame, line.frame) << line.what;
  }
}

// Goal: a server that does not listen yet gives no answers.
TEST_F(HookTest, IsOffAtFirst) {
  LoadedHook other;
  ASSERT_EQ(other.Load(), "");
  ASSERT_TRUE(other.Fill("key", "value"));
  EXPECT_EQ(other.Run(FrameOf(Question("key"))).verdict, static_cast<uint32_t>(XDP_PASS));
  other.map().TurnOn(2);
  EXPECT_EQ(other.Run(FrameOf(Question("key"))).verdict, static_cast<uint32_t>(XDP_TX));
}

// Goal: what differs without mattering is answered: a frame that was padded, a question without a
// checksum, and one whose sender has left it to the device.
TEST_F(HookTest, TakesWhatIsLegal) {
  const std::string question = FrameOf(Question("key"));
  const std::string padded = question + std::string(20, 'p');
  const auto expected = hook_.Run(question);
  ASSERT_EQ(expected.verdict, static_cast<uint32_t>(XDP_TX));
  EXPECT_EQ(hook_.Run(padded).frame, expected.frame);
  for (const bool is_partial : {false, true}) {
    std::string frame = question;
    FrameHead head = HeadOf(frame);
    head.udp.check = is_partial ? XdpFold(PseudoSumOf(head)) : 0;
    frame.replace(0, sizeof(head), BytesOf(head));
    EXPECT_EQ(hook_.Run(frame).frame, expected.frame) << is_partial;
  }
  const std::string unfragmented = Changed([](auto& h) { h.ip.frag_off = htons(0x4000); });
  EXPECT_EQ(hook_.Run(unfragmented).frame, expected.frame);
}

// Goal: a frame that was damaged on its way is never answered.
// Method: each bit behind IP's header is flipped, alone. (What protects the header itself is IP's
// checksum, which the sender's UDP checksum covers where it matters.)
TEST_F(HookTest, AnswersNoDamagedQuestion) {
  const std::string question = FrameOf(Question("key"));
  for (size_t at = sizeof(ethhdr) + sizeof(iphdr); at < question.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = question;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      EXPECT_EQ(hook_.Run(damaged).verdict, static_cast<uint32_t>(XDP_PASS)) << at << "." << bit;
    }
  }
}

// Goal: a write takes the answer away at once.
TEST_F(HookTest, SeesWritesAtOnce) {
  const std::string question = FrameOf(Question("key"));
  ASSERT_EQ(hook_.Run(question).verdict, static_cast<uint32_t>(XDP_TX));
  hook_.map().WillWrite(0, "key");
  EXPECT_EQ(hook_.Run(question).verdict, static_cast<uint32_t>(XDP_PASS));
  ASSERT_TRUE(hook_.Fill("key", "newer"));
  EXPECT_EQ(hook_.Run(question).frame.substr(84), "newer");
  hook_.map().WillWriteRange();
  EXPECT_EQ(hook_.Run(question).verdict, static_cast<uint32_t>(XDP_PASS));
  const HotMap::Statistics statistics = hook_.map().statistics();
  EXPECT_EQ(statistics.hits, 2u);
  EXPECT_EQ(statistics.misses, 2u);
}

}  // namespace
}  // namespace skep::xdp
