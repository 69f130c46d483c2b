// bucket_reader.h: the rules by which a client finds a slot in the hash server's memory.
//
// Pure functions of images of buckets (bucket.h). A fabric brings the images by one-sided reads:
// the words of one image were read at any instants of the read, in any order.
//
//   index word, hint --BucketOf--> main bucket --link--> overflow bucket --link--> ... --> absent
//                                    |  ^                     | its depth is not the main bucket's
//                     its depth says |  |  BucketsToldBy      |
//                     the key is     +--+                     +--> begin again at the main bucket
//                     elsewhere
//
// Rules. ChainReader applies R1 to R3; R4 is its caller's.
//   R1  A main bucket b answers for a key if its depth d owns the key: LowBits(index, d) == b. If
//       not, the depth tells how many buckets the table has at least, so which one to read instead.
//   R2  An overflow bucket answers if its depth is the main bucket's. If not, the chain was split
//       meanwhile, or the reader is late and the bucket in another chain: it begins again. (The
//       argument below does not need R2 of a reader in time, whose main bucket was read first.)
//   R3  Candidates are the slots with the key's signature. The reader compares the keys themselves.
//   R4  Only an answer counts whose reads, from the first of the main bucket R1 ended at to the
//       last of the items, took no longer than L by the reader's clock, judged when the last of
//       them has completed. "Absent" needs the whole chain besides.
//
// What the server guarantees (hash_index.h, G1 to G5): a key has one word at a time, and updates
// happen in place; a bucket and its chain are whole before a depth or a link leads to them; a split
// leaves the words that it moved as they are, frozen, for 2L; an overflow bucket that left its
// chain is empty, and is not used again for 2L.
//
// Why an answer is linearizable. Let the reads last from t0 to t1, t1 - t0 <= L.
//   Found. The word was read at an instant t. If it was live then, its item was the key's at t. If
//   it was frozen, a split of this chain at an instant s < t froze it, and by (1) s > t0. Then the
//   item was the key's at s, and s is within the read.
//   (1) The image of the word's bucket has a depth that owns the key, and the split raised the
//       depth of that bucket to one that does not. So the link was read before s, and t0 before
//       that. The split at s is the only one that can have frozen it: an earlier one would have
//       raised the depth beyond owning the key before the link was read.
//   Absent. Suppose that the key was present at every instant from t0 to t1. At t0 it was in this
//   chain, as nothing leads to a bucket before it is made. Its word then stays in one slot X of the
//   chain, up to a split at s > t0 that moves it, after which X is frozen until after t1. The links
//   from the main bucket to X's stay as they are as long as X is not zero, since only empty buckets
//   at the end of a chain are unlinked. So the reader came to X's bucket, found a word with the
//   key's signature in X, and did not say "absent". Hence the key was absent at some instant of the
//   read. (DELETE, then PUT to another slot Y: a reader that misses both read X after the DELETE
//   and Y before the PUT. One of the two is within the read or both are, and between the two the
//   key was absent.)
//   Order among readers: an answer that was frozen at s comes from a reader that began before s, so
//   before anybody could see or write a later one.
//
// A hint is the number of buckets of this table at some time: from its header, or told by a depth.
// The number never falls, so a hint is stale, but never ahead. A hint of another table (an index
// server that was deposed) may be ahead. Then a bucket that was never used, of depth 0, leads back
// to one that exists; but a reader must not take such a hint on purpose: it could read a bucket's
// slots before the split that makes the bucket, and its depth after it, and say "absent" wrongly.
// Whoever turns to another table drops hints and cached slots.
//
// Cached slots (CachedSlot). A client that knows a slot reads its bucket and its item at once. The
// slot holds if the bucket's image still has the word, and a depth that owns the key for the main
// bucket of then. Why, also for an overflow bucket that may have come into another chain since: no
// two items of one time have the same word, so the word is this key's wherever it is. (A chunk's
// words come again after 256 generations; but the reader compares the item's key, as ever.)
//   Live when it was read, or frozen by a split at s > t0: the item was the key's at that instant.
//   Frozen before t0, by a split of a chain c: up to t1 the bucket was in no other chain than c, as
//   it had the word, and an unlinked bucket waits for 2L. So the link that was read has a depth of
//   c after the split, which sends the key to a bucket of a higher number than c. That is not the
//   cached main bucket: a key moves to higher numbers only, so if the cached one were higher than
//   c, the client had found the slot after the split, in a bucket that was in chain c then.
//
// Written slots (WrittenSlot). A client that has put a key knows its slot, and guesses the bucket.
//   If it had cached the key: an update stores into that word, so the bucket is the one where it
//   was, unless a split has moved it. The argument above holds, as the cached main bucket is one
//   that the key had before the write: no higher than that of the chain whose split freezes the
//   new word.
//   If not: the main bucket that the hint names, and what is read there is what a ChainReader would
//   have read: the depth owns the key (R1), and the word is the key's.
// A wrong guess costs a read, after which the key is looked up as ever.
//
// The order of two reads. The read of a bucket that a link or a depth leads to begins after the
// image with that link is there: on a fabric, after its completion; in shared memory, after an
// acquire load of the link.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "pool/bucket.h"
#include "pool/key_digest.h"
#include "pool/slot.h"

namespace skep::pool {

// The main bucket of a key in a table of `buckets` > 0 buckets: linear hashing.
inline uint64_t BucketOf(uint64_t index, uint64_t buckets) {
  const auto level = static_cast<uint32_t>(std::bit_width(buckets) - 1);
  const uint64_t bucket = LowBits(index, level + 1);
  return bucket < buckets ? bucket : LowBits(index, level);
}

// True if the main bucket `bucket` with this depth has the chain of the key.
inline bool Owns(uint64_t bucket, uint32_t depth, uint64_t index) {
  return LowBits(index, depth) == bucket;
}

// False if a main bucket with this depth was never used: the table has no such bucket yet.
inline bool Exists(uint64_t bucket, uint32_t depth) { return LowBits(bucket, depth) == bucket; }

// How many buckets a table has at least whose main bucket `bucket` exists with this depth.
inline uint64_t BucketsToldBy(uint64_t bucket, uint32_t depth) {
  if (depth == 0) return 1;
  return (uint64_t{1} << (depth - 1)) + LowBits(bucket, depth - 1) + 1;
}

// Bit i says that slot i of the image has the key's signature.
inline uint32_t CandidatesIn(const BucketImage& image, uint64_t index) {
  const uint8_t signature = KeyDigest::SignatureOf(index);
  uint32_t candidates = 0;
  for (uint32_t i = 0; i < kBucketSlots; ++i) {
    candidates |= uint32_t{Slot(image.slots[i]).signature() == signature} << i;
  }
  return candidates;
}

// Where a bucket lies: in the table, or among the overflow buckets.
struct BucketAddress {
  uint64_t number = 0;
  bool is_overflow = false;

  friend bool operator==(const BucketAddress&, const BucketAddress&) = default;
};

// The way of one key through the table. The caller reads next(), passes the image to Take(), and so
// on. Until then it may not read next(): see "The order of two reads".
//
// Bounds. A stale hint costs at most two reads more in a table that does not change. In one that
// grows they are kRedirectsMax at most: each is of a main bucket with a higher number, the key's
// index word cut off at a higher bit. A hint of another table costs at most one read for each of
// its bits, of main buckets with lower and lower numbers, before these. A reader begins again (R2)
// at most once for each split of the chain meanwhile.
class ChainReader {
 public:
  static constexpr uint32_t kRedirectsMax = Link::kDepthMax;

  enum class Step : uint8_t {
    kElsewhere,  // the image says nothing about the key: read next(), which is a main bucket
    kMore,       // the image counts: look at its candidates, then read next()
    kEnd,        // the image counts, and is the chain's last one
  };

  // `buckets` is the hint, at least 1.
  ChainReader(uint64_t index, uint64_t buckets)
      : index_(index), buckets_(buckets), chain_(BucketOf(index, buckets)), next_{chain_, false} {}

  BucketAddress next() const { return next_; }
  // The main bucket of the chain: what a CachedSlot wants.
  uint64_t chain() const { return chain_; }
  // The hint, or a better one that the images told.
  uint64_t buckets() const { return buckets_; }

  // `image` is of next().
  Step Take(const BucketImage& image) {
    const Link link(image.link);
    if (next_.is_overflow) {
      if (link.depth() != depth_) return GoToMain();  // R2
    } else {
      if (!Owns(chain_, link.depth(), index_)) return GoElsewhere(link.depth());  // R1
      depth_ = link.depth();
      buckets_ = std::max(buckets_, BucketsToldBy(chain_, depth_));
    }
    if (!link.has_next()) return Step::kEnd;
    next_ = {link.next(), true};
    return Step::kMore;
  }

 private:
  Step GoElsewhere(uint32_t depth) {
    buckets_ = Exists(chain_, depth) ? BucketsToldBy(chain_, depth) : chain_;
    chain_ = BucketOf(index_, buckets_);
    return GoToMain();
  }
  Step GoToMain() {
    next_ = {chain_, false};
    return Step::kElsewhere;
  }

  uint64_t index_;
  uint64_t buckets_;
  uint64_t chain_;
  uint32_t depth_ = 0;  // of the main bucket
  BucketAddress next_;
};

// A slot that a client found, and where.
struct CachedSlot {
  Slot slot;
  BucketAddress at;
  uint64_t chain = 0;  // the main bucket of the chain
};

// Returns the entry to cache for a key that the client has put. `known` is the entry that the
// client had cached before, or null.
inline CachedSlot WrittenSlot(Slot slot, const CachedSlot* known, uint64_t index, uint64_t hint) {
  if (known != nullptr) return {.slot = slot, .at = known->at, .chain = known->chain};
  const uint64_t chain = BucketOf(index, hint);
  return {.slot = slot, .at = {.number = chain}, .chain = chain};
}

// True if the slot is the key's still, as of the read of the image of `cached.at`, under rule R4.
inline bool Holds(const CachedSlot& cached, uint64_t index, const BucketImage& image) {
  return Owns(cached.chain, Link(image.link).depth(), index) &&
         std::ranges::find(image.slots, cached.slot.bits()) != image.slots.end();
}

}  // namespace skep::pool
