// btree_engine.h: Honeycomb's tree as an engine.
//
// Points of an unordered batch, and all requests of an atomic batch that writes, act on the newest
// state. Ranges, and atomic batches that only read, read at the version that is released when they
// begin. Nothing waits for a version to be released: the ticket says what the caller has to wait
// for.
//
// Cost: a point is one way down the tree, or straight to a leaf with a good hint. A write copies
// its leaf once in about a dozen times. A range delete stops the writers for some microseconds, and
// takes itself a step a leaf, for counting. Memory: a leaf is as long as its items and its log
// room.
#pragma once

#include <memory>
#include <optional>

#include "btree/tree_statistics.h"
#include "engine/engine_info.h"
#include "engine/leaf_links.h"

namespace skep {

namespace btree {
struct Core;
struct SurveyBounds;
}  // namespace btree

// The tree without the layout of its nodes; BtreeEngineOf (btree_engine_of.h) is the tree of one
// layout.
class BtreeEngine : public Engine, public HasLeafLinks {
 public:
  static const EngineInfo kInfo;

  // Returns null if the system has no memory for an empty tree.
  static std::unique_ptr<Engine> Make(const EngineOptions& options);

  const EngineTraits& traits() const final { return traits_; }
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) final;
  void CloseSnapshot(SnapshotRef snapshot) final;
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) final;
  void StartAfter(Version version, uint64_t now_ms) final;
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) final;
  EngineStatistics Statistics() const final;
  // Reports TreeStatistics by name, from a sample of the nodes and without huge_bytes, and the age
  // of the oldest snapshot in milliseconds.
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const final;

  SharedLeaves Shared() const final;

  // The statistics of all nodes. Walks the page table and asks the system for huge_bytes, so it
  // takes time with the number of nodes. Thread-safe.
  TreeStatistics Tree() const;

  // The parts of the tree. Never const, since a reader has a thread state in it, too.
  virtual btree::Core& core() const = 0;

 protected:
  explicit BtreeEngine(const EngineOptions& options);

  const EngineOptions& options() const { return options_; }

 private:
  // Arms a watch; nothing if there is no room for it.
  virtual std::optional<uint64_t> AddWatch(std::string_view key, uint64_t now_ms) = 0;

  Result<SnapshotRef> Pin(uint64_t now_ms, uint64_t until_ms);
  TreeStatistics Survey(const btree::SurveyBounds& bounds) const;

  const EngineOptions options_;
  const EngineTraits traits_;
};

}  // namespace skep
