#include "tools/cli/reply_format.h"

#include <gtest/gtest.h>

namespace skep::cli {
namespace {

// Parses the reply that these bytes encode.
RespReply Parse(std::string_view bytes) {
  RespReplyParser parser;
  RespReply reply;
  EXPECT_EQ(parser.Next(bytes, reply), RespReplyParser::Event::kReply) << bytes;
  EXPECT_EQ(parser.consumed(), bytes.size());
  return reply;
}

std::string Readable(std::string_view bytes, bool hex = false) {
  return FormatReply(Parse(bytes), {.style = ReplyStyle::kReadable, .hex = hex});
}
std::string Raw(std::string_view bytes, bool hex = false) {
  return FormatReply(Parse(bytes), {.style = ReplyStyle::kRaw, .hex = hex});
}
std::string Json(std::string_view bytes, bool hex = false) {
  return FormatReply(Parse(bytes), {.style = ReplyStyle::kJson, .hex = hex});
}

// Goal: every type of RESP2 and RESP3 is printed right, in every style.
// Method: a table; the texts for people and for pipes are those of redis-cli 7, beside which the
// end-to-end test runs them as well.
TEST(ReplyFormat, EachType) {
  const struct {
    const char *bytes, *readable, *raw, *json;
  } kTypes[] = {
      {"+OK\r\n", "OK\n", "OK\n", "\"OK\"\n"},
      {"-ERR x\r\n", "(error) ERR x\n", "ERR x\n\n", "{\"error\":\"ERR x\"}\n"},
      {"!5\r\nERR y\r\n", "(error) ERR y\n", "ERR y\n\n", "{\"error\":\"ERR y\"}\n"},
      {":-3\r\n", "(integer) -3\n", "-3\n", "-3\n"},
      {"$3\r\na\"b\r\n", "\"a\\\"b\"\n", "a\"b\n", "\"a\\\"b\"\n"},
      {"$-1\r\n", "(nil)\n", "\n", "null\n"},
      {"*-1\r\n", "(nil)\n", "\n", "null\n"},
      {"_\r\n", "(nil)\n", "\n", "null\n"},
      {"#t\r\n", "(true)\n", "(true)\n", "true\n"},
      {"#f\r\n", "(false)\n", "(false)\n", "false\n"},
      {",1.5\r\n", "(double) 1.5\n", "1.5\n", "1.5\n"},
      {",10\r\n", "(double) 10\n", "10\n", "10.0\n"},
      {",-inf\r\n", "(double) -inf\n", "-inf\n", "\"-inf\"\n"},
      {",nan\r\n", "(double) nan\n", "nan\n", "\"nan\"\n"},
      {"(12345678901234567890\r\n", "(big number) 12345678901234567890\n", "12345678901234567890\n",
       "\"12345678901234567890\"\n"},
      {"=8\r\ntxt:a\"\nb\r\n", "a\"\nb\n", "a\"\nb\n", "\"a\\\"\\nb\"\n"},
      {"*0\r\n", "(empty array)\n", "\n", "[]\n"},
      {"~0\r\n", "(empty set)\n", "\n", "[]\n"},
      {"%0\r\n", "(empty hash)\n", "\n", "{}\n"},
      {">0\r\n", "(empty push)\n", "\n", "[]\n"},
      {"*2\r\n:1\r\n$1\r\na\r\n", "1) (integer) 1\n2) \"a\"\n", "1\na\n", "[1,\"a\"]\n"},
      {"~1\r\n$1\r\na\r\n", "1~ \"a\"\n", "a\n", "[\"a\"]\n"},
      {">1\r\n$1\r\na\r\n", "1) \"a\"\n", "a\n", "[\"a\"]\n"},
      {"%2\r\n$1\r\na\r\n:1\r\n:7\r\n_\r\n", "1# \"a\" => (integer) 1\n2# (integer) 7 => (nil)\n",
       "a 1\n7 \n", "{\"a\":1,\"7\":null}\n"},
      {"|1\r\n+a\r\n+b\r\n:1\r\n", "(integer) 1\n", "1\n", "1\n"},
  };
  for (const auto& type : kTypes) {
    EXPECT_EQ(Readable(type.bytes), type.readable) << type.bytes;
    EXPECT_EQ(Raw(type.bytes), type.raw) << type.bytes;
    EXPECT_EQ(Json(type.bytes), type.json) << type.bytes;
  }
}

TEST(ReplyFormat, Nested) {
  const char* const nested = "*2\r\n*2\r\n:1\r\n*1\r\n+x\r\n%1\r\n+k\r\n*2\r\n+y\r\n+z\r\n";
  EXPECT_EQ(Readable(nested),
            "1) 1) (integer) 1\n"
            "   2) 1) x\n"
            "2) 1# k => \n"
            "      1) y\n"
            "      2) z\n");
  EXPECT_EQ(Readable("%2\r\n+a\r\n*1\r\n:1\r\n+b\r\n*1\r\n*2\r\n:1\r\n:2\r\n"),
            "1# a => 1) (integer) 1\n"
            "2# b => \n"
            "   1) 1) (integer) 1\n"
            "      2) (integer) 2\n");
  EXPECT_EQ(Raw(nested), "1\nx\nk y\nz\n");
  EXPECT_EQ(Json(nested), "[[1,[\"x\"]],{\"k\":[\"y\",\"z\"]}]\n");
}

TEST(ReplyFormat, NumbersStandInOneColumn) {
  std::string ten = "*10\r\n";
  for (int i = 0; i < 9; ++i) ten += ":0\r\n";
  ten += "*2\r\n+a\r\n+b\r\n";
  const std::string text = Readable(ten);
  EXPECT_TRUE(text.starts_with(" 1) (integer) 0\n 2) ")) << text;
  EXPECT_TRUE(text.ends_with("10) 1) a\n    2) b\n")) << text;
}

TEST(ReplyFormat, BytesThatAreNoText) {
  const char* const bytes = "*1\r\n$3\r\n\xff\x01\n\r\n";
  EXPECT_EQ(Readable(bytes), "1) \"\\xff\\x01\\n\"\n");
  EXPECT_EQ(Raw(bytes), "\xff\x01\n\n");
  EXPECT_EQ(Json(bytes), "[{\"base64\":\"/wEK\"}]\n");
  EXPECT_EQ(Readable(bytes, true), "1) 0xff010a\n");
  EXPECT_EQ(Raw(bytes, true), "0xff010a\n");
  EXPECT_EQ(Json(bytes, true), "[\"0xff010a\"]\n");
  // Statuses and errors are the server's own words, so they are not shown as hex.
  EXPECT_EQ(Raw("+OK\r\n", true), "OK\n");
  EXPECT_EQ(Json("+OK\r\n", true), "\"OK\"\n");
}

// Goal: a map whose keys cannot be JSON's names, or occur twice, is printed without loss.
TEST(ReplyFormat, MapsThatAreNoObjects) {
  EXPECT_EQ(Json("%1\r\n$1\r\n\xff\r\n:1\r\n"), "[[{\"base64\":\"/w==\"},1]]\n");
  EXPECT_EQ(Json("%2\r\n+1\r\n:1\r\n:1\r\n:2\r\n"), "[[\"1\",1],[1,2]]\n");
  EXPECT_EQ(Json("%1\r\n*0\r\n:1\r\n"), "[[[],1]]\n");
  EXPECT_EQ(Json("%1\r\n$1\r\n\xff\r\n:1\r\n", true), "{\"0xff\":1}\n");
}

TEST(ReplyFormat, TextsAreKnownByTheirCommands) {
  const auto replies_text = [](std::vector<std::string_view> args) { return RepliesText(args); };
  EXPECT_TRUE(replies_text({"info"}));
  EXPECT_TRUE(replies_text({"INFO", "memory"}));
  EXPECT_TRUE(replies_text({"client", "LIST"}));
  EXPECT_FALSE(replies_text({"CLIENT"}));
  EXPECT_FALSE(replies_text({"CLIENT", "GETNAME"}));
  EXPECT_FALSE(replies_text({"GET", "info"}));
}

}  // namespace
}  // namespace skep::cli
