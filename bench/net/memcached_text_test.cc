#include "bench/net/memcached_text.h"

#include <gtest/gtest.h>

#include "bench/net/protocol_test_reader.h"

namespace skep::bench {
namespace {

// Goal: a request of several keys is one get, or as many sets.
TEST(MemcachedText, EncodesCommands) {
  OpStream stream{KeyFormat::Text(8)};
  for (uint64_t number : {1, 2, 3}) stream.Add(OpKind::kRead, number);
  const ValuePool values(3, 1);
  const auto key = [&](size_t i) { return std::string(stream.at(i).key); };
  const auto value = [&](size_t i) { return std::string(values.at(i)); };
  const auto encoded = [&](const NetAsked& asked) {
    return Encoded("memcached-text", kTestFormat, asked, stream, values);
  };
  EXPECT_EQ(encoded(kGet), "get " + key(0) + "\r\n");
  EXPECT_EQ(encoded(kGet3), "get " + key(0) + " " + key(1) + " " + key(2) + "\r\n");
  EXPECT_EQ(encoded(kSet2), "set " + key(0) + " 0 0 3\r\n" + value(0) + "\r\nset " + key(1) +
                                " 0 0 3\r\n" + value(1) + "\r\n");
  EXPECT_FALSE(MemcachedText(kTestFormat).Does(OpKind::kScan));
}

// Goal: answers are read however they are split, and counted: values, absent keys, errors.
TEST(MemcachedText, ReadsAnswers) {
  const NetAnswerCase cases[] = {
      {"a value",
       {kGet, kGet},
       "VALUE 00000001 0 3\r\nEND\r\nEND\r\nEND\r\n",
       {.hits = 1, .misses = 1}},
      {"two of three",
       {kGet3, kSet},
       "VALUE 00000001 0 3\r\nabc\r\nVALUE 00000002 0 3\r\n\r\nd\r\nEND\r\nSTORED\r\n",
       {.hits = 2, .misses = 1, .stored = 1}},
      {"sets", {kSet2, kGet}, "STORED\r\nSTORED\r\nEND\r\n", {.misses = 1, .stored = 2}},
      {"one of two is refused",
       {kSet2, kGet},
       "SERVER_ERROR out of memory storing object\r\nSTORED\r\nEND\r\n",
       {.misses = 1,
        .stored = 1,
        .errors = 1,
        .first_error = "SERVER_ERROR out of memory storing object"}},
      {"an error in the place of values",
       {kGet3, kGet},
       "ERROR\r\nEND\r\n",
       {.misses = 1, .errors = 3, .first_error = "ERROR"}},
  };
  for (const NetAnswerCase& what : cases) {
    EXPECT_EQ(CheckAllSplits("memcached-text", kTestFormat, what), "");
  }
}

// Goal: bytes that cannot answer the request end the reading.
TEST(MemcachedText, KnowsWhatIsNoAnswer) {
  const auto corrupt = [](const NetAsked& asked, std::string_view bytes) {
    return IsCorrupt("memcached-text", kTestFormat, asked, bytes);
  };
  EXPECT_TRUE(corrupt(kGet, "$3\r\n"));
  EXPECT_TRUE(corrupt(kGet, "STORED\r\n"));
  EXPECT_TRUE(corrupt(kGet, "VALUE 00000001 0 4\r\nabcd\r\nEND\r\n"));
  EXPECT_TRUE(corrupt(kGet, "VALUE 00000001 0 3\r\nabcdef\r\nEND\r\n"));
  EXPECT_TRUE(corrupt(kGet, "VALUE 00000001 0 3\r\nabc\r\nVALUE 00000001 0 3\r\nabc\r\nEND\r\n"));
  EXPECT_TRUE(corrupt(kGet, std::string(100'000, 'x')));
}

}  // namespace
}  // namespace skep::bench
