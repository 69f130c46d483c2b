// figure_parts.h: what fills the figures of figures.h. The options are without zeros, and checked.
//
// Each function adds columns and rows, and returns what went wrong, for people, or nothing.
#pragma once

#include <string>

#include "bench/hstore/clients.h"
#include "bench/hstore/figures.h"

namespace skep::bench {

// 7, 8, 10
std::string FillBasic(HStoreReport& report);
std::string FillScan(HStoreReport& report);
std::string FillAccesses(HStoreReport& report);   // 2a
std::string FillBreakdown(HStoreReport& report);  // 9
std::string FillRecovery(HStoreReport& report);   // 11a
std::string FillFailure(HStoreReport& report);    // 11b

// A pool for all records and so many runs of options.ops writes.
FigurePoolOptions PoolOptionsOf(const HStoreOptions& options, PoolKind kind, const Records& records,
                                uint64_t runs);
// The plan of a measurement whose clients run this workload and remember no slots.
ClientsPlan PlanOf(const HStoreOptions& options, const Workload& workload, uint32_t clients);

}  // namespace skep::bench
