#include "rma/message_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "rma/testing/string_stream.h"

namespace skep::rma {
namespace {

constexpr MessageLimits kLimits = {
    .hello_bytes_max = 100, .call_bytes_max = 200'000, .post_bytes_max = 2'000'000};

struct Kept {
  MessageKind kind;
  Code code;
  uint64_t token;
  std::string body;
  friend bool operator==(const Kept&, const Kept&) = default;
};

Kept Keep(const Message& m) { return {m.kind, m.code, m.token, std::string(m.body)}; }

Kept RandomMessage(Random& random) {
  constexpr MessageKind kKinds[] = {MessageKind::kHello, MessageKind::kCall, MessageKind::kReply,
                                    MessageKind::kPost, MessageKind::kPosted};
  Kept message = {.kind = kKinds[random.Below(5)], .code = Code::kOk, .token = random.Below(1000)};
  if (message.kind == MessageKind::kHello) {
    message.body.assign(random.Below(101), 'h');
  } else if (message.kind == MessageKind::kReply && random.Chance(1, 3)) {
    message.code = Code::kTooLarge;
  } else if (random.Chance(1, 20)) {
    message.body.assign(random.Below(200'001), 'l');
  } else {
    message.body.assign(random.Below(300), 's');
  }
  return message;
}

// Goal: messages come out as they went in, in their order, however the stream cuts them.
TEST(MessageStream, ComesOutAsItWentIn) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  StringStream pipe;
  MessageStream out(pipe);
  MessageStream in(pipe);
  in.set_limits(kLimits);
  std::vector<Kept> sent;
  size_t received = 0;
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t i = random.Below(4); i > 0; --i) {
      sent.push_back(RandomMessage(random));
      const Kept& m = sent.back();
      out.Add({.kind = m.kind, .code = m.code, .token = m.token, .body = m.body});
    }
    pipe.take_max = random.Chance(1, 10) ? 0 : random.Below(20'000);
    ASSERT_TRUE(out.Send().ok());
    pipe.give_max = 1 + random.Below(random.Chance(1, 3) ? 10 : 100'000);
    ASSERT_TRUE(*in.Receive());
    for (auto next = in.Next(); *next; next = in.Next()) {
      ASSERT_LT(received, sent.size());
      ASSERT_EQ(Keep(**next), sent[received]) << received;
      ++received;
    }
  }
  pipe.take_max = pipe.give_max = SIZE_MAX;
  while (received < sent.size()) {
    ASSERT_TRUE(out.Send().ok());
    ASSERT_TRUE(*in.Receive());
    for (auto next = in.Next(); *next; next = in.Next()) {
      ASSERT_EQ(Keep(**next), sent[received++]);
    }
  }
  EXPECT_EQ(out.unsent_bytes(), 0u);
}

// Goal: what is added in one turn is one write, and what has come is one read.
TEST(MessageStream, OneWriteAndOneRead) {
  StringStream pipe;
  MessageStream out(pipe);
  MessageStream in(pipe);
  in.set_limits(kLimits);
  for (uint64_t i = 0; i < 100; ++i) out.Add({.kind = MessageKind::kCall, .token = i});
  EXPECT_EQ(out.unsent_bytes(), 100 * MessageStream::kHeaderBytes);
  ASSERT_TRUE(out.Send().ok());
  ASSERT_TRUE(out.Send().ok());
  EXPECT_EQ(pipe.writes, 1u);
  ASSERT_TRUE(*in.Receive());
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ((**in.Next()).token, i);
  EXPECT_EQ(pipe.reads, 1u);
}

// Goal: the header alone is enough to refuse a message; the limits are exact.
TEST(MessageStream, RefusesWhatIsNoMessage) {
  const auto next = [](std::string bytes) {
    StringStream pipe;
    pipe.bytes = std::move(bytes);
    MessageStream in(pipe);
    in.set_limits(kLimits);
    EXPECT_TRUE(in.Receive().has_value());
    const auto message = in.Next();
    if (!message) {
      EXPECT_EQ(message.error().code(), Code::kCorrupt);
    }
    return !message ? "junk" : *message ? "message" : "more";
  };
  const auto header = [](uint32_t bytes, uint8_t kind, uint8_t code = 0, uint16_t zero = 0) {
    std::string text(16, '\0');
    std::copy_n(reinterpret_cast<const char*>(&bytes), 4, text.begin());
    text[4] = static_cast<char>(kind);
    text[5] = static_cast<char>(code);
    std::copy_n(reinterpret_cast<const char*>(&zero), 2, text.begin() + 6);
    return text;
  };
  EXPECT_STREQ(next(""), "more");
  EXPECT_STREQ(next(header(0, 3).substr(0, 15)), "more");
  EXPECT_STREQ(next(header(0, 3)), "message");
  EXPECT_STREQ(next(header(1, 3)), "more");
  for (const uint8_t kind : {uint8_t{0}, uint8_t{7}, uint8_t{255}})
    EXPECT_STREQ(next(header(0, kind)), "junk");
  EXPECT_STREQ(next(header(0, 3, 0, 1)), "junk");
  EXPECT_STREQ(next(header(0, 3, 1)), "junk") << "only a reply has a code";
  EXPECT_STREQ(next(header(0, 4, 3)), "message");
  EXPECT_STREQ(next(header(1, 4, 3) + "x"), "junk") << "a code has no body";
  EXPECT_STREQ(next(header(0, 4, 10)), "junk") << "there is no such code";
  EXPECT_STREQ(next(header(100, 1)), "more");
  EXPECT_STREQ(next(header(101, 1)), "junk");
  EXPECT_STREQ(next(header(1, 2)), "junk") << "a refusal has no body";
  EXPECT_STREQ(next(header(200'000, 3)), "more");
  EXPECT_STREQ(next(header(200'001, 3)), "junk");
  EXPECT_STREQ(next(header(200'001, 4)), "junk");
  EXPECT_STREQ(next(header(2'000'000, 5)), "more");
  EXPECT_STREQ(next(header(2'000'001, 6)), "junk");
  EXPECT_STREQ(next(header(~uint32_t{0}, 5)), "junk");
}

// Goal: errors of the stream and its end are told.
TEST(MessageStream, TellsOfTheStreamsEnd) {
  StringStream pipe;
  MessageStream messages(pipe);
  EXPECT_TRUE(*messages.Receive()) << "nothing has come";
  pipe.error = ECONNRESET;
  EXPECT_EQ(messages.Receive().error(), Status(Code::kIo, "", ECONNRESET));
  messages.Add({.kind = MessageKind::kCall});
  EXPECT_EQ(messages.Send(), Status(Code::kIo, "", ECONNRESET));
  pipe.error = 0;
  pipe.is_ended = true;
  EXPECT_FALSE(*messages.Receive());
}

}  // namespace
}  // namespace skep::rma
