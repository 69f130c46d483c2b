// measure.h: what a tree is made of, by looking at its nodes: at all of them, or at a sample.
//
// A sample cuts the rows of the page table into as many stretches of the same length as it may look
// at rows, and takes one row at random in each. What it finds is scaled up: bytes by the number of
// nodes, which is known exactly, chains by the number of rows. A tree that has no more rows than
// that is looked at whole. Chains may be of any length (a stalled reader, a hot key), so the number
// of older buffers it looks at is bounded as well.
#pragma once

#include "btree/core.h"
#include "btree/tree_statistics.h"
#include "engine/engine.h"

namespace skep::btree {

struct SurveyBounds {
  uint64_t rows_max = UINT64_MAX;     // > 0
  uint64_t buffers_max = UINT64_MAX;  // older ones
};

// What can be told only by looking at nodes: the first group of TreeStatistics. Thread-safe; the
// caller is inside an epoch. Cost: a few cache misses a row, most of them overlapping.
TreeStatistics SurveyNodes(const Core& core, const SurveyBounds& bounds);

// Adds what the tree's parts count: the second group. Thread-safe. Cost: a load or two a thread;
// the mutexes of reclaimer, snapshots, arena and page table.
void AddCounters(const Core& core, TreeStatistics* tree);

// All of it by name, but for huge_bytes.
void Report(const TreeStatistics& tree, const Engine::StatsVisitor& visit);

}  // namespace skep::btree
