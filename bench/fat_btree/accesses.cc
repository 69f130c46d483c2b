#include "bench/fat_btree/accesses.h"

#include <algorithm>

#include "bench/zipf.h"

namespace skep::bench {
namespace {

// Added to ranks that follow the other distribution: above all ranks of the first one.
constexpr uint64_t kOtherRanks = uint64_t{1} << 40;

}  // namespace

uint64_t KeyOfRecord(uint64_t record) { return ScrambleFnv(record); }

RecordKeys::RecordKeys(uint64_t records) {
  sorted_.reserve(records);
  for (uint64_t record = 0; record < records; ++record) sorted_.push_back(KeyOfRecord(record));
  std::ranges::sort(sorted_);
}

uint64_t RecordKeys::PlaceOf(uint64_t record) const {
  const auto at = std::ranges::lower_bound(sorted_, KeyOfRecord(record));
  return static_cast<uint64_t>(at - sorted_.begin());
}

std::vector<uint64_t> DrawRecords(uint64_t records, const StreamPlan& plan) {
  SeededRandom random(plan.seed);
  Zipf zipf(records, plan.alpha);
  std::vector<uint64_t> drawn;
  drawn.reserve(plan.accesses);
  while (drawn.size() < plan.accesses) {
    const uint64_t other = UnitInterval(random) < plan.drift ? kOtherRanks : 0;
    drawn.push_back(ScrambleFnv(zipf.Draw(random) + other) % records);
  }
  return drawn;
}

std::vector<uint64_t> KeysOf(std::span<const uint64_t> records) {
  std::vector<uint64_t> keys;
  keys.reserve(records.size());
  for (const uint64_t record : records) keys.push_back(KeyOfRecord(record));
  return keys;
}

std::vector<uint64_t> HitsOf(const RecordKeys& keys, std::span<const uint64_t> records) {
  std::vector<uint64_t> hits(keys.sorted().size());
  for (const uint64_t record : records) ++hits[keys.PlaceOf(record)];
  return hits;
}

}  // namespace skep::bench
