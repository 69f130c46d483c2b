#include "pool/bucket_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace skep::pool {
namespace {

using Step = ChainReader::Step;

// The depth of a main bucket of a table with `buckets` buckets, by its definition: how many of the
// bits above have come to choose among its keys.
uint32_t DepthIn(uint64_t buckets, uint64_t bucket) {
  if (bucket >= buckets) return 0;
  uint32_t depth = 0;
  while (bucket >> depth != 0) ++depth;
  while (bucket + (uint64_t{1} << depth) < buckets) ++depth;
  return depth;
}

// The main bucket, found by following its splits.
uint64_t BucketIn(uint64_t buckets, uint64_t index) {
  uint64_t bucket = 0;
  for (uint32_t depth = 0; depth < 56; ++depth) {
    const uint64_t bit = index & uint64_t{1} << depth;
    if (bit != 0 && bucket + bit < buckets) bucket += bit;
    if (bit != 0 && bucket < bit) break;  // not split as far as that
  }
  return bucket;
}

BucketImage ImageOf(uint32_t depth, uint64_t next_plus_one = 0) {
  return {.slots = {}, .link = Link(depth, next_plus_one).bits()};
}
BucketImage MainImage(uint64_t buckets, uint64_t bucket) {
  return ImageOf(DepthIn(buckets, bucket));
}

TEST(BucketOf, IsLinearHashing) {
  for (uint64_t buckets = 1; buckets <= 130; ++buckets) {
    for (uint64_t index = 0; index < 300; ++index) {
      const uint64_t bucket = BucketOf(index | uint64_t{0xab} << 56, buckets);
      ASSERT_LT(bucket, buckets);
      ASSERT_EQ(bucket, BucketIn(buckets, index)) << index << " in " << buckets;
      for (uint64_t other = 0; other < buckets; ++other) {
        ASSERT_EQ(Owns(other, DepthIn(buckets, other), index), other == bucket);
      }
    }
  }
  EXPECT_EQ(BucketOf(~uint64_t{0}, uint64_t{1} << 32), 0xffffffff);
}

TEST(BucketsToldBy, IsWhatTheTableHasAtLeast) {
  for (uint64_t buckets = 1; buckets <= 130; ++buckets) {
    uint64_t most = 0;
    for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
      const uint32_t depth = DepthIn(buckets, bucket);
      ASSERT_TRUE(Exists(bucket, depth));
      ASSERT_LE(BucketsToldBy(bucket, depth), buckets);
      most = std::max(most, BucketsToldBy(bucket, depth));
    }
    EXPECT_EQ(most, buckets);  // the last split tells the number
    EXPECT_FALSE(Exists(buckets, 0));
  }
}

// How many main buckets a reader with this hint reads in a table of `buckets` that does not change.
uint32_t ReadsOf(uint64_t index, uint64_t hint, uint64_t buckets) {
  ChainReader reader(index, hint);
  for (uint32_t reads = 1;; ++reads) {
    const BucketAddress at = reader.next();
    EXPECT_FALSE(at.is_overflow);
    const uint64_t known = reader.buckets();
    if (reader.Take(MainImage(buckets, at.number)) == Step::kEnd) {
      EXPECT_EQ(at.number, BucketOf(index, buckets));
      EXPECT_LE(reader.buckets(), std::max(hint, buckets));
      return reads;
    }
    const bool existed = at.number < buckets;
    EXPECT_EQ(reader.buckets() > known, existed && known <= buckets);  // a hint only improves
    EXPECT_EQ(reader.next().number > at.number, existed);
    EXPECT_EQ(reader.next().number, reader.chain());
    if (reads > 2 * ChainReader::kRedirectsMax) {
      ADD_FAILURE() << "no end";
      return reads;
    }
  }
}

// Goal: a stale hint, and one of a larger table, lead to the key's chain; the bounds of the reads.
TEST(ChainReader, ComesToTheChainWithAnyHint) {
  uint32_t stale_most = 0;
  uint32_t ahead_most = 0;
  for (uint64_t buckets = 1; buckets <= 40; ++buckets) {
    for (uint64_t hint = 1; hint <= 127; ++hint) {
      for (uint64_t index = 0; index < 128; ++index) {
        const uint32_t reads = ReadsOf(index, hint, buckets);
        uint32_t& most = hint > buckets ? ahead_most : stale_most;
        most = std::max(most, reads);
      }
    }
  }
  EXPECT_EQ(stale_most, 3u);
  EXPECT_EQ(ahead_most, 7u);  // of a hint of 7 bits
}

// Goal: the bound holds while the table grows faster than one can read.
// Method: at every read the table has doubled since, so that each read meets a deeper bucket.
TEST(ChainReader, ItsRedirectsAreBoundedWhileTheTableGrows) {
  const uint64_t index = (uint64_t{1} << 56) - 1;
  ChainReader reader(index, 1);
  uint32_t redirects = 0;
  for (uint32_t depth = 1;; depth = std::min(depth + 1, Link::kDepthMax)) {
    if (reader.Take(ImageOf(depth)) != Step::kElsewhere) break;
    ++redirects;
    ASSERT_LE(redirects, ChainReader::kRedirectsMax);
  }
  EXPECT_EQ(redirects, ChainReader::kRedirectsMax);
}

TEST(ChainReader, FollowsTheChain) {
  ChainReader reader(5, 4);
  EXPECT_EQ(reader.next(), (BucketAddress{1, false}));
  EXPECT_EQ(reader.Take(ImageOf(2, 8)), Step::kMore);
  EXPECT_EQ(reader.next(), (BucketAddress{7, true}));
  EXPECT_EQ(reader.Take(ImageOf(2, 3)), Step::kMore);
  EXPECT_EQ(reader.next(), (BucketAddress{2, true}));
  EXPECT_EQ(reader.chain(), 1u);
  EXPECT_EQ(reader.Take(ImageOf(2)), Step::kEnd);
}

TEST(ChainReader, BeginsAgainWhereTheDepthChanges) {
  for (const uint32_t depth : {0, 1, 3}) {
    ChainReader reader(5, 4);
    EXPECT_EQ(reader.Take(ImageOf(2, 8)), Step::kMore);
    EXPECT_EQ(reader.Take(ImageOf(depth, 3)), Step::kElsewhere);
    EXPECT_EQ(reader.next(), (BucketAddress{1, false}));
    EXPECT_EQ(reader.Take(ImageOf(3)), Step::kElsewhere);  // split: 5 has moved
    EXPECT_EQ(reader.next(), (BucketAddress{5, false}));
    EXPECT_EQ(reader.buckets(), 6u);
    EXPECT_EQ(reader.Take(ImageOf(3)), Step::kEnd);
  }
}

TEST(Candidates, HaveTheSignature) {
  const Slot mine(7, 1, 0, 1, 1);
  const Slot other(8, 1, 0, 1, 1);
  const BucketImage image = {
      .slots = {0, mine.bits(), other.bits(), mine.bits(), 0, 0, mine.bits()}, .link = 0};
  EXPECT_EQ(CandidatesIn(image, uint64_t{7} << 56), 0b1001010u);
  EXPECT_EQ(CandidatesIn(image, uint64_t{9} << 56), 0u);
  // The digest of signature 0 has 1, so that an empty slot is nobody's candidate.
  EXPECT_EQ(CandidatesIn(image, 0), 0u);
}

TEST(CachedSlot, HoldsWhileWordAndDepthDo) {
  const Slot slot(7, 1, 0, 1, 1);
  const CachedSlot cached = {.slot = slot, .at = {9, true}, .chain = 1};
  BucketImage image = ImageOf(2, 4);
  image.slots[5] = slot.bits();
  EXPECT_TRUE(Holds(cached, 5, image));
  image.link = Link(3, 4).bits();  // split: 5 has moved, 9 has not
  EXPECT_FALSE(Holds(cached, 5, image));
  EXPECT_TRUE(Holds(cached, 9, image));
  image.slots[5] = Slot(7, 1, 1, 1, 1).bits();
  EXPECT_FALSE(Holds(cached, 9, image));
}

}  // namespace
}  // namespace skep::pool
