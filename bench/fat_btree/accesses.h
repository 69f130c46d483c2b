// accesses.h: the keys of a figure and the streams of accesses to them.
//
// Records have numbers from 0 on, and a record's key is the number hashed, as YCSB's are. A stream
// draws ranks by Zipf's law and hashes them to records, so hot keys lie anywhere. A share of the
// accesses, the drift, follows the same law with other records as its hot ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skep::bench {

class RecordKeys {
 public:
  explicit RecordKeys(uint64_t records);

  // All keys, rising. A record's place is the index of its key.
  std::span<const uint64_t> sorted() const { return sorted_; }
  uint64_t PlaceOf(uint64_t record) const;

 private:
  std::vector<uint64_t> sorted_;
};

// The key of a record, or of one that is inserted later.
uint64_t KeyOfRecord(uint64_t record);

struct StreamPlan {
  uint64_t accesses;
  double alpha;      // of Zipf's law; above 0 and not 1
  double drift = 0;  // 0 to 1
  uint64_t seed = 1;
};

// The records that are accessed, in turn.
std::vector<uint64_t> DrawRecords(uint64_t records, const StreamPlan& plan);

// The keys of the records.
std::vector<uint64_t> KeysOf(std::span<const uint64_t> records);

// How often each place is accessed.
std::vector<uint64_t> HitsOf(const RecordKeys& keys, std::span<const uint64_t> records);

}  // namespace skep::bench
