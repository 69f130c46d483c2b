#include "wire/resp_reply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "wire/resp_pieces.h"
#include "wire/resp_writer.h"

namespace skep {
namespace {

using namespace std::string_literals;
using Event = RespReplyParser::Event;
using Type = RespReply::Type;

RespReply Text(Type type, std::string text) { return {.type = type, .text = std::move(text)}; }
RespReply Integer(int64_t value) { return {.type = Type::kInteger, .integer = value}; }
RespReply Many(Type type, std::vector<RespReply> elements) {
  return {.type = type, .elements = std::move(elements)};
}

void Write(RespWriter& writer, const RespReply& reply) {
  switch (reply.type) {
    case Type::kNull:
      return writer.Null();
    case Type::kSimple:
      return writer.SimpleString(reply.text);
    case Type::kError:
      return writer.Error(reply.text);
    case Type::kInteger:
      return writer.Integer(reply.integer);
    case Type::kBulk:
      return writer.Bulk(reply.text);
    case Type::kBoolean:
      return writer.Boolean(reply.integer != 0);
    case Type::kDouble:
      return writer.Double(reply.number);
    case Type::kVerbatim:
      return writer.Verbatim({reply.format.data(), reply.format.size()}, reply.text);
    case Type::kBigNumber:
      return writer.BigNumber(reply.text);
    case Type::kArray:
      writer.Array(reply.elements.size());
      break;
    case Type::kMap:
      writer.Map(reply.elements.size() / 2);
      break;
    case Type::kSet:
      writer.Set(reply.elements.size());
      break;
    case Type::kPush:
      writer.Push(reply.elements.size());
      break;
  }
  for (const RespReply& element : reply.elements) Write(writer, element);
}

// The reply as RESP2 has it, which has fewer types.
RespReply InResp2(const RespReply& reply) {
  switch (reply.type) {
    case Type::kMap:
    case Type::kSet:
    case Type::kPush:
    case Type::kArray: {
      RespReply array{.type = Type::kArray};
      for (const RespReply& element : reply.elements) array.elements.push_back(InResp2(element));
      return array;
    }
    case Type::kBoolean:
      return Integer(reply.integer);
    case Type::kVerbatim:
    case Type::kBigNumber:
      return Text(Type::kBulk, reply.text);
    case Type::kDouble: {
      std::string out;
      RespWriter(out, 3).Double(reply.number);
      return Text(Type::kBulk, out.substr(1, out.size() - 3));
    }
    default:
      return reply;
  }
}

class RandomReplies {
 public:
  explicit RandomReplies(unsigned seed) : rng_(seed) {}

  RespReply Next(int depth_left) {
    const auto type = static_cast<Type>(rng_() % (static_cast<int>(Type::kBigNumber) + 1));
    RespReply reply{.type = type};
    switch (type) {
      case Type::kNull:
        break;
      case Type::kSimple:
      case Type::kError:
        reply.text = Bytes("abc :$*_-+0 ", 12);
        break;
      case Type::kBulk:
        reply.text = Bytes("\r\n$*:0123-_\0"s, 20);
        break;
      case Type::kVerbatim:
        reply.text = Bytes("\r\n:=", 6);
        reply.format = {'t', 'x', 't'};
        break;
      case Type::kBigNumber:
        reply.text = (rng_() % 2 ? "-1" : "1") + Bytes("0123456789", 30);
        break;
      case Type::kInteger:
        reply.integer = static_cast<int64_t>((uint64_t{rng_()} << 32 | rng_()) >> rng_() % 64);
        break;
      case Type::kBoolean:
        reply.integer = rng_() % 2;
        break;
      case Type::kDouble:
        reply.number = std::ldexp(static_cast<double>(rng_()) - 2e9, static_cast<int>(rng_() % 99));
        break;
      default:
        Fill(reply, depth_left);
    }
    return reply;
  }

  size_t Below(size_t bound) { return rng_() % bound; }

 private:
  void Fill(RespReply& reply, int depth_left) {
    if (depth_left == 0) return;
    const size_t count = (rng_() % 4) * (reply.type == Type::kMap ? 2 : 1);
    for (size_t i = 0; i < count; ++i) reply.elements.push_back(Next(depth_left - 1));
  }

  std::string Bytes(std::string_view alphabet, size_t bytes_max) {
    std::string bytes(rng_() % (bytes_max + 1), '\0');
    for (char& byte : bytes) byte = alphabet[rng_() % alphabet.size()];
    return bytes;
  }

  std::mt19937 rng_;
};

std::vector<NextPiece> Splits(size_t bytes) {
  std::vector<NextPiece> splits = {AllAtOnce()};
  for (const size_t size : {1, 2, 3, 7}) splits.push_back(PiecesOf(size));
  for (size_t cut = 1; cut < bytes; ++cut) splits.push_back(PiecesOf(std::vector{cut}));
  return splits;
}

// Expects the replies in every split, both built and skipped.
void ExpectEverySplit(std::string_view stream, const std::vector<RespReply>& expected,
                      const std::vector<size_t>& consumed, const std::string& error) {
  for (const NextPiece& split : Splits(stream.size())) {
    const ParsedReplies built = ParseInPieces(stream, split, false);
    ASSERT_TRUE(built.replies == expected) << testing::PrintToString(stream);
    ASSERT_EQ(built.error, error) << testing::PrintToString(stream);
    if (!consumed.empty()) {
      ASSERT_EQ(built.consumed, consumed) << testing::PrintToString(stream);
    }
    const ParsedReplies skipped = ParseInPieces(stream, split, true);
    ASSERT_EQ(skipped.consumed, built.consumed) << testing::PrintToString(stream);
    ASSERT_EQ(skipped.types, built.types) << testing::PrintToString(stream);
    ASSERT_EQ(skipped.error, error) << testing::PrintToString(stream);
  }
}

// Goal: the client reads what the server writes, in both protocols and every split; Skip finds the
// same ends.
// Method: random pipelines of random trees of every type.
TEST(RespReply, ReadsWhatWasWrittenInEverySplit) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomReplies random(seed);
  for (int round = 0; round < 40; ++round) {
    std::string resp2;
    std::string resp3;
    std::vector<RespReply> in_resp2;
    std::vector<RespReply> in_resp3;
    std::vector<size_t> consumed2;
    std::vector<size_t> consumed3;
    for (size_t count = 1 + random.Below(3); count > 0; --count) {
      const RespReply reply = random.Next(3);
      const size_t before2 = resp2.size();
      const size_t before3 = resp3.size();
      RespWriter writer2(resp2, 2);
      RespWriter writer3(resp3, 3);
      Write(writer2, reply);
      Write(writer3, reply);
      in_resp2.push_back(InResp2(reply));
      in_resp3.push_back(reply);
      consumed2.push_back(resp2.size() - before2);
      consumed3.push_back(resp3.size() - before3);
    }
    ExpectEverySplit(resp2, in_resp2, consumed2, "");
    ExpectEverySplit(resp3, in_resp3, consumed3, "");
  }
}

// Goal: forms that our writer does not use are read, and malformed ones are refused.
TEST(RespReply, ReadsOtherFormsAndRefusesBadOnes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const RespReply null;
  const RespReply one = Integer(1);
  const struct {
    std::string stream;
    std::vector<RespReply> replies;
    std::string error;
  } kCases[] = {
      {"*-1\r\n", {null}, ""},
      {"$-1\r\n", {null}, ""},
      {"!8\r\nERR a\r\nb\r\n:1\r\n", {Text(Type::kError, "ERR a\r\nb"), one}, ""},
      {":+1\r\n", {one}, ""},
      {",+1.5e3\r\n", {{.type = Type::kDouble, .number = 1500}}, ""},
      {",-inf\r\n", {{.type = Type::kDouble, .number = -kInfinity}}, ""},
      {"(+12\r\n", {Text(Type::kBigNumber, "+12")}, ""},
      // Attributes are dropped wherever they are, with all their contents.
      {"|1\r\n+ttl\r\n:9\r\n:1\r\n", {one}, ""},
      {"|0\r\n:1\r\n", {one}, ""},
      {"*2\r\n|1\r\n+a\r\n*1\r\n:7\r\n:1\r\n:1\r\n", {Many(Type::kArray, {one, one})}, ""},
      {"*1\r\n|1\r\n+a\r\n|1\r\n+b\r\n+c\r\n+d\r\n:1\r\n", {Many(Type::kArray, {one})}, ""},
      {"|1\r\n+a\r\n:1\r\n", {}, ""},
      // A push comes out of band, then the reply.
      {">2\r\n+message\r\n:1\r\n:1\r\n",
       {Many(Type::kPush, {Text(Type::kSimple, "message"), one}), one},
       ""},
      {"*0\r\n%0\r\n~0\r\n",
       {Many(Type::kArray, {}), Many(Type::kMap, {}), Many(Type::kSet, {})},
       ""},
      {"$?\r\n", {}, "streamed types are not supported"},
      {"*?\r\n", {}, "streamed types are not supported"},
      {"%?\r\n", {}, "streamed types are not supported"},
      {";4\r\n", {}, "streamed types are not supported"},
      {".\r\n", {}, "streamed types are not supported"},
      {":1\r\n\r\n", {one}, "empty line"},
      {"x\r\n", {}, "unknown type"},
      {":1\rx", {}, "CR without LF"},
      {":\r\n", {}, "invalid integer"},
      {":+\r\n", {}, "invalid integer"},
      {":+-1\r\n", {}, "invalid integer"},
      {":01\r\n", {}, "invalid integer"},
      {":9223372036854775808\r\n", {}, "invalid integer"},
      {",\r\n", {}, "invalid double"},
      {",1x\r\n", {}, "invalid double"},
      {",+-1\r\n", {}, "invalid double"},
      {"#x\r\n", {}, "invalid boolean"},
      {"#\r\n", {}, "invalid boolean"},
      {"_x\r\n", {}, "invalid null"},
      {"(-\r\n", {}, "invalid big number"},
      {"(1a\r\n", {}, "invalid big number"},
      {"$-2\r\n", {}, "invalid bulk length"},
      {"!-1\r\n", {}, "invalid bulk length"},
      {"$536870913\r\n", {}, "invalid bulk length"},
      {"$1\r\nabc", {}, "bulk without CR LF behind it"},
      {"=3\r\ntxt\r\n", {}, "invalid verbatim string"},
      {"=4\r\ntxt.\r\n", {}, "invalid verbatim string"},
      {"%-1\r\n", {}, "invalid aggregate length"},
      {"*-2\r\n", {}, "invalid aggregate length"},
      {"*4294967296\r\n", {}, "invalid aggregate length"},
  };
  for (const auto& c : kCases) ExpectEverySplit(c.stream, c.replies, {}, c.error);
}

std::string Nested(size_t depth) {
  std::string stream;
  for (size_t i = 0; i < depth; ++i) stream += "*1\r\n";
  return stream + ":1\r\n";
}

// Goal: nesting is bounded, so that no server can exhaust a client's stack.
TEST(RespReply, NestingIsBounded) {
  RespReply expected = Integer(1);
  for (size_t i = 0; i < RespReplyParser::kDepthMax; ++i) {
    expected = Many(Type::kArray, {std::move(expected)});
  }
  ExpectEverySplit(Nested(RespReplyParser::kDepthMax), {expected}, {}, "");
  ExpectEverySplit(Nested(RespReplyParser::kDepthMax + 1), {}, {}, "too many nested aggregates");
}

// Goal: a line without an end is refused at the limit, and not before.
TEST(RespReply, LinesAreBounded) {
  RespReplyParser parser;
  const std::string longest = "+" + std::string(RespReplyParser::kLineBytesMax - 1, 'x');
  EXPECT_EQ(parser.Skip(longest), Event::kNeedMore);
  EXPECT_EQ(parser.Skip(longest + "\r\n"), Event::kReply);
  EXPECT_EQ(parser.Skip(longest + "y"), Event::kError);
  parser.Reset();
  EXPECT_EQ(parser.Skip(longest + "y\r\n"), Event::kError);
}

// Goal: type() is the reply's, not its attribute's nor its last element's.
TEST(RespReply, TypeIsTheFirstByteOfTheReply) {
  RespReplyParser parser;
  ASSERT_EQ(parser.Skip("|1\r\n+a\r\n:1\r\n*2\r\n|1\r\n+a\r\n:1\r\n:5\r\n$1\r\nx\r\n"),
            Event::kReply);
  EXPECT_EQ(parser.type(), '*');
}

// Goal: the work is linear in the bytes, however small the pieces.
// Method: as for commands: quadratic work would read more than 10^12 bytes.
TEST(RespReply, ManySmallPiecesAreLinearWork) {
  std::string stream = "*300000\r\n";
  for (int i = 0; i < 300'000; ++i) stream += "$1\r\nx\r\n";
  for (const bool skip : {false, true}) {
    RespReplyParser parser;
    RespReply reply;
    const std::string_view whole = stream;
    for (size_t received = 1; received <= whole.size(); ++received) {
      const std::string_view input = whole.substr(0, received);
      const Event event = skip ? parser.Skip(input) : parser.Next(input, reply);
      ASSERT_EQ(event, received < whole.size() ? Event::kNeedMore : Event::kReply);
    }
    EXPECT_EQ(reply.elements.size(), skip ? 0u : 300'000u);
  }
}

// Goal: a server's claimed count costs no memory: memory follows the bytes that came.
TEST(RespReply, ClaimedCountsReserveNothing) {
  RespReplyParser parser;
  RespReply reply;
  std::string stream;
  for (size_t i = 0; i < RespReplyParser::kDepthMax; ++i) stream += "*4294967295\r\n";
  EXPECT_EQ(parser.Next(stream, reply), Event::kNeedMore);
  EXPECT_TRUE(reply.is_null());
}

TEST(AppendCommand, WritesAnArrayOfBulks) {
  std::string out;
  AppendCommand(out, {"SET", "k", ""});
  EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

}  // namespace
}  // namespace skep
