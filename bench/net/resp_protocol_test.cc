#include "bench/net/resp_protocol.h"

#include <gtest/gtest.h>

#include "bench/net/protocol_test_reader.h"

namespace skep::bench {
namespace {

constexpr NetFormat kSortedSet = {
    .key_bytes = 8, .value_bytes = 3, .scan_command = ScanCommand::kZrangebylex};
constexpr NetFormat kMget = {.key_bytes = 8, .value_bytes = 3, .scan_command = ScanCommand::kMget};

constexpr NetAsked kScan2 = {.kind = OpKind::kScan, .count = 1, .items = 2};

struct Text {
  Text() {
    for (uint64_t number : {1, 2, 3}) stream.Add(OpKind::kRead, number);
    for (size_t i = 0; i < 3; ++i) keys.emplace_back(stream.at(i).key);
  }
  std::string Of(const NetFormat& format, const NetAsked& asked) const {
    return Encoded("resp", format, asked, stream, values);
  }
  std::string Bulk(std::string_view bytes) const {
    return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
  }
  std::string Value(uint64_t number) const { return std::string(values.at(number)); }

  OpStream stream{KeyFormat::Text(8)};
  std::vector<std::string> keys;
  ValuePool values{3, 1};
};

// Goal: each operation becomes the command that the header's table names, byte for byte.
TEST(RespProtocol, EncodesCommands) {
  const Text text;
  const auto& keys = text.keys;
  EXPECT_EQ(text.Of(kTestFormat, kGet), "*2\r\n$3\r\nGET\r\n" + text.Bulk(keys[0]));
  EXPECT_EQ(text.Of(kTestFormat, kGet3),
            "*4\r\n$4\r\nMGET\r\n" + text.Bulk(keys[0]) + text.Bulk(keys[1]) + text.Bulk(keys[2]));
  EXPECT_EQ(text.Of(kTestFormat, kSet),
            "*3\r\n$3\r\nSET\r\n" + text.Bulk(keys[0]) + text.Bulk(text.Value(0)));
  EXPECT_EQ(text.Of(kTestFormat, kSet2), "*5\r\n$4\r\nMSET\r\n" + text.Bulk(keys[0]) +
                                             text.Bulk(text.Value(0)) + text.Bulk(keys[1]) +
                                             text.Bulk(text.Value(1)));
  EXPECT_EQ(text.Of(kTestFormat, kScan2),
            "*7\r\n$6\r\nKRANGE\r\n" + text.Bulk("[" + keys[0]) +
                "$1\r\n+\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n$1\r\n2\r\n$10\r\nWITHVALUES\r\n");
}

// Goal: on a server with sorted sets records are members of one, and scans ranges of it.
TEST(RespProtocol, EncodesSortedSets) {
  const Text text;
  const auto& keys = text.keys;
  EXPECT_EQ(text.Of(kSortedSet, kSet2), "*6\r\n$4\r\nZADD\r\n$10\r\nskep-bench\r\n$1\r\n0\r\n" +
                                            text.Bulk(keys[0] + text.Value(0)) + "$1\r\n0\r\n" +
                                            text.Bulk(keys[1] + text.Value(1)));
  EXPECT_EQ(text.Of(kSortedSet, {.kind = OpKind::kScan, .count = 1, .items = 100}),
            "*7\r\n$11\r\nZRANGEBYLEX\r\n$10\r\nskep-bench\r\n" + text.Bulk("[" + keys[0]) +
                "$1\r\n+\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n$3\r\n100\r\n");
  EXPECT_FALSE(RespProtocol(kSortedSet).Does(OpKind::kRead));
  EXPECT_TRUE(RespProtocol(kSortedSet).Does(OpKind::kScan));
  // Behind the stream's last key its first one follows.
  EXPECT_EQ(text.Of(kMget, {.kind = OpKind::kScan, .count = 1, .items = 4}),
            "*5\r\n$4\r\nMGET\r\n" + text.Bulk(keys[0]) + text.Bulk(keys[1]) + text.Bulk(keys[2]) +
                text.Bulk(keys[0]));
}

// Goal: answers are read however they are split, and counted: values, absent keys, errors.
TEST(RespProtocol, ReadsAnswers) {
  const NetAnswerCase cases[] = {
      {"values", {kGet, kGet}, "$3\r\nabc\r\n$3\r\nd\r\n\r\n", {.hits = 2}},
      {"nulls", {kGet, kGet, kGet}, "$-1\r\n_\r\n$3\r\nabc\r\n", {.hits = 1, .misses = 2}},
      {"a null behind a value", {kGet, kGet}, "$3\r\nabc\r\n_\r\n", {.hits = 1, .misses = 1}},
      {"sets", {kSet, kSet2, kGet}, "+OK\r\n+OK\r\n$3\r\nabc\r\n", {.hits = 1, .stored = 3}},
      {"MGET",
       {kGet3, kSet},
       "*3\r\n$3\r\nabc\r\n$-1\r\n$3\r\n*3\r\r\n+OK\r\n",
       {.hits = 2, .misses = 1, .stored = 1}},
      {"scan",
       {kScan2, kGet},
       "*4\r\n$8\r\n00000001\r\n$3\r\nabc\r\n$8\r\n00000002\r\n$3\r\nabc\r\n$3\r\nabc\r\n",
       {.hits = 1, .scans = 1, .items = 2}},
      {"scan at the end of all keys",
       {kScan2},
       "*2\r\n$8\r\n00000001\r\n$3\r\nabc\r\n",
       {.scans = 1, .items = 1}},
      {"empty scan",
       {kScan2, kSet},
       "*0\r\n+OK\r\n",
       {.stored = 1,
        .scans = 1,
        .errors = 1,
        .first_error = "a scan from a key that was inserted is empty"}},
      {"errors",
       {kSet2, kGet, kGet3, kScan2},
       "-OOM too much\r\n-ERR two\r\n-ERR three\r\n-ERR four\r\n",
       {.errors = 7, .first_error = "OOM too much"}},
      {"another size",
       {kGet, kGet},
       "$4\r\nabcd\r\n$3\r\nabc\r\n",
       {.hits = 1, .errors = 1, .first_error = "a key or value of another size than was stored"}},
  };
  for (const NetAnswerCase& what : cases) EXPECT_EQ(CheckAllSplits("resp", kTestFormat, what), "");
}

// Goal: answers of sorted sets, and of scans that are an MGET, are read however they are split.
TEST(RespProtocol, ReadsAnswersOfOtherScans) {
  const NetAnswerCase members[] = {
      {"added, or there already", {kSet2, kSet}, ":2\r\n:0\r\n", {.stored = 3}},
      {"members",
       {kScan2},
       "*2\r\n$11\r\n00000001abc\r\n$11\r\n00000002abc\r\n",
       {.scans = 1, .items = 2}},
  };
  for (const NetAnswerCase& what : members) EXPECT_EQ(CheckAllSplits("resp", kSortedSet, what), "");
  const NetAnswerCase values[] = {
      {"values", {kScan2}, "*2\r\n$3\r\nabc\r\n$3\r\nabc\r\n", {.scans = 1, .items = 2}},
      {"absent",
       {kScan2},
       "*2\r\n$3\r\nabc\r\n$-1\r\n",
       {.scans = 1, .items = 2, .errors = 1, .first_error = "a key of a scan is absent"}},
  };
  for (const NetAnswerCase& what : values) EXPECT_EQ(CheckAllSplits("resp", kMget, what), "");
}

// Goal: bytes that cannot answer the request end the reading.
TEST(RespProtocol, KnowsWhatIsNoAnswer) {
  const auto corrupt = [](const NetAsked& asked, std::string_view bytes) {
    return IsCorrupt("resp", kTestFormat, asked, bytes);
  };
  EXPECT_TRUE(corrupt(kGet, "VALUE x 0 3\r\n"));
  EXPECT_TRUE(corrupt(kGet, "+OK\r\n"));
  EXPECT_TRUE(corrupt(kGet, "$3\r\nabcdef\r\n"));
  EXPECT_TRUE(corrupt(kSet, "$3\r\nabc\r\n"));
  EXPECT_TRUE(corrupt(kSet, ":1\r\n"));
  EXPECT_TRUE(corrupt(kGet3, "*2\r\n"));
  EXPECT_TRUE(corrupt(kGet3, "$3\r\nabc\r\n"));
  EXPECT_TRUE(corrupt(kGet3, "*-1\r\n"));
  EXPECT_TRUE(corrupt(kScan2, "*6\r\n"));
  EXPECT_TRUE(corrupt(kScan2, "*3\r\n"));
  EXPECT_TRUE(corrupt(kScan2, std::string(100'000, '*')));
  EXPECT_FALSE(corrupt(kScan2, "*4\r\n"));
}

}  // namespace
}  // namespace skep::bench
