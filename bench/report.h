// report.h: the output of a benchmark: a table for people, one JSON object for programs.
//
// The keys of the JSON object are an interface: options under their own names without the dashes,
// figures under the names that README.md explains. An unknown figure is null.
#pragma once

#include <string>

#include "bench/compare.h"
#include "bench/expiry.h"
#include "bench/fat_btree/figures.h"
#include "bench/hetero_kv/figures.h"
#include "bench/hstore/figures.h"
#include "bench/kv_direct/figures.h"
#include "bench/limits.h"
#include "bench/net/net.h"
#include "bench/ycsb.h"

namespace skep::bench {

std::string TableOf(const LimitsReport& report);
std::string JsonOf(const LimitsReport& report);

std::string TableOf(const YcsbReport& report);
std::string JsonOf(const YcsbReport& report);

std::string TableOf(const CompareReport& report);
std::string JsonOf(const CompareReport& report);

std::string TableOf(const ExpiryReport& report);
std::string JsonOf(const ExpiryReport& report);

std::string TableOf(const NetReport& report);
std::string JsonOf(const NetReport& report);

std::string TableOf(const FigureTable& report);
std::string JsonOf(const KvDirectReport& report);
std::string JsonOf(const HeteroKvReport& report);
std::string JsonOf(const HStoreReport& report);
std::string JsonOf(const FatBTreeReport& report);

}  // namespace skep::bench
