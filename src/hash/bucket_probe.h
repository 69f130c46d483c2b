// bucket_probe.h: sorts the keys of a group into hits and misses of their first buckets.
//
//   Sort      a key is a hit if an inline pair of its first bucket may be its own, else a miss
//   Miss      turns a hit into a miss: the pair is another key's
//   Leave     keeps the misses in the group, with their leads, and lists the lines they read next
//
// Which of the two a key is cannot be predicted. A branch for it, with a search in the middle of
// it, would cost more than the work on either; so keys are sorted first, without branches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "hash/groups.h"

namespace skep::hash {

// Owner: one execution of one batch at a time; the memory is used again.
class BucketProbe {
 public:
  struct Seen {
    uint16_t place;
    uint16_t like;  // Bucket::PairsLike()
    const Bucket* bucket;
  };

  // Sorts the keys key_of(place) of these places.
  template <typename KeyOf>
  void Sort(const Table& table, std::span<const uint16_t> places, KeyOf key_of) {
    uint32_t hits = 0;
    uint32_t misses = 0;
    for (const uint16_t place : places) {
      const Key key = key_of(place);
      const Bucket& bucket = table.FirstBucket(key);
      const auto like = static_cast<uint16_t>(bucket.PairsLike(key));
      const Seen seen = {.place = place, .like = like, .bucket = &bucket};
      hit_[hits] = seen;
      miss_[misses] = seen;
      hits += like != 0 ? 1 : 0;
      misses += like != 0 ? 0 : 1;
    }
    hits_ = hits;
    misses_ = misses;
  }
  std::span<const Seen> hits() const { return std::span(hit_).first(hits_); }
  void Miss(const Seen& hit) { miss_[misses_++] = hit; }

  // Keeps the misses in the group. Returns how many keys do not stay.
  template <typename KeyOf>
  uint32_t Leave(const Table& table, Groups& groups, Groups::Group& group, KeyOf key_of,
                 LinesToFetch* lines) {
    const uint32_t all = group.end - group.begin;
    uint16_t* at = groups.PlacesOf(group).data();
    for (const Seen& miss : std::span(miss_).first(misses_)) {
      const Table::Lead lead = table.LeadOf(*miss.bucket, key_of(miss.place));
      leads_[miss.place] = lead;
      table.AddLine(lead, lines);
      *at++ = miss.place;
    }
    group.end = static_cast<uint16_t>(group.begin + misses_);
    group.moves = table.moves();
    return all - misses_;
  }
  // Returns the lead of a place that was left in the group.
  Table::Lead& lead(uint16_t place) { return leads_[place]; }

 private:
  uint32_t hits_ = 0;
  uint32_t misses_ = 0;
  std::array<Seen, kWindow> hit_, miss_;
  std::array<Table::Lead, kWindow> leads_;
};

}  // namespace skep::hash
