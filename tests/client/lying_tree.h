// lying_tree.h: a tree that gives clients wrong links of its leaves.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "btree/btree_engine.h"
#include "engine/forwarding_engine.h"
#include "engine/leaf_links.h"

namespace skep {

// Answers with links that most likely name some node, but another one than they should: other LIDs
// of the tree, in generations that these may have; with fences of any keys; now and then with any
// 64 bits.
class LyingTree final : public ForwardingEngine, public HasLeafLinks {
 public:
  explicit LyingTree(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}

  LeafLinks LinksFrom(std::string_view from, uint32_t, size_t) const override {
    std::mt19937_64 rng(seed_.fetch_add(1));
    LeafLinks page;
    std::string lower(from);
    for (int i = 0; i < 8; ++i) {
      const uint64_t generation = 1 + rng() % 3;
      const uint64_t bits = rng() % 8 == 0 ? rng() : generation << 48 | (1 + rng() % 16);
      page.links.push_back({.lower = page.bytes.Copy(lower), .hint = {bits}});
      lower.push_back(static_cast<char>(1 + rng() % 255));
    }
    return page;
  }
  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    inner().AwaitRelease(ticket);
    gate_.Release(ticket);
    return ticket;
  }

 private:
  mutable std::atomic<uint64_t> seed_{1};
};

inline constexpr EngineInfo kLyingTree = {
    .name = "lying",
    .summary = "",
    .make = [](const EngineOptions& options) -> std::unique_ptr<Engine> {
      return std::make_unique<LyingTree>(BtreeEngine::Make(options));
    }};

}  // namespace skep
