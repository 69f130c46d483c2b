#include "bench/net/memcached_meta.h"

#include <gtest/gtest.h>

#include "bench/net/protocol_test_reader.h"

namespace skep::bench {
namespace {

// Goal: a request of several operations is quiet, and ends with a command that is not.
TEST(MemcachedMeta, EncodesCommands) {
  OpStream stream{KeyFormat::Text(8)};
  for (uint64_t number : {1, 2, 3}) stream.Add(OpKind::kRead, number);
  const ValuePool values(3, 1);
  const auto key = [&](size_t i) { return std::string(stream.at(i).key); };
  const auto value = [&](size_t i) { return std::string(values.at(i)); };
  const auto encoded = [&](const NetAsked& asked) {
    return Encoded("memcached-meta", kTestFormat, asked, stream, values);
  };
  EXPECT_EQ(encoded(kGet), "mg " + key(0) + " v\r\n");
  EXPECT_EQ(encoded(kSet), "ms " + key(0) + " 3\r\n" + value(0) + "\r\n");
  EXPECT_EQ(encoded(kGet3),
            "mg " + key(0) + " v q\r\nmg " + key(1) + " v q\r\nmg " + key(2) + " v q\r\nmn\r\n");
  EXPECT_EQ(encoded(kSet2), "ms " + key(0) + " 3 q\r\n" + value(0) + "\r\nms " + key(1) +
                                " 3 q\r\n" + value(1) + "\r\nmn\r\n");
  EXPECT_FALSE(MemcachedMeta(kTestFormat).Does(OpKind::kScan));
}

// Goal: answers are read however they are split, and counted: values, absent keys, errors.
TEST(MemcachedMeta, ReadsAnswers) {
  const NetAnswerCase cases[] = {
      {"alone",
       {kGet, kGet, kSet},
       "VA 3\r\nEN\r\r\nEN\r\nHD\r\n",
       {.hits = 1, .misses = 1, .stored = 1}},
      {"two of three",
       {kGet3, kGet},
       "VA 3\r\nabc\r\nVA 3\r\nMN\r\r\nMN\r\nEN\r\n",
       {.hits = 2, .misses = 2}},
      {"quiet sets", {kSet2, kSet2}, "MN\r\nMN\r\n", {.stored = 4}},
      {"one of two is refused",
       {kSet2, kSet},
       "SERVER_ERROR out of memory storing object\r\nMN\r\nNS\r\n",
       {.stored = 1, .errors = 2, .first_error = "SERVER_ERROR out of memory storing object"}},
      {"an error among values",
       {kGet3},
       "VA 3\r\nabc\r\nCLIENT_ERROR bad\r\nMN\r\n",
       {.hits = 1, .misses = 1, .errors = 1, .first_error = "CLIENT_ERROR bad"}},
  };
  for (const NetAnswerCase& what : cases) {
    EXPECT_EQ(CheckAllSplits("memcached-meta", kTestFormat, what), "");
  }
}

// Goal: bytes that cannot answer the request end the reading.
TEST(MemcachedMeta, KnowsWhatIsNoAnswer) {
  const auto corrupt = [](const NetAsked& asked, std::string_view bytes) {
    return IsCorrupt("memcached-meta", kTestFormat, asked, bytes);
  };
  EXPECT_TRUE(corrupt(kGet, "HD\r\n"));
  EXPECT_TRUE(corrupt(kGet, "MN\r\n"));
  EXPECT_TRUE(corrupt(kGet, "VA 4\r\nabcd\r\n"));
  EXPECT_TRUE(corrupt(kGet, "VA 3\r\nabcdef\r\n"));
  EXPECT_TRUE(corrupt(kSet, "EN\r\n"));
  EXPECT_TRUE(corrupt(kSet2, "HD\r\n"));
  EXPECT_TRUE(corrupt(kSet2, "NS\r\nNS\r\nNS\r\nMN\r\n"));
  EXPECT_TRUE(corrupt(kGet, std::string(100'000, 'x')));
}

}  // namespace
}  // namespace skep::bench
