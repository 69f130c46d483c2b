#include "netindex/switch/range_encoder.h"

#include <algorithm>

namespace skep::netindex {
namespace {

class Encoder {
 public:
  Encoder(std::span<const uint64_t> uppers, uint32_t stages, uint32_t chunk_bits)
      : uppers_(uppers), chunk_bits_(chunk_bits), stages_(stages), tables_(stages, 0) {}

  // Encodes the numbers that begin with `prefix` as the next table of the stage, whose number it
  // returns.
  uint32_t AddTable(uint32_t stage, uint64_t prefix) {
    const uint32_t table = tables_[stage]++;
    const uint32_t chunks = uint32_t{1} << chunk_bits_;
    for (uint32_t chunk = 0; chunk < chunks;) chunk = AddEntry(stage, table, prefix, chunk);
    return table;
  }
  std::vector<RangeStage> Take() { return std::move(stages_); }

 private:
  // Adds the entry that begins with the chunk; returns the chunk behind it.
  uint32_t AddEntry(uint32_t stage, uint32_t table, uint64_t prefix, uint32_t chunk) {
    const auto bits = static_cast<uint32_t>(stages_.size() - stage - 1) * chunk_bits_;
    const uint64_t in_block = (uint64_t{1} << bits) - 1;
    const uint64_t low = prefix | uint64_t{chunk} << bits;
    const auto range = std::ranges::lower_bound(uppers_, low);
    const auto number = static_cast<uint32_t>(range - uppers_.begin());
    if (*range < (low | in_block)) {
      const size_t at = stages_[stage].size();
      stages_[stage].push_back({table, chunk, chunk, true, 0});
      const uint32_t next = AddTable(stage + 1, low);
      stages_[stage][at].result = next;
      return chunk + 1;
    }
    const uint32_t last_chunk = (uint32_t{1} << chunk_bits_) - 1;
    const uint64_t table_high = prefix | uint64_t{last_chunk} << bits | in_block;
    // The last block that the range has as a whole.
    uint32_t high = last_chunk;
    if (*range < table_high) {
      high = static_cast<uint32_t>((*range + 1) >> bits & last_chunk) - 1;
    }
    stages_[stage].push_back({table, chunk, high, false, number});
    return high + 1;
  }

  const std::span<const uint64_t> uppers_;
  const uint32_t chunk_bits_;
  std::vector<RangeStage> stages_;
  std::vector<uint32_t> tables_;
};

}  // namespace

std::vector<RangeStage> EncodeRanges(std::span<const uint64_t> uppers, uint32_t stages,
                                     uint32_t chunk_bits) {
  Encoder encoder(uppers, stages, chunk_bits);
  encoder.AddTable(0, 0);
  return encoder.Take();
}

}  // namespace skep::netindex
