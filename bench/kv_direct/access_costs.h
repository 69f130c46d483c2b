// access_costs.h: fills a model of access_model.h, measures what its operations cost on the way,
// and finds the best of its settings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bench/kv_direct/access_model.h"

namespace skep::bench {

// Pairs of equally likely lengths. 0 < key <= pair_min <= pair_max.
struct PairSizes {
  uint32_t key;
  uint32_t pair_min;
  uint32_t pair_max;
  // Returns the lengths of pair `number`; equal numbers have equal lengths.
  PairBytes Of(uint64_t number) const;
};

// Means over operations.
struct MeanAccesses {
  double requests = 0;
  double lines = 0;
};
struct OperationCosts {
  double utilisation;    // the requested one
  MeanAccesses get;      // of any existing key
  MeanAccesses replace;  // of any existing key
  MeanAccesses insert;   // of the last 2 % of the memory before
};

struct FillReport {
  double utilisation_max;          // where an insert failed
  std::vector<OperationCosts> at;  // for the utilisations that were reached
};

// Inserts pairs until none fits, and measures at these utilisations, which are ascending.
FillReport Fill(AccessModel& model, const AccessModelOptions& options, const PairSizes& sizes,
                std::span<const double> utilisations);

enum class Structure : uint8_t { kChaining, kCuckoo, kHopscotch };
std::unique_ptr<AccessModel> MakeModel(Structure structure, const AccessModelOptions& options);

struct Choice {
  double index_ratio;
  uint32_t inline_bytes_max;
  OperationCosts costs;
};

// Returns for each utilisation the largest of these index ratios that reaches it, which is the
// paper's rule, and the inline limit with the fewest requests of a GET and an insert there.
// Nothing: no setting reaches it. Ratios must be ascending. `options` has the other settings.
std::vector<std::optional<Choice>> BestChoices(Structure structure,
                                               const AccessModelOptions& options,
                                               const PairSizes& sizes,
                                               std::span<const double> index_ratios,
                                               std::span<const uint32_t> inline_limits,
                                               std::span<const double> utilisations);

}  // namespace skep::bench
