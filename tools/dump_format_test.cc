#include "tools/dump_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace skep {
namespace {

struct Owned {
  std::string key, value;
  uint64_t deadline_ms = 0;
  bool operator==(const Owned&) const = default;
};

const std::vector<Owned> kItems = {
    {"", ""},
    {"user:1", "Ada", 1'800'000'000'000},
    {std::string("\0\xff\r\n\"\\", 6), std::string(300'000, '\xfe')},
    {"\xc3\xa9", "\xe2\x82\xac\x1f"},
    {std::string("\0", 1), "*3\r\n$3\r\nSET", 1},
};

// Returns a source of the text in pieces of at most this many bytes.
DumpSource Pieces(std::string text, size_t bytes_max) {
  return
      [text = std::move(text), bytes_max, at = size_t{0}](std::string* to, size_t bytes) mutable {
        const std::string piece = text.substr(at, std::min(bytes, bytes_max));
        at += piece.size();
        *to += piece;
        return !piece.empty();
      };
}

DumpProblem FromJsonl(const std::string& text, std::vector<Owned>* items, size_t piece = 1000) {
  return ReadJsonl(Pieces(text, piece), [&](const DumpItem& item) {
    items->push_back({std::string(item.key), std::string(item.value), item.deadline_ms});
    return true;
  });
}

struct Commands {
  std::vector<uint64_t> selected;
  std::vector<std::vector<std::string>> sets;
};

DumpProblem FromResp(const std::string& text, Commands* commands, size_t piece = 1000) {
  return ReadResp(Pieces(text, piece), {.on_select =
                                            [&](uint64_t db) {
                                              commands->selected.push_back(db);
                                              return true;
                                            },
                                        .on_set =
                                            [&](std::span<const std::string_view> args) {
                                              commands->sets.emplace_back(args.begin(), args.end());
                                              return true;
                                            }});
}

TEST(DumpFormat, JsonlComesBack) {
  std::string text;
  for (const Owned& item : kItems) AppendJsonl({item.key, item.value, item.deadline_ms}, &text);
  for (const size_t piece : {7u, 100u, 10'000'000u}) {
    std::vector<Owned> items;
    EXPECT_EQ(FromJsonl(text, &items, piece), "");
    EXPECT_EQ(items, kItems);
  }
}

TEST(DumpFormat, JsonlLooksSo) {
  std::string text;
  AppendJsonl({"user:1", "Ada", 5}, &text);
  AppendJsonl({"\xff", "a\xc3\xa9\n"}, &text);
  EXPECT_EQ(text,
            "{\"key\":\"user:1\",\"value\":\"Ada\",\"deadline_ms\":5}\n"
            "{\"key_base64\":\"/w==\",\"value\":\"a\xc3\xa9\\n\"}\n");
}

TEST(DumpFormat, JsonlMayLackTheLastLineEnd) {
  std::vector<Owned> items;
  EXPECT_EQ(FromJsonl("\n  \r\n{\"value\":\"1\",\"key\":\"a\"}\n\n{\"key\":\"b\",\"value\":\"\"}",
                      &items),
            "");
  EXPECT_EQ(items, (std::vector<Owned>{{"a", "1"}, {"b", ""}}));
  items.clear();
  EXPECT_EQ(FromJsonl("", &items), "");
  EXPECT_TRUE(items.empty());
}

TEST(DumpFormat, JsonlThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "line 2: not JSON"},
      {"[]", "line 2: not an object"},
      {"{\"key\":\"a\"}", "line 2: no value"},
      {"{\"value\":\"a\"}", "line 2: no key"},
      {"{\"key\":1,\"value\":\"a\"}", "line 2: \"key\": not a string"},
      {"{\"key\":\"a\",\"key_base64\":\"\",\"value\":\"a\"}", "line 2: \"key_base64\": twice"},
      {"{\"key_base64\":\"a\",\"value\":\"a\"}", "line 2: \"key_base64\": not base64"},
      {"{\"key\":\"a\",\"value\":\"a\",\"ttl\":1}", "line 2: \"ttl\": not known"},
      {"{\"key\":\"a\",\"value\":\"a\",\"deadline_ms\":-1}",
       "line 2: \"deadline_ms\": not a whole number"},
      {"{\"key\":\"a\",\"value\":\"\xff\"}", "line 2: not JSON"}};
  for (const auto& [line, problem] : cases) {
    std::vector<Owned> items;
    EXPECT_EQ(FromJsonl(std::string("{\"key\":\"x\",\"value\":\"\"}\n") + line + "\n{}\n", &items),
              problem);
    EXPECT_EQ(items.size(), 1u);
  }
}

TEST(DumpFormat, RespComesBack) {
  std::string text = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
  for (const Owned& item : kItems) AppendResp({item.key, item.value, item.deadline_ms}, &text);
  for (const size_t piece : {7u, 100u, 10'000'000u}) {
    Commands commands;
    EXPECT_EQ(FromResp(text, &commands, piece), "");
    EXPECT_EQ(commands.selected, std::vector<uint64_t>{3});
    std::vector<Owned> items;
    for (const auto& set : commands.sets) {
      items.push_back({set[1], set[2], set.size() == 5 ? std::stoull(set[4]) : 0});
    }
    EXPECT_EQ(items, kItems);
  }
}

TEST(DumpFormat, RespThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"*1\r\n$8\r\nFLUSHALL\r\n",
       "command 2: \"FLUSHALL\" with 0 arguments is neither SELECT nor SET"},
      {"SELECT x\r\n", "command 2: not a number of a database"},
      {"*2\r\n$3\r\nSET\r\n$1", "command 2: the input ends in it"},
      {"*1\r\nx\r\n", "command 2: Protocol error: expected '$', got 'x'"}};
  for (const auto& [bytes, problem] : cases) {
    Commands commands;
    EXPECT_EQ(FromResp(std::string("set a 1 px 5\r\n\r\n") + bytes, &commands), problem);
    EXPECT_EQ(commands.sets.size(), 1u);
  }
}

TEST(DumpFormat, TheSinkMayEndIt) {
  std::vector<Owned> items;
  int left = 2;
  EXPECT_EQ(
      ReadJsonl(Pieces("{\"key\":\"a\",\"value\":\"\"}\n{\"key\":\"b\",\"value\":\"\"}\n{\n", 9),
                [&](const DumpItem&) { return --left > 0; }),
      "");
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace skep
