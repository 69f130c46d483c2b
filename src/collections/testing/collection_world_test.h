// collection_world_test.h: an engine with collections of parts of a few members, and calls of their
// functions, for tests.
#pragma once

#include <atomic>
#include <functional>
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
#include "engine/forwarding_engine.h"
#include "keyspace/factory.h"
#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep::collections {

using Words = std::vector<std::string>;

// An engine that counts what it is asked to read and to apply.
class ReadCounter final : public ForwardingEngine {
 public:
  explicit ReadCounter(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}

  // `event` happens before the next batch, or snapshot, that comes after so many others. None:
  // nothing happens.
  void Interrupt(int others, std::function<void()> event) {
    batches_ = others;
    event_ = std::move(event);
  }
  Version Execute(Batch& batch) override {
    HappenIfTime();
    const Version version = inner().Execute(batch);
    batches.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Op op = batch.requests()[slot].op;
      if (op == Op::kGet) gets.fetch_add(1, std::memory_order_relaxed);
      if (op == Op::kApply) applies.fetch_add(1, std::memory_order_relaxed);
      if (op != Op::kScan) continue;
      scans.fetch_add(1, std::memory_order_relaxed);
      items.fetch_add(batch.items(slot).size(), std::memory_order_relaxed);
    }
    return version;
  }
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override {
    HappenIfTime();
    return inner().OpenSnapshot(now_ms);
  }
  ReleaseGate& gate() override { return inner().gate(); }
  const ReleaseGate& gate() const override { return inner().gate(); }
  ReleaseGate& synced_gate() override { return inner().synced_gate(); }

  std::atomic<uint64_t> batches = 0;
  std::atomic<uint64_t> gets = 0;
  std::atomic<uint64_t> applies = 0;
  std::atomic<uint64_t> scans = 0;
  std::atomic<uint64_t> items = 0;  // that scans have found

 private:
  void HappenIfTime() {
    if (event_ && batches_-- == 0) std::exchange(event_, nullptr)();
  }

  int batches_ = 0;  // before event_; one thread only
  std::function<void()> event_;
};

// An engine whose collections have at most `value_bytes` in one value; 0: of any size.
class World {
 public:
  explicit World(size_t value_bytes, const std::string& engine = "btree") {
    auto made = FindEngine(engine)->make({.budget = &budget_});
    SKEP_CHECK(made != nullptr);
    auto counter = std::make_unique<ReadCounter>(std::move(made));
    inner_ = counter.get();
    engine_ = std::move(counter);
    if (value_bytes == 0) return;
    SKEP_CHECK(CanHaveCollections(engine_->traits()));
    engine_ = std::make_unique<CollectionEngine>(std::move(engine_), value_bytes);
  }
  Engine& engine() { return *engine_; }
  MemoryBudget& budget() { return budget_; }
  ReadCounter& reads() { return *inner_; }

  // Does what there is to do in the background, to its end.
  void MaintainAll(uint64_t now_ms = 0) {
    while (engine().Maintain(now_ms)) {
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
  ReadCounter* inner_;
};

inline std::string TextsOperand(const Words& words) {
  Scratch scratch;
  const std::vector<std::string_view> views(words.begin(), words.end());
  return std::string(types::JoinTexts(views, scratch));
}

// The operand of a function that gives fields a deadline.
inline std::string FieldDeadlineOperand(uint64_t deadline_ms, const Words& words,
                                        uint8_t when = 0) {
  Scratch scratch;
  const types::FieldDeadline deadline = {.when = when, .deadline_ms = deadline_ms};
  return std::string(types::WriteFieldDeadline(deadline, TextsOperand(words), scratch));
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
                  std::string_view operand, uint64_t now_ms = 0) {
  Batch batch;
  batch.set_now_ms(now_ms);
  batch.Apply(key, Named(function), operand);
  engine.AwaitRelease(engine.Execute(batch));
  return ReplyOf(batch.outcome(0));
}

}  // namespace skep::collections
