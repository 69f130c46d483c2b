// hot_keys.h: reads of a few keys that are neighbours in the key order: one key, or one leaf of a
// tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "bench/op_stream.h"
#include "bench/record_format.h"

namespace skep::bench {

// Returns, of keys 0 .. items-1, the numbers of the `count` keys that are first in the order of
// their bytes, or of all if they are fewer. Renders each key.
std::vector<uint64_t> FirstKeys(KeyFormat format, uint64_t items, uint32_t count);

class HotKeys final : public OpSource {
 public:
  // `numbers` must outlive the source and not be empty.
  HotKeys(const std::vector<uint64_t>& numbers, uint64_t seed) : numbers_(numbers), random_(seed) {}

  void Fill(OpStream& stream, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      stream.Add(OpKind::kRead, numbers_[random_.Below(numbers_.size())]);
    }
  }

 private:
  const std::vector<uint64_t>& numbers_;
  SeededRandom random_;
};

}  // namespace skep::bench
