// figure_parts.h: what fills the figures of figures.h. The options have all defaults, and are
// checked. Each function adds columns and rows.
#pragma once

#include "bench/fat_btree/figures.h"
#include "bench/fat_btree/model_tree.h"
#include "bench/fat_btree/placements.h"

namespace skep::bench {

// The keys, accesses and switches that one point of a figure's axis stands for.
struct FigureSetting {
  uint64_t records;
  double alpha;
  double drift = 0;
  SwitchLimits limits;
};

FigureSetting SettingOf(const FatBTreeOptions& options);

void FillReads(FatBTreeReport& report);  // 5 to 9
void FillCalls(FatBTreeReport& report);  // 10
void FillInserts(FatBTreeReport& report);
void FillRanges(FatBTreeReport& report);

// The keys of a setting, what was accessed before the switches were filled, and what is counted.
struct Accesses {
  Accesses(const FatBTreeOptions& options, const FigureSetting& setting);

  RecordKeys keys;
  std::vector<uint64_t> hits;   // by place, of the training
  std::vector<uint64_t> asked;  // keys
};

// The two trees that figures compare.
struct NamedShape {
  const char* name;
  TreeShape shape;
};
inline constexpr NamedShape kShapes[] = {{"fan-out 16", kPaperShape}, {"ours", kOurShape}};

inline double Microseconds(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

}  // namespace skep::bench
