#include "hash/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"

namespace skep::hash {
namespace {

constexpr uint32_t kFillSlotsMax = 20;  // more gains little memory, and costs many lines
constexpr int kPositions = 8;           // points of a round of splits at which the load is computed
constexpr double kLoadMin = 0.5;        // pairs a bucket; an insert adds two buckets at most
constexpr double kBucketBytes = sizeof(Bucket);

// The memory that a pair takes in a table, inline or not.
struct PairShape {
  bool is_inline;       // if a bucket has room
  uint32_t slots;       // wanted
  double record_bytes;  // with the body of a large one
  double record_lines;
};

PairShape ShapeOf(const TableOptions& options, size_t key_bytes, size_t value_bytes) {
  const size_t bytes = key_bytes + value_bytes;
  const std::string zeros(std::max(key_bytes, value_bytes), '\0');
  const Pair pair = {.key = {zeros.data(), key_bytes}, .value = {zeros.data(), value_bytes}};
  const Record::Form form = Record::FormOf(pair);
  const size_t record = Record::SlabBytes(pair, form);
  const bool is_large = form == Record::Form::kLarge;
  const bool is_inline = bytes <= options.inline_bytes_max;
  return {.is_inline = is_inline,
          .slots = is_inline ? Bucket::SlotsFor(bytes) : 1,
          .record_bytes = static_cast<double>(Slabs::BytesOf(Slabs::ClassOf(record)) +
                                              (is_large ? Arena::RoundUp(bytes) : 0)),
          .record_lines = std::ceil(static_cast<double>(record) / kBucketBytes) +
                          (is_large ? std::ceil(static_cast<double>(bytes) / kBucketBytes) : 0)};
}

// Sums over the pairs of one chain.
struct ChainSums {
  double bytes = 0;  // of buckets and records
  double get_lines = 0;
  double put_lines = 0;

  void Add(const ChainSums& more, double weight) {
    bytes += more.bytes * weight;
    get_lines += more.get_lines * weight;
    put_lines += more.put_lines * weight;
  }
};

// Adds a pair that has `before` others of its chain before it.
void AddPair(const PairShape& shape, uint64_t before, ChainSums& sums) {
  const uint32_t inlined = shape.is_inline ? Bucket::kSlots / shape.slots : 0;
  const uint32_t of_bucket = inlined + (Bucket::kSlots - inlined * shape.slots);
  const auto buckets = static_cast<double>(before / of_bucket + 1);
  const uint64_t place = before % of_bucket;
  if (place == 0 && before > 0) sums.bytes += sizeof(Bucket);
  if (place < inlined) {
    sums.get_lines += buckets;
    sums.put_lines += buckets + 1;
  } else {
    sums.bytes += shape.record_bytes;
    sums.get_lines += buckets + shape.record_lines;
    sums.put_lines += buckets + 2 * shape.record_lines;
  }
}

// Returns the expected sums of a bucket of the index, with `load` pairs on average.
ChainSums ExpectChain(const PairShape& shape, double load) {
  ChainSums sums = {.bytes = sizeof(Bucket)};
  ChainSums expected;
  double probability = std::exp(-load);
  const auto most = static_cast<uint64_t>(load + 10 * std::sqrt(load) + 10);
  for (uint64_t pairs = 0; pairs < most; ++pairs) {
    expected.Add(sums, probability);
    AddPair(shape, pairs, sums);
    probability *= load / static_cast<double>(pairs + 1);
  }
  return expected;
}

}  // namespace

TableLayout ExpectLayout(const TableOptions& options, size_t key_bytes, size_t value_bytes) {
  const PairShape shape = ShapeOf(options, key_bytes, value_bytes);
  const double load = std::max(kLoadMin, static_cast<double>(options.fill_slots) / shape.slots);
  ChainSums sums;
  for (int i = 0; i < kPositions; ++i) {
    const double position = (i + 0.5) / kPositions;
    const double split = 2 * position / (1 + position);  // the share of all buckets that are split
    const double load_of_split = load * (1 + position) / 2;
    sums.Add(ExpectChain(shape, load_of_split), split / kPositions);
    sums.Add(ExpectChain(shape, 2 * load_of_split), (1 - split) / kPositions);
  }
  return {.utilisation = load * static_cast<double>(key_bytes + value_bytes) / sums.bytes,
          .get_lines = sums.get_lines / load,
          .put_lines = sums.put_lines / load};
}

TableOptions ChooseTableOptions(size_t key_bytes, size_t value_bytes, double utilisation) {
  const auto bytes = static_cast<uint32_t>(std::min<size_t>(key_bytes + value_bytes, UINT32_MAX));
  TableOptions best;
  TableLayout of_best = {};
  const auto consider = [&](const TableOptions& options) {
    const TableLayout layout = ExpectLayout(options, key_bytes, value_bytes);
    const bool reaches = layout.utilisation >= utilisation;
    const bool best_reaches = of_best.utilisation >= utilisation;
    const bool is_better = reaches && best_reaches ? layout.lines() < of_best.lines()
                                                   : layout.utilisation > of_best.utilisation;
    if (!is_better) return;
    best = options;
    of_best = layout;
  };
  for (uint32_t fill_slots = 1; fill_slots <= kFillSlotsMax; ++fill_slots) {
    if (bytes <= Bucket::kInlineBytesMax) {
      consider({.inline_bytes_max = bytes, .fill_slots = fill_slots});
    }
    const uint32_t less = std::min(TableOptions{}.inline_bytes_max, std::max(bytes, 1u) - 1);
    consider({.inline_bytes_max = less, .fill_slots = fill_slots});
  }
  return best;
}

TableLayout MeasureLayout(const TableOptions& options, size_t key_bytes, size_t value_bytes,
                          uint32_t pairs) {
  constexpr uint32_t kMoments = 4;
  constexpr uint32_t kStride = 7;  // between the measured keys
  MemoryBudget budget;
  Arena arena({.budget = &budget, .pages = Pages::kPlain});
  Table table(arena, budget, options);
  SKEP_CHECK(key_bytes > 2 && table.Reserve());
  std::string key(key_bytes, '\0');
  const std::string value(value_bytes, 'v');
  const auto key_of = [&](uint32_t number) {
    std::memcpy(key.data(), &number, 3);
    return KeyOf(key);
  };
  TableLayout sum = {};
  uint32_t count = 0;
  for (uint32_t moment = 1; moment <= kMoments; ++moment) {
    for (const uint32_t end = pairs / 2 + pairs / 2 * moment / kMoments; count < end; ++count) {
      SKEP_CHECK(table.Store(key_of(count), value, 0, Arena::Limit::kObey));
    }
    double looked_at = 0;
    TableLayout lines = {};
    for (uint32_t number = 0; number < count; number += kStride, ++looked_at) {
      const Table::Lines of_key = table.LinesOf(key_of(number));
      lines.get_lines += of_key.get;
      lines.put_lines += of_key.put;
    }
    const auto held = static_cast<double>(table.bucket_count() * sizeof(Bucket) +
                                          arena.Statistics().allocated_bytes);
    sum.utilisation +=
        static_cast<double>(count) * static_cast<double>(key_bytes + value_bytes) / held / kMoments;
    sum.get_lines += lines.get_lines / looked_at / kMoments;
    sum.put_lines += lines.put_lines / looked_at / kMoments;
  }
  return sum;
}

}  // namespace skep::hash
