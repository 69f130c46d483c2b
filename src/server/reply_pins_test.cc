// Tests the order of pinned values among the bytes of replies.
#include "server/reply_pins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skep {
namespace {

// A value that lies in pieces of some bytes.
class InPieces final : public PinnedValue {
 public:
  InPieces(std::string bytes, size_t piece_bytes)
      : bytes_(std::move(bytes)), piece_bytes_(piece_bytes) {}
  size_t size() const override { return bytes_.size(); }
  std::string_view From(size_t offset) const override {
    return std::string_view(bytes_).substr(offset, piece_bytes_ - offset % piece_bytes_);
  }

 private:
  const std::string bytes_;
  const size_t piece_bytes_;
};

// Goal: what is listed, sent and taken back is what one string of all replies would have.
// Method: random replies of own bytes and values, some of which are taken back, are sent in random
// amounts, beside such a string.
TEST(ReplyPins, AreSentInTheirOrder) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto below = [&](size_t bound) { return random() % bound; };
  char next = 'a';
  const auto some_bytes = [&](size_t size) {
    std::string bytes(size, ' ');
    for (char& byte : bytes) byte = next = next == 'z' ? 'a' : static_cast<char>(next + 1);
    return bytes;
  };
  ReplyPins pins;
  std::string own;       // what is not sent of the replies' own bytes
  uint64_t begin = 0;    // the position of own[0]
  std::string expected;  // all that is not sent
  for (int step = 0; step < 5000; ++step) {
    const std::string before = expected;
    const uint64_t reply_at = begin + own.size();
    for (size_t parts = below(3); parts > 0; --parts) {
      const std::string head = some_bytes(1 + below(3));
      own += head;
      expected += head;
      if (below(2) == 0) continue;
      const std::string value = some_bytes(1 + below(9));
      pins.Add(begin + own.size(), std::make_shared<InPieces>(value, 1 + below(4)));
      expected += value;
    }
    const std::string_view own_reply = std::string_view(own).substr(reply_at - begin);
    ASSERT_EQ(pins.Whole(own_reply, reply_at), expected.substr(before.size()));
    if (below(4) == 0) {  // the reply is taken back
      own.resize(reply_at - begin);
      pins.DropBehind(reply_at);
      expected = before;
    }
    ASSERT_EQ(pins.bytes(), expected.size() - own.size());
    const size_t bytes_max = below(12);
    std::vector<std::string_view> parts;
    pins.List(own, begin, bytes_max, parts);
    std::string listed;
    for (const std::string_view part : parts) {
      ASSERT_FALSE(part.empty());
      listed += part;
    }
    ASSERT_EQ(listed, expected.substr(0, bytes_max));
    const size_t sent = below(listed.size() + 1);
    const size_t sent_own = pins.TakeSent(begin, sent);
    ASSERT_LE(sent_own, own.size());
    own.erase(0, sent_own);
    begin += sent_own;
    expected.erase(0, sent);
    ASSERT_EQ(pins.HasAt(begin) || !own.empty(), !expected.empty());
  }
}

// Goal: bytes that wait for a gate do not leave, nor do the values behind them.
TEST(ReplyPins, StayBehindBytesThatWait) {
  ReplyPins pins;
  pins.Add(2, std::make_shared<InPieces>("first", 100));
  pins.Add(6, std::make_shared<InPieces>("second", 100));
  std::vector<std::string_view> parts;
  pins.List("$5\r\n", 0, 100, parts);  // of eight bytes, four may leave
  EXPECT_EQ(parts, (std::vector<std::string_view>{"$5", "first", "\r\n"}));
  EXPECT_EQ(pins.TakeSent(0, 9), 4u);
  EXPECT_FALSE(pins.HasAt(4));
  EXPECT_EQ(pins.bytes(), 6u);
}

}  // namespace
}  // namespace skep
