#include "wire/resp_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "wire/resp_pieces.h"

namespace skep {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using Commands = std::vector<std::vector<std::string>>;
using Event = RespDecoder::Event;

std::string Encode(const std::vector<std::string>& args) {
  const std::vector<std::string_view> views(args.begin(), args.end());
  std::string out;
  AppendCommand(out, views);
  return out;
}

// The ways to split a stream: whole, in pieces of 1, 2, 3, 7 and 16 bytes, and cut in two at every
// position.
std::vector<NextPiece> Splits(size_t bytes) {
  std::vector<NextPiece> splits = {AllAtOnce()};
  for (const size_t size : {1, 2, 3, 7, 16}) splits.push_back(PiecesOf(size));
  for (size_t cut = 1; cut < bytes; ++cut) splits.push_back(PiecesOf(std::vector{cut}));
  return splits;
}

void ExpectEverySplit(std::string_view stream, const RespLimits& limits,
                      const DecodedCommands& expected) {
  for (const NextPiece& split : Splits(stream.size())) {
    const DecodedCommands decoded = DecodeInPieces(stream, limits, split);
    ASSERT_EQ(decoded.commands, expected.commands) << testing::PrintToString(stream);
    ASSERT_EQ(decoded.consumed, expected.consumed) << testing::PrintToString(stream);
    ASSERT_EQ(decoded.error, expected.error) << testing::PrintToString(stream);
  }
}

// Random bytes, half of them from the protocol's own.
std::string RandomBytes(std::mt19937& rng, size_t bytes_max) {
  constexpr std::string_view kProtocol = "\r\n*$0123456789-\"'\\ \0"sv;
  std::string bytes(rng() % (bytes_max + 1), '\0');
  for (char& byte : bytes) {
    byte = rng() % 2 ? kProtocol[rng() % kProtocol.size()] : static_cast<char>(rng());
  }
  return bytes;
}

// Goal: the server decodes what a client encodes, in every split.
// Method: random pipelines of random bytes, rich in CR, LF and digits.
TEST(RespDecoder, DecodesWhatWasEncodedInEverySplit) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 30; ++round) {
    DecodedCommands expected;
    std::string stream;
    for (size_t commands = 1 + rng() % 4; commands > 0; --commands) {
      std::vector<std::string> args(1 + rng() % 5);
      for (std::string& arg : args) arg = RandomBytes(rng, 30);
      const std::string encoded = Encode(args);
      stream += encoded;
      expected.commands.push_back(std::move(args));
      expected.consumed.push_back(encoded.size());
    }
    ExpectEverySplit(stream, {}, expected);
  }
}

// Goal: a command that is cut twice is decoded, wherever the cuts are.
// Method: every pair of cuts, and so two resumptions, in a small pipeline of both kinds.
TEST(RespDecoder, DecodesEveryPairOfCuts) {
  const std::string stream =
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123\r\n6789\r\nGET \"k\\x41\"\r\n";
  const Commands expected = {{"SET", "k", "0123\r\n6789"}, {"GET", "kA"}};
  for (size_t first = 1; first < stream.size(); ++first) {
    for (size_t second = 1; first + second < stream.size(); ++second) {
      const auto split = PiecesOf(std::vector{first, second});
      ASSERT_EQ(DecodeInPieces(stream, {}, split).commands, expected) << first << " " << second;
    }
  }
}

// Goal: arguments are views into the caller's bytes, not copies.
TEST(RespDecoder, ArgumentsPointIntoTheInput) {
  const std::string input = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\nECHO inline\r\n";
  RespDecoder decoder;
  std::vector<std::string_view> args;
  ASSERT_EQ(decoder.Next(input, {}, args), Event::kCommand);
  EXPECT_EQ(args[0].data(), input.data() + 8);
  EXPECT_EQ(args[1].data(), input.data() + 17);
  const std::string_view rest = std::string_view(input).substr(decoder.consumed());
  ASSERT_EQ(decoder.Next(rest, {}, args), Event::kCommand);
  EXPECT_EQ(args[1].data(), rest.data() + 5);
}

// Goal: the answers are Redis 7.0's, in every split.
// Method: a table; each line was sent to redis-server 7.0.15 by a raw socket. Where Redis ran the
// command, the table has the arguments that it understood.
struct Case {
  std::string stream;
  Commands commands;
  std::string error;
};

const std::string kBadCount = "Protocol error: invalid multibulk length";
const std::string kBadLength = "Protocol error: invalid bulk length";
const std::string kBadQuotes = "Protocol error: unbalanced quotes in request";

const Case kRedisCases[] = {
    // Counts that mean no command.
    {"*0\r\nPING\r\n", {{}, {"PING"}}, ""},
    {"*-1\r\nPING\r\n", {{}, {"PING"}}, ""},
    {"*-5\r\nPING\r\n", {{}, {"PING"}}, ""},
    // Counts that are no numbers.
    {"*\r\nPING\r\n", {}, kBadCount},
    {"*abc\r\n", {}, kBadCount},
    {"*01\r\n", {}, kBadCount},
    {"*+1\r\n", {}, kBadCount},
    {"*-0\r\n", {}, kBadCount},
    {"*1 \r\n", {}, kBadCount},
    {"*2147483648\r\n", {}, kBadCount},
    {"*9223372036854775808\r\n", {}, kBadCount},
    // Lengths.
    {"*1\r\n$0\r\n\r\n", {{""}}, ""},
    {"*1\r\n$-1\r\n", {}, kBadLength},
    {"*1\r\n$\r\n", {}, kBadLength},
    {"*1\r\n$abc\r\n", {}, kBadLength},
    {"*1\r\n$04\r\nPING\r\n", {}, kBadLength},
    {"*1\r\n$00\r\n\r\n", {}, kBadLength},
    {"*1\r\n$9223372036854775808\r\n", {}, kBadLength},
    {"*1\r\n$99999999999999999999999\r\n", {}, kBadLength},
    // A missing dollar.
    {"*1\r\n:4\r\nPING\r\n", {}, "Protocol error: expected '$', got ':'"},
    {"*1\r\nPING\r\n", {}, "Protocol error: expected '$', got 'P'"},
    {"*1\r\n\r\n", {}, "Protocol error: expected '$', got ' '"},
    {"*1\r\n\n\r\n", {}, "Protocol error: expected '$', got ' '"},
    {"*1\r\n\xff\r\n", {}, "Protocol error: expected '$', got '\xff'"},
    {"*2\r\n$1\r\na\r\n*1\r\n", {}, "Protocol error: expected '$', got '*'"},
    // Line ends are skipped, not compared.
    {"*1\rX$4\rYPINGZZ", {{"PING"}}, ""},
    // Blank lines, bare LF.
    {"\r\nPING\r\n", {{}, {"PING"}}, ""},
    {"\nPING\n", {{}, {"PING"}}, ""},
    {"   \r\nPING\r\n", {{}, {"PING"}}, ""},
    {"PING\r\r\n", {{"PING"}}, ""},
    // Words.
    {"SET  a\tb \r\n", {{"SET", "a", "b"}}, ""},
    {"ECHO a\rb\r\n", {{"ECHO", "a", "b"}}, ""},
    {"ECHO a\x0b"
     "b\r\n",
     {{"ECHO",
       "a\x0b"
       "b"}},
     ""},
    {"ECHO \x0b\x0c"
     "b\r\n",
     {{"ECHO", "b"}},
     ""},
    // Quotes.
    {"ECHO \"\"\r\n", {{"ECHO", ""}}, ""},
    {"ECHO ''\r\n", {{"ECHO", ""}}, ""},
    {"ECHO \"\\x41\\x4g\\n\\q\\\"\"\r\n", {{"ECHO", "Ax4g\nq\""}}, ""},
    {"ECHO \"\\r\\t\\b\\a\\\\\" \"\\xfF\"\r\n", {{"ECHO", "\r\t\b\a\\", "\xff"}}, ""},
    {"ECHO 'a\\'b\\n'\r\n", {{"ECHO", "a'b\\n"}}, ""},
    {"ECHO a\"b c\"\r\n", {{"ECHO", "ab c"}}, ""},
    {"ECHO \"a\"\x0bPING\r\n", {{"ECHO", "a", "PING"}}, ""},
    {"ECHO \"abc\r\n", {}, kBadQuotes},
    {"ECHO 'abc\r\n", {}, kBadQuotes},
    {"ECHO \"a\"b\r\n", {}, kBadQuotes},
    {"ECHO 'a'b\r\n", {}, kBadQuotes},
    {"ECHO \"abc\\\r\n", {}, kBadQuotes},
    {"ECHO \"a\"\"b\"\r\n", {}, kBadQuotes},
    // Commands before an error are served.
    {"PING\r\n*1\r\n$4\r\nPING\r\n*x\r\n", {{"PING"}, {"PING"}}, kBadCount},
};

TEST(RespDecoder, AnswersAsRedisDoes) {
  for (const Case& c : kRedisCases) {
    for (const NextPiece& split : Splits(c.stream.size())) {
      const DecodedCommands decoded = DecodeInPieces(c.stream, {}, split);
      ASSERT_EQ(decoded.commands, c.commands) << testing::PrintToString(c.stream);
      ASSERT_EQ(decoded.error, c.error) << testing::PrintToString(c.stream);
    }
  }
}

// Goal: where Redis's answer depends on a NUL in its buffer, ours depends on the request alone.
TEST(RespDecoder, NulIsAByteLikeAnyOther) {
  ExpectEverySplit("ECHO a\0b \"\0\"\r\n"s, {},
                   {.commands = {{"ECHO", "a\0b"s, "\0"s}}, .consumed = {14}, .error = ""});
  ExpectEverySplit("*1\0\r\n"s, {}, {.commands = {}, .consumed = {}, .error = kBadCount});
}

// Goal: each limit admits exactly its own size and refuses the next larger one, in every split.
// Method: small limits, so that every split of every case can be tried.
TEST(RespDecoder, LimitsAreExact) {
  const RespLimits limits = {.args_max = 3, .bulk_bytes_max = 12, .inline_bytes_max = 8};
  const Case cases[] = {
      {"*3\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n", {{"", "", ""}}, ""},
      {"*4\r\n", {}, kBadCount + " (more than 3)"},
      {"*1\r\n$12\r\n0123456789ab\r\n", {{"0123456789ab"}}, ""},
      {"*1\r\n$13\r\n", {}, kBadLength},
      {"12345678\n", {{"12345678"}}, ""},
      {"1234567\r\n", {{"1234567"}}, ""},
      {"123456789\n", {}, "Protocol error: too big inline request"},
      {"123456789", {}, "Protocol error: too big inline request"},
      {"12345678", {}, ""},
      {"*1234567", {}, ""},
      {"*1234567\r\n", {}, kBadCount + " (more than 3)"},
      {"*12345678\r\n", {}, "Protocol error: too big mbulk count string"},
      {"*12345678", {}, "Protocol error: too big mbulk count string"},
      {"*1\r\n$1234567\r\n", {}, kBadLength},
      {"*1\r\n$12345678\r\n", {}, "Protocol error: too big bulk count string"},
      {"*1\r\nX12345678\r\n", {}, "Protocol error: too big bulk count string"},
  };
  for (const Case& c : cases) {
    for (const NextPiece& split : Splits(c.stream.size())) {
      const DecodedCommands decoded = DecodeInPieces(c.stream, limits, split);
      ASSERT_EQ(decoded.commands, c.commands) << testing::PrintToString(c.stream);
      ASSERT_EQ(decoded.error, c.error) << testing::PrintToString(c.stream);
    }
  }
}

// Goal: a client that sends more arguments than allowed, but no more than Redis takes, gets Redis's
// text, followed by how many are allowed.
TEST(RespDecoder, TooManyArgumentsAreToldTheLimit) {
  for (const std::string_view count : {"*1048577\r\n", "*2147483647\r\n"}) {
    RespDecoder decoder;
    std::vector<std::string_view> args;
    EXPECT_EQ(decoder.Next(count, {}, args), Event::kError);
    EXPECT_EQ(decoder.error(), kBadCount + " (more than 1048576)");
  }
}

// Goal: limits without a bound overflow nothing.
TEST(RespDecoder, LargestLimitsDoNotOverflow) {
  const RespLimits limits = {
      .args_max = SIZE_MAX, .bulk_bytes_max = SIZE_MAX, .inline_bytes_max = SIZE_MAX};
  RespDecoder decoder;
  std::vector<std::string_view> args;
  EXPECT_EQ(decoder.Next("*4294967295\r\n$9223372036854775807\r\n", limits, args),
            Event::kNeedMore);
  EXPECT_EQ(decoder.wanted(), (size_t{1} << 63) + 1);
  decoder.Reset();
  EXPECT_EQ(decoder.Next("*4294967296\r\n", limits, args), Event::kError);
}

// Goal: wanted() is a bulk's exact rest.
TEST(RespDecoder, WantsTheRestOfABulk) {
  RespDecoder decoder;
  std::vector<std::string_view> args;
  std::string input;
  ASSERT_EQ(decoder.Next(input, {}, args), Event::kNeedMore);
  EXPECT_EQ(decoder.wanted(), 1u);
  input = "*2\r\n$3\r\nGET\r\n$1000\r\nabc";
  ASSERT_EQ(decoder.Next(input, {}, args), Event::kNeedMore);
  EXPECT_EQ(decoder.wanted(), 1000u - 3 + 2);
  input += std::string(decoder.wanted(), 'x');
  ASSERT_EQ(decoder.Next(input, {}, args), Event::kCommand);
  EXPECT_EQ(args[1].size(), 1000u);
  EXPECT_EQ(decoder.consumed(), input.size());
}

// Goal: after Reset(), in a half-read command or after an error, a decoder is like a new one.
TEST(RespDecoder, ResetForgets) {
  RespDecoder decoder;
  std::vector<std::string_view> args;
  ASSERT_EQ(decoder.Next("*2\r\n$3\r\nGE", {}, args), Event::kNeedMore);
  decoder.Reset();
  ASSERT_EQ(decoder.Next("PING\r\n", {}, args), Event::kCommand);
  ASSERT_EQ(decoder.Next("*1\r\nx\r\n", {}, args), Event::kError);
  ASSERT_EQ(decoder.Next("PING\r\n", {}, args), Event::kError);
  decoder.Reset();
  ASSERT_EQ(decoder.Next("PING\r\n", {}, args), Event::kCommand);
  EXPECT_EQ(args, std::vector<std::string_view>{"PING"});
}

// Decodes `stream` as it arrives byte by byte in one place.
size_t DecodeByteByByte(std::string_view stream, const RespLimits& limits) {
  RespDecoder decoder;
  std::vector<std::string_view> args;
  for (size_t received = 1; received < stream.size(); ++received) {
    if (decoder.Next(stream.substr(0, received), limits, args) != Event::kNeedMore) return 0;
  }
  return decoder.Next(stream, limits, args) == Event::kCommand ? args.size() : 0;
}

// Goal: the work is linear in the bytes, however small the pieces.
// Method: a million arguments, and a line of 8 MiB, byte by byte. A decoder that starts again with
// every byte would look at more than 10^13 bytes here, which no time limit of a test allows.
TEST(RespDecoder, ManySmallPiecesAreLinearWork) {
  std::string stream = "*1000000\r\n";
  for (int i = 0; i < 1'000'000; ++i) stream += "$1\r\nx\r\n";
  EXPECT_EQ(DecodeByteByByte(stream, {}), 1'000'000u);
}

TEST(RespDecoder, ALongLineInSmallPiecesIsLinearWork) {
  const size_t bytes = 8u << 20;
  EXPECT_EQ(DecodeByteByByte(std::string(bytes, 'x') + "\n", {.inline_bytes_max = bytes}), 1u);
}

}  // namespace
}  // namespace skep
