// access_costs.h: fills a model of access_model.h and says what its operations cost on the way, and
// which of its settings is the best.
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
  // Equal numbers have equal lengths.
  PairBytes Of(uint64_t number) const;
};

// Means, of an operation.
struct MeanAccesses {
  double requests = 0;
  double lines = 0;
};
struct OperationCosts {
  double utilisation;    // that was asked for
  MeanAccesses get;      // of any key that is there
  MeanAccesses replace;  // the same
  MeanAccesses insert;   // of the last 2 % of the memory before
};

struct FillReport {
  double utilisation_max;          // where an insert failed
  std::vector<OperationCosts> at;  // of the utilisations that were reached
};

// Inserts pairs until nothing fits, and counts at these utilisations, in ascending order.
FillReport Fill(AccessModel& model, const AccessModelOptions& options, const PairSizes& sizes,
                std::span<const double> utilisations);

enum class Structure : uint8_t { kChaining, kCuckoo, kHopscotch };
std::unique_ptr<AccessModel> MakeModel(Structure structure, const AccessModelOptions& options);

struct Choice {
  double index_ratio;
  uint32_t inline_bytes_max;
  OperationCosts costs;
};

// For each utilisation the largest of these index ratios that holds it, which is the paper's rule;
// of the inline limits the one with the fewest requests of a GET and an insert there. None: no
// setting holds so much. Ratios in ascending order. `options` has the rest.
std::vector<std::optional<Choice>> BestChoices(Structure structure,
                                               const AccessModelOptions& options,
                                               const PairSizes& sizes,
                                               std::span<const double> index_ratios,
                                               std::span<const uint32_t> inline_limits,
                                               std::span<const double> utilisations);

}  // namespace skep::bench
