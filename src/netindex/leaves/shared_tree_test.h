// shared_tree_test.h: a tree whose leaves tests share over a fabric, and a reader of them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "btree/btree_engine.h"
#include "engine/leaf_links.h"
#include "netindex/leaves/leaf_reader.h"
#include "rma/fabric.h"

namespace skep::leaves {

// Small nodes, so that some thousand keys make leaves that split and join.
inline constexpr BtreeOptions kSharedNodes{.node_bytes = 2048, .log_bytes = 320, .shared = true};

// Keys of five fields for each user, which rise with the number. Their leaves have heads made of
// chosen bits (btree/heads/discriminative_bits.h).
inline std::string FieldOfUser(uint64_t number) {
  constexpr std::string_view kFields[] = {"email", "phone", "place", "state", "title"};
  return fmt::format("user:{:010}:{}", number / 5 * 7919, kFields[number % 5]);
}

// Thread safety: as Engine.
class SharedTree {
 public:
  explicit SharedTree(const BtreeOptions& options = kSharedNodes)
      : engine_(BtreeEngine::Make({.budget = &budget_, .index = {.btree = options}})) {
    shared_ = LeafLinksOf(*engine_)->Shared();
    engine_->gate().ShowIn(&board().released);
  }

  Engine& engine() { return *engine_; }
  LeafBoard& board() { return *reinterpret_cast<LeafBoard*>(shared_.board->begin()); }
  rma::EndpointOptions Exposed(Address listen) const {
    rma::EndpointOptions options{.listen = std::move(listen),
                                 .regions = {{.memory = shared_.board}, {.memory = shared_.rows}}};
    for (SharedMemory* const region : shared_.regions) options.regions.push_back({region});
    return options;
  }

  void Put(std::string_view key, std::string_view value) {
    Batch batch;
    batch.Put(key, value);
    Execute(batch);
  }
  void Delete(std::string_view key) {
    Batch batch;
    batch.Delete(key);
    Execute(batch);
  }
  void DeleteRange(const Range& range) {
    Batch batch;
    batch.DeleteRange(range);
    Execute(batch);
  }
  void Execute(Batch& batch) {
    batch.set_now_ms(1);
    engine_->AwaitRelease(engine_->Execute(batch));
  }
  // Frees what has left the tree.
  void Settle() {
    while (engine_->Maintain(1)) {
    }
  }

  // The link of the key's leaf, as of now.
  uint64_t LinkOf(std::string_view key) const {
    return LeafLinksOf(*engine_)->LinksFrom(key, 1, 1).links[0].hint.bits;
  }
  LeafQuestion Get(std::string_view key) const { return {.key = key, .link = LinkOf(key)}; }

 private:
  MemoryBudget budget_{0};
  std::unique_ptr<Engine> engine_;
  SharedLeaves shared_;
};

}  // namespace skep::leaves
