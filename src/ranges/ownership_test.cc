// The operations that a map of ranges lets a server do.
#include "ranges/ownership.h"

#include <gtest/gtest.h>

namespace skep::ranges {
namespace {

using Phase = RangeMap::Phase;

// "a:1" has c to f, f to h which is copied away, and m to the end; "b:1" is opening h to m.
RangeMap Map() {
  return {.entries = {{.lower = "", .target = "c:1"},
                      {.lower = "c", .target = "a:1"},
                      {.lower = "f", .target = "a:1", .phase = Phase::kCopying, .peer = "b:1"},
                      {.lower = "h", .target = "b:1", .phase = Phase::kOpening, .peer = "a:1"},
                      {.lower = "m", .target = "a:1"}},
          .version = 9};
}

const Ownership& OfA() {
  static const Ownership own(Map(), "a:1", 100);
  return own;
}

Code Of(const Ownership& own, Op op, std::string_view key, std::string_view other = "",
        uint8_t flags = 0) {
  Request request = {.op = op, .flags = flags, .key = key};
  if (IsRange(op) || op == Op::kMove) request.other = other;
  return own.WhyNot(request).code();
}

TEST(OwnershipTest, PointsLieInTheServersRanges) {
  for (const char* const key : {"c", "e", "f", "gz", "m", "z"}) {
    EXPECT_EQ(Of(OfA(), Op::kGet, key), Code::kOk) << key;
  }
  for (const char* const key : {"", "a", "bz", "h", "lz"}) {
    EXPECT_EQ(Of(OfA(), Op::kGet, key), Code::kMoved) << key;
    EXPECT_EQ(Of(OfA(), Op::kPut, key), Code::kMoved) << key;
  }
  EXPECT_EQ(Of(OfA(), Op::kPut, "ez"), Code::kOk);
  for (const Op op : {Op::kPut, Op::kInsert, Op::kDelete, Op::kExpire, Op::kApply}) {
    EXPECT_EQ(Of(OfA(), op, "f"), Code::kUnavailable);
  }
  EXPECT_EQ(Of(OfA(), Op::kRequirePresent, "f"), Code::kOk);
  EXPECT_EQ(OfA().WhyNot({.op = Op::kGet, .key = "a"}).detail(), 9u);
}

TEST(OwnershipTest, RangesLieInConsecutiveRanges) {
  EXPECT_EQ(Of(OfA(), Op::kScan, "c", "h"), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kScan, "d", "e"), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kScan, "c", "h1"), Code::kMoved);
  EXPECT_EQ(Of(OfA(), Op::kCount, "b", "d"), Code::kMoved);
  EXPECT_EQ(Of(OfA(), Op::kScan, "c", "", Request::kNoUpperBound), Code::kMoved);
  EXPECT_EQ(Of(OfA(), Op::kScan, "m", "", Request::kNoUpperBound), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kDeleteRange, "c", "f"), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kDeleteRange, "c", "f1"), Code::kUnavailable);
  EXPECT_EQ(Of(OfA(), Op::kDeleteRange, "e", "h1"), Code::kMoved);
  EXPECT_EQ(OfA().FloorOf("g"), "c");
  EXPECT_EQ(OfA().FloorOf("m"), "m");
}

TEST(OwnershipTest, BothKeysOfAMoveCount) {
  EXPECT_EQ(Of(OfA(), Op::kMove, "c", "m"), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kMove, "c", "a"), Code::kMoved);
  EXPECT_EQ(Of(OfA(), Op::kMove, "a", "c"), Code::kMoved);
  EXPECT_EQ(Of(OfA(), Op::kMove, "c", "g"), Code::kUnavailable);
}

TEST(OwnershipTest, WhatConcernsAllKeys) {
  const RangeMap whole = {.entries = {{.lower = "", .target = "a:1"}}};
  const Ownership all(whole, "a:1", 100);
  EXPECT_EQ(Of(all, Op::kSample, ""), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kSample, ""), Code::kMoved);
  // Whoever goes by an older map must not be told that all keys are gone.
  EXPECT_EQ(Of(all, Op::kDeleteAll, ""), Code::kOk);
  EXPECT_EQ(Of(OfA(), Op::kDeleteAll, ""), Code::kMoved);
  EXPECT_EQ(Of(Ownership(Map(), "d:1", 100), Op::kDeleteAll, ""), Code::kMoved);
  EXPECT_EQ(Of(Ownership(Map(), "d:1", 100), Op::kGet, "a"), Code::kMoved);
}

TEST(OwnershipTest, ALeaseEnds) {
  Ownership own(Map(), "a:1", 100);
  EXPECT_TRUE(own.IsLeasedAt(99));
  EXPECT_FALSE(own.IsLeasedAt(100));
  own.Extend(200);
  EXPECT_TRUE(own.IsLeasedAt(199));
}

}  // namespace
}  // namespace skep::ranges
