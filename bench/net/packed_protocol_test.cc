#include "bench/net/packed_protocol.h"

#include <gtest/gtest.h>

#include "bench/net/protocol_test_reader.h"
#include "client/fat_root.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep::bench {
namespace {

using namespace std::string_view_literals;

std::string Hello() {
  std::string bytes;
  packed::Append(bytes, packed::ServerHello{});
  return bytes;
}

std::string Answer(uint32_t id, uint32_t count, std::string_view payload) {
  std::string bytes;
  const size_t begin = packed::BeginMessage(bytes, {.id = id, .count = count});
  bytes.append(payload);
  packed::EndMessage(bytes, begin);
  return bytes;
}

// Goal: a hello precedes the first request; a request is one message.
TEST(PackedProtocol, EncodesMessages) {
  OpStream stream{KeyFormat::Text(8)};
  for (uint64_t number : {1, 2, 3}) stream.Add(OpKind::kRead, number);
  const ValuePool values(3, 1);
  const std::string out = Encoded("packed", kTestFormat, kSet2, stream, values);
  ASSERT_TRUE(packed::IsHello(out));
  const std::string_view message = std::string_view(out).substr(sizeof(packed::ClientHello));
  EXPECT_EQ(packed::Read<packed::Header>(message).count, 2u);
  Batch decoded;
  ASSERT_TRUE(
      packed::TakeRequests(message.substr(sizeof(packed::Header)), 2, kNoLimit, decoded).ok());
  EXPECT_EQ(decoded.requests()[1].op, Op::kPut);
  EXPECT_EQ(decoded.requests()[1].key, stream.at(1).key);
  EXPECT_EQ(decoded.requests()[1].value, values.at(1));
}

// Goal: answers are read however they are split and in whatever order they come, and counted.
TEST(PackedProtocol, ReadsAnswers) {
  std::string failure;
  packed::AppendFailure(failure, {.id = 3}, {Code::kIo, "the disk is full", 28});
  const std::string answers = Hello() + Answer(2, 2, "\x00\x20"sv) +
                              Answer(1, 3,
                                     "\x28\x03"
                                     "abc\x01\x38xyz"sv) +
                              failure +
                              Answer(4, 1,
                                     "\x28\x01"
                                     "a"sv);
  const NetAnswerCase what{
      "all kinds",
      {kGet3, kSet2, kGet, kGet},
      answers,
      {.hits = 2, .misses = 1, .stored = 2, .errors = 2, .first_error = "the disk is full"}};
  EXPECT_EQ(CheckAllSplits("packed", kTestFormat, what), "");
}

std::string Page(std::string_view payload) {
  std::string bytes;
  const size_t begin = packed::BeginMessage(bytes, {.kind = packed::Kind::kTop});
  bytes.append(payload);
  packed::EndMessage(bytes, begin);
  return bytes;
}

// Goal: with a fat root a page is asked for before a message and its answer taken before the
// message's, however they are split; then requests have hints, and stale ones are noted.
TEST(PackedProtocol, SendsTheHintsOfAFatRoot) {
  client::FatRoot root;
  NetFormat format = kTestFormat;
  format.fat_root = &root;
  PackedProtocol protocol(format);
  OpStream stream{KeyFormat::Text(8)};
  stream.Add(OpKind::kRead, 1);
  const ValuePool values(3, 1);
  const auto encoded = [&] {
    std::string out;
    protocol.Encode(kGet, stream, 0, values, out);
    return out;
  };
  const auto read = [&](const std::string& bytes) {
    std::vector<size_t> ends;
    for (size_t end = 1; end < bytes.size(); ++end) ends.push_back(end);
    const NetReading reading = ReadInPieces(protocol, {kGet}, bytes, ends);
    EXPECT_EQ(reading.answers, 1u);
    EXPECT_EQ(reading.left, 0u);
  };
  std::string hello;
  packed::Append(hello, packed::ServerHello{.features = packed::kHasTop});
  encoded();
  read(hello + Answer(1, 1, "\x01"));
  const std::string asks = encoded();
  EXPECT_EQ(packed::Read<packed::Header>(asks).kind, packed::Kind::kTop);
  read(Page("\x01\x00\x05\0\0\0\0\0\x01\0\x00"sv) + Answer(3, 1, "\x01"));
  EXPECT_EQ(root.Statistics().links, 1u);
  const std::string hinted = encoded();
  Batch decoded;
  ASSERT_TRUE(packed::TakeRequests(std::string_view(hinted).substr(sizeof(packed::Header)), 1,
                                   kNoLimit, decoded)
                  .ok());
  EXPECT_EQ(decoded.requests()[0].hint.bits, uint64_t{1} << 48 | 5);
  EXPECT_EQ(root.Statistics().stale, 0u);
  read(Answer(4, 1, "\x81\x20\x06\0\0\0\0\0\x01\0"sv));
  EXPECT_EQ(root.Statistics().stale, 1u);
}

// Goal: bytes that cannot answer the request end the reading.
TEST(PackedProtocol, KnowsWhatIsNoAnswer) {
  const auto corrupt = [](const NetAsked& asked, const std::string& bytes) {
    return IsCorrupt("packed", kTestFormat, asked, bytes);
  };
  EXPECT_TRUE(corrupt(kGet, "-ERR unknown command, and more than forty bytes of it\r\n"));
  std::string refused;
  packed::Append(refused, packed::ServerHello{.version = 0, .why = packed::kHelloVersion});
  EXPECT_TRUE(corrupt(kGet, refused));
  EXPECT_TRUE(corrupt(kGet, Hello() + Answer(1, 2, "\x01\x01")));
  EXPECT_TRUE(corrupt(kGet, Hello() + Answer(1, 1, "\x07")));
  EXPECT_TRUE(corrupt(kGet, Hello() + Answer(1, 1, "\x01\x01")));
  EXPECT_FALSE(corrupt(kGet, Hello() + Answer(1, 1, "\x01")));
  EXPECT_TRUE(corrupt(kGet, Hello() + Answer(2, 1, "\x01")));
}

}  // namespace
}  // namespace skep::bench
