// measure.h: the statistics of a tree, from all of its nodes or from a sample.
//
// A sample divides the rows of the page table into as many stretches of equal length as rows may be
// looked at, and takes one row at random from each. The sums are scaled up: bytes by the number of
// nodes, which is known exactly, chains by the number of rows. A tree that has no more rows than
// that is looked at whole. Chains may be of any length (a stalled reader, a hot key), so the number
// of older buffers that are looked at is bounded as well.
#pragma once

#include "btree/core.h"
#include "btree/tree_statistics.h"
#include "engine/engine.h"

namespace skep::btree {

struct SurveyBounds {
  uint64_t rows_max = UINT64_MAX;     // > 0
  uint64_t buffers_max = UINT64_MAX;  // older buffers of chains
};

// Fills in the first group of TreeStatistics, which needs a look at nodes. Thread-safe; the caller
// is inside an epoch. Cost: a few cache misses a row, most of them overlapping.
TreeStatistics SurveyNodes(const Core& core, const SurveyBounds& bounds);

// Adds the counters of the tree's parts: the second group. Thread-safe. Cost: a load or two for
// each thread; the mutexes of reclaimer, snapshots, arena and page table.
void AddCounters(const Core& core, TreeStatistics* tree);

// Reports all fields by name, but for huge_bytes.
void Report(const TreeStatistics& tree, const Engine::StatsVisitor& visit);

}  // namespace skep::btree
