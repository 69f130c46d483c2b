// Fuzzes the engine with small leaves, beside std::map.
//
//   byte 0   how scans read leaves, and where leaves are split
//   then     commands, four bytes each: which (and a step), how many, and the first key
//
// Keys are runs: `count` keys from `first` on, `step` apart; so a few bytes fill and empty leaves.
// Every answer must be the map's, and in the end the engine's Verify() must find nothing.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "hashleaf/hashleaf_engine.h"

namespace skep::hashleaf {
namespace {

class Subject {
 public:
  explicit Subject(uint8_t choices) {
    EngineOptions options{.budget = &budget_};
    options.index.hashleaf = {.key_bytes = 4, .value_bytes = 4};
    engine_ = HashleafEngine::Make(options, {.leaf_bytes = 4096,
                                             .scan_by = static_cast<ScanBy>(choices % 4),
                                             .split_at = static_cast<SplitAt>(choices / 4 % 2)});
  }
  ~Subject() { SKEP_CHECK(engine_->Verify() == nullptr); }

  void Do(uint8_t what, uint8_t count, uint16_t first) {
    // The keys spread over the whole range, both ends included.
    const uint32_t begin = uint32_t{first} * 0x10001;
    const uint32_t step = 1u << what / 8;
    switch (what % 8) {
      case 0:
      case 1:
        return Put(begin, count, step);
      case 2:
        return Delete(begin, count, step);
      case 3:
        return Get(begin, count, step);
      case 4:
        return Scan(begin, count, step, false);
      case 5:
        return Scan(begin, count, step, true);
      case 6:
        return DeleteRange(begin, count, step);
      default:
        engine_->Maintain(0);
    }
  }

 private:
  static std::string_view Bytes(uint32_t number, Scratch& scratch) {
    char* const at = scratch.Allocate(sizeof(number));
    StoreKey(at, number);
    return {at, sizeof(number)};
  }
  // Calls use(key) for each key of a run.
  template <typename Use>
  static void ForEach(uint32_t begin, uint32_t count, uint32_t step, Use use) {
    for (uint32_t i = 0; i < count; ++i) use(begin + i * step);
  }

  void Put(uint32_t begin, uint32_t count, uint32_t step) {
    Batch batch;
    ForEach(begin, count, step, [&](uint32_t key) {
      batch.Put(Bytes(key, batch.scratch()), Bytes(++writes_, batch.scratch()));
      model_[key] = writes_;
    });
    engine_->Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      SKEP_CHECK(batch.outcome(slot).verdict == Verdict::kDone);
    }
  }
  void Delete(uint32_t begin, uint32_t count, uint32_t step) {
    Batch batch;
    std::vector<bool> was_there;
    ForEach(begin, count, step, [&](uint32_t key) {
      batch.Delete(Bytes(key, batch.scratch()));
      was_there.push_back(model_.erase(key) == 1);
    });
    engine_->Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      SKEP_CHECK((batch.outcome(slot).verdict == Verdict::kDone) == was_there[slot]);
    }
  }
  void Get(uint32_t begin, uint32_t count, uint32_t step) {
    Batch batch;
    ForEach(begin, count, step, [&](uint32_t key) { batch.Get(Bytes(key, batch.scratch())); });
    engine_->Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const auto at = model_.find(begin + slot * step);
      const Outcome& outcome = batch.outcome(slot);
      SKEP_CHECK((outcome.verdict == Verdict::kDone) == (at != model_.end()));
      if (at == model_.end()) continue;
      SKEP_CHECK(LoadKey<uint32_t>(outcome.value.data()) == at->second);
    }
  }
  // Scans the first or last `count` + 1 items of [begin, begin + 1024 steps), or from `begin` on if
  // that is behind all keys; and counts them.
  void Scan(uint32_t begin, uint32_t count, uint32_t step, bool reverse) {
    Batch batch;
    const Range range = RangeOf(begin, step, batch.scratch());
    const uint32_t limit = count + 1;
    batch.Scan(range, {.limit = limit, .reverse = reverse});
    batch.Count(range);
    engine_->Execute(batch);
    std::vector<std::pair<uint32_t, uint32_t>> wanted(First(begin), Behind(begin, step));
    SKEP_CHECK(batch.outcome(1).integer == static_cast<int64_t>(wanted.size()));
    if (reverse) std::ranges::reverse(wanted);
    const bool more = wanted.size() > limit;
    if (more) wanted.resize(limit);
    SKEP_CHECK(batch.outcome(0).item_count == wanted.size() && batch.outcome(0).more >= more);
    auto at = wanted.begin();
    for (const Item& item : batch.items(0)) {
      SKEP_CHECK(LoadKey<uint32_t>(item.key.data()) == at->first);
      SKEP_CHECK(LoadKey<uint32_t>(item.value.data()) == at->second);
      ++at;
    }
  }
  void DeleteRange(uint32_t begin, uint32_t count, uint32_t step) {
    Batch batch;
    const uint32_t limit = count + 1;
    batch.DeleteRange(RangeOf(begin, step, batch.scratch()), limit);
    engine_->Execute(batch);
    auto end = First(begin);
    int64_t deleted = 0;
    for (; end != Behind(begin, step) && deleted < limit; ++deleted) ++end;
    model_.erase(First(begin), end);
    SKEP_CHECK(batch.outcome(0).integer == deleted);
  }

  using Model = std::map<uint32_t, uint32_t>;
  Model::iterator First(uint32_t begin) { return model_.lower_bound(begin); }
  static uint64_t EndOf(uint32_t begin, uint32_t step) { return begin + uint64_t{step} * 1024; }
  Model::iterator Behind(uint32_t begin, uint32_t step) {
    const uint64_t end = EndOf(begin, step);
    return end > UINT32_MAX ? model_.end() : model_.lower_bound(static_cast<uint32_t>(end));
  }
  static Range RangeOf(uint32_t begin, uint32_t step, Scratch& scratch) {
    const uint64_t end = EndOf(begin, step);
    const std::string_view lo = Bytes(begin, scratch);
    if (end > UINT32_MAX) return Range::From(lo);
    return Range::Between(lo, Bytes(static_cast<uint32_t>(end), scratch));
  }

  MemoryBudget budget_;
  std::unique_ptr<Engine> engine_;
  Model model_;
  uint32_t writes_ = 0;
};

}  // namespace
}  // namespace skep::hashleaf

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::hashleaf;
  if (size == 0) return 0;
  Subject subject(data[0]);
  constexpr size_t kCommandBytes = 4;
  for (size_t at = 1; at + kCommandBytes <= size; at += kCommandBytes) {
    uint16_t first;
    std::memcpy(&first, data + at + 2, sizeof(first));
    subject.Do(data[at], data[at + 1], first);
  }
  return 0;
}
