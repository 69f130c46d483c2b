// collection_world_test.h: an engine with collections of parts of a few members, and calls of their
// functions, for tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "collections/collection_engine.h"
#include "collections/layout.h"
#include "engine/engine.h"
#include "keyspace/factory.h"
#include "types/collection.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {

using Words = std::vector<std::string>;

// An engine whose collections have at most `value_bytes` in one value; 0: of any size.
class World {
 public:
  explicit World(size_t value_bytes, const std::string& engine = "btree") {
    auto made = FindEngine(engine)->make({.budget = &budget_});
    SKEP_CHECK(made != nullptr);
    inner_ = made.get();
    engine_ = std::move(made);
    if (value_bytes == 0) return;
    SKEP_CHECK(CanHaveCollections(engine_->traits()));
    engine_ = std::make_unique<CollectionEngine>(std::move(engine_), value_bytes);
  }
  Engine& engine() { return *engine_; }
  MemoryBudget& budget() { return budget_; }

  // Does what there is to do in the background, to its end.
  void MaintainAll() {
    while (engine().Maintain(0)) {
    }
  }
  // The items of a part of all collections, and how many there are.
  std::map<std::string, std::string> ContentsOf(Part part) {
    Batch batch;
    batch.Scan(Range::From(kHiddenFrom), {.any_type = true});
    inner_->Execute(batch);
    std::map<std::string, std::string> items;
    for (const Item& item : batch.items(0)) {
      if (item.key[kHiddenFrom.size() + 8] == static_cast<char>(part)) {
        items.emplace(item.key, item.value);
      }
    }
    return items;
  }
  uint64_t ItemsOf(Part part) { return ContentsOf(part).size(); }

 private:
  MemoryBudget budget_{0};
  std::unique_ptr<Engine> engine_;
  Engine* inner_;
};

inline std::string TextsOperand(const Words& words) {
  Scratch scratch;
  const std::vector<std::string_view> views(words.begin(), words.end());
  return std::string(types::JoinTexts(views, scratch));
}

inline const Function* Named(std::string_view name) {
  const Function* const function = FindFunction(name);
  SKEP_CHECK(function != nullptr);
  return function;
}

// What a call of a function has answered.
struct Reply {
  Verdict verdict = Verdict::kDone;
  Code code = Code::kOk;
  std::string text = {};
  int64_t integer = 0;
  std::string value = {};
  bool present = false;
  friend bool operator==(const Reply&, const Reply&) = default;
};

inline Reply ReplyOf(const Outcome& out) {
  // Nothing else counts of a request that was taken back.
  if (out.verdict == Verdict::kAborted) return {.verdict = out.verdict};
  return {.verdict = out.verdict,
          .code = out.status.code(),
          .text = out.status.ok() ? std::string() : std::string(out.status.what()),
          .integer = out.integer,
          .value = std::string(out.value),
          .present = out.present};
}

inline Reply Call(Engine& engine, std::string_view key, std::string_view function,
                  std::string_view operand) {
  Batch batch;
  batch.Apply(key, Named(function), operand);
  engine.AwaitRelease(engine.Execute(batch));
  return ReplyOf(batch.outcome(0));
}

}  // namespace skep::collections
