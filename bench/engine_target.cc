#include "bench/engine_target.h"

#include <unistd.h>

#include <fstream>
#include <utility>

namespace skep::bench {
namespace {

class EngineSession final : public YcsbSession {
 public:
  EngineSession(Store& store, const ValuePool& values) : store_(store), values_(values) {}

  Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) override {
    batch_.Clear();
    for (size_t i = first; i < first + count; ++i) Add(stream.at(i), values_.at(i));
    if (Status status = store_.Execute(batch_); !status.ok()) return status;
    uint32_t slot = 0;
    for (size_t i = first; i < first + count; ++i) slot = Check(stream.at(i), slot, tally);
    return {};
  }

 private:
  void Add(const YcsbOp& op, std::string_view value) {
    switch (op.kind) {
      case OpKind::kRead:
        batch_.Get(op.key);
        break;
      case OpKind::kUpdate:
        batch_.Put(op.key, value);
        break;
      case OpKind::kInsert:
        batch_.Insert(op.key, value);
        break;
      case OpKind::kScan:
        batch_.Scan(Range::From(op.key), {.limit = op.scan_items});
        break;
      case OpKind::kReadModifyWrite:
        batch_.Get(op.key);
        batch_.Put(op.key, value);
        break;
    }
  }

  // Checks the slots of one operation; returns the slot behind them.
  uint32_t Check(const YcsbOp& op, uint32_t slot, Tally& tally) {
    const Outcome& outcome = batch_.outcome(slot);
    const char* wrong = Complaint(op, outcome);
    if (op.kind == OpKind::kReadModifyWrite) {
      ++slot;
      if (wrong == nullptr && batch_.outcome(slot).verdict != Verdict::kDone) wrong = "not stored";
    }
    if (wrong != nullptr) tally.CountError(wrong);
    tally.items_scanned += outcome.item_count;
    return slot + 1;
  }

  // Null if the outcome is what the operation must get.
  const char* Complaint(const YcsbOp& op, const Outcome& outcome) const {
    switch (outcome.verdict) {
      case Verdict::kDone:
        break;
      case Verdict::kAbsent:
        return "a key that was inserted is absent";
      case Verdict::kExists:
        return "a key was there before it was inserted";
      case Verdict::kMismatch:
        return "an impossible verdict";
      case Verdict::kAborted:
        return "an unordered batch was aborted";
      case Verdict::kRefused:
        return outcome.status.what();
    }
    const bool reads = op.kind == OpKind::kRead || op.kind == OpKind::kReadModifyWrite;
    if (reads && outcome.value.size() != values_.value_bytes()) {
      return "a value has the wrong size";
    }
    if (op.kind == OpKind::kScan &&
        (outcome.item_count == 0 || outcome.item_count > op.scan_items)) {
      return "a scan returned a wrong number of items";
    }
    return nullptr;
  }

  Store& store_;
  const ValuePool& values_;
  Batch batch_;
};

std::optional<uint64_t> ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return std::nullopt;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<std::unique_ptr<EngineTarget>> EngineTarget::Open(const std::string& engine,
                                                         const ValuePool& values) {
  auto store = Store::Open({.engine = engine, .keyspaces = 1});
  if (!store) return Fail(store.error());
  return std::unique_ptr<EngineTarget>(new EngineTarget(std::move(*store), values));
}

Result<std::unique_ptr<YcsbSession>> EngineTarget::Connect() {
  return std::make_unique<EngineSession>(*store_, values_);
}

Result<Footprint> EngineTarget::Measure() {
  Footprint footprint = {.bytes_per_item = std::nullopt, .rss_bytes = ResidentBytes()};
  for (const auto& keyspace : store_->Statistics().keyspaces) {
    if (keyspace.items == 0) continue;
    footprint.bytes_per_item =
        static_cast<double>(keyspace.bytes) / static_cast<double>(keyspace.items);
  }
  return footprint;
}

}  // namespace skep::bench
