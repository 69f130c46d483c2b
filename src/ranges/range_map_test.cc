// Maps of ranges, as text and in the coordinator.
#include "ranges/range_map.h"

#include <gtest/gtest.h>

#include <string>

namespace skep::ranges {
namespace {

const RangeMap kMap = {{{.lower = "", .target = "pool:a"},
                        {.lower = std::string("m\0\xff", 3), .target = "10.0.0.7:6379"},
                        {.lower = "t", .target = "[::1]:7000"}}};

TEST(RangeMapTest, IsTheSameWhenItWasRead) {
  RangeMap read;
  ASSERT_TRUE(RangeMap::Decode(kMap.Encode(), &read));
  EXPECT_EQ(read, kMap);
  EXPECT_EQ(kMap.Encode(), "skep-ranges 1\n0x pool:a\n0x6d00ff 10.0.0.7:6379\n0x74 [::1]:7000\n");
}

TEST(RangeMapTest, RefusesWhatIsNoMap) {
  RangeMap read;
  for (const char* const bytes : {"",
                                  "skep-ranges 1\n",
                                  "skep-ranges 2\n0x pool:a\n",
                                  "skep-ranges 1\n- pool:a\n",
                                  "skep-ranges 1\n0x pool:a",
                                  "skep-ranges 1\n0xpool:a\n",
                                  "skep-ranges 1\n0x6 pool:a\n",
                                  "skep-ranges 1\n0x6g pool:a\n",
                                  "skep-ranges 1\n0x61 pool:a\n",
                                  "skep-ranges 1\n0x pool:a\n0x pool:b\n",
                                  "skep-ranges 1\n0x pool:a\n0x62 b:1\n0x61 c:1\n",
                                  "skep-ranges 1\n0x pool:\n",
                                  "skep-ranges 1\n0x pool:a/b\n",
                                  "skep-ranges 1\n0x here\n",
                                  "skep-ranges 1\n0x a:1,b:1\n",
                                  "skep-ranges 1\n0x a=1:1\n",
                                  "skep-ranges 1\n0x a:1 copying a:1\n",
                                  "skep-ranges 1\n0x a:1 copying pool:b\n",
                                  "skep-ranges 1\n0x pool:a copying b:1\n",
                                  "skep-ranges 1\n0x a:1 moving b:1\n",
                                  "skep-ranges 1\n0x a:1 opening\n",
                                  "skep-ranges 1\n0x a:1  b:1\n"}) {
    EXPECT_FALSE(RangeMap::Decode(bytes, &read)) << bytes;
  }
  RangeMap many;
  for (size_t i = 0; i <= kRangesMax; ++i) {
    many.entries.push_back({.lower = i == 0 ? "" : std::to_string(10'000 + i),
                            .target = "pool:a" + std::to_string(i)});
  }
  EXPECT_EQ(many.Check().code(), Code::kInvalidArgument);
  many.entries.pop_back();
  EXPECT_TRUE(many.Check().ok());
  many.entries.back().lower.assign(kCoordinatorBytesMax / 2, 'b');
  EXPECT_EQ(many.Check().code(), Code::kInvalidArgument);
}

TEST(RangeMapTest, MovesAreInTheText) {
  RangeMap map = kMap;
  EXPECT_EQ(map.BeginMove("t", "pool:b").code(), Code::kInvalidArgument);
  EXPECT_EQ(map.BeginMove("a", "[::1]:7000").code(), Code::kInvalidArgument) << "it is a pool's";
  EXPECT_EQ(map.BeginMove("t", "[::1]:7000").code(), Code::kInvalidArgument) << "they are there";
  ASSERT_TRUE(map.BeginMove("q", "[::1]:7000").ok());
  EXPECT_EQ(map.BeginMove("r", "c:1").code(), Code::kUnavailable);
  EXPECT_EQ(map.Encode(),
            "skep-ranges 1\n0x pool:a\n0x6d00ff 10.0.0.7:6379\n"
            "0x71 10.0.0.7:6379 copying [::1]:7000\n0x74 [::1]:7000\n");
  RangeMap read;
  ASSERT_TRUE(RangeMap::Decode(map.Encode(), &read));
  EXPECT_EQ(read, map);
  EXPECT_EQ(map.CancelMove("r").code(), Code::kInvalidArgument);
  EXPECT_EQ(map.CancelMove("t").code(), Code::kInvalidArgument);
  ASSERT_TRUE(map.CancelMove("q").ok());
  EXPECT_EQ(map, kMap);
}

TEST(RangeMapTest, Names) {
  EXPECT_TRUE(IsMapName("users"));
  for (const char* const name : {"", "a/b", ".", "..", "a b"})
    EXPECT_FALSE(IsMapName(name)) << name;
  EXPECT_FALSE(IsMapName(std::string(65, 'a')));
}

}  // namespace
}  // namespace skep::ranges
