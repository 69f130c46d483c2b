#include "tests/simulation/lagging_engine.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace skep::simulation {

class LaggingEngine::Pin {
 public:
  Pin(Engine& engine, SnapshotRef ref) : engine_(engine), ref_(ref) {}
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { engine_.CloseSnapshot(ref_); }
  SnapshotRef ref() const { return ref_; }

 private:
  Engine& engine_;
  SnapshotRef ref_;
};

namespace {

bool ReadsRange(const Request& request) {
  return request.op == Op::kScan || request.op == Op::kCount;
}

}  // namespace

LaggingEngine::LaggingEngine(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}
LaggingEngine::~LaggingEngine() = default;

Version LaggingEngine::Execute(Batch& batch) {
  now_ms_ = batch.now_ms();
  if (released_ == nullptr) Release();
  if (batch.snapshot().id != 0) return ExecuteAtSnapshot(batch);
  if (batch.kind() == Batch::Kind::kAtomic) return inner().Execute(batch);
  return ExecuteShuffled(batch);
}

Version LaggingEngine::ExecuteAtSnapshot(Batch& batch) {
  const SnapshotRef outer = batch.snapshot();
  const auto pin = opened_.find(outer.id);
  // An id that no snapshot of the inner engine has is that of a snapshot that is gone.
  batch.set_snapshot(pin == opened_.end() ? SnapshotRef{0, UINT64_MAX} : pin->second->ref());
  const Version ticket = inner().Execute(batch);
  batch.set_snapshot(outer);
  return ticket;
}

Version LaggingEngine::ExecuteShuffled(Batch& batch) {
  Version ticket = 0;
  BatchWriter writer(batch);
  const bool stops = batch.work_bytes_max() != SIZE_MAX && !batch.empty() && random_.Chance(1, 4);
  uint64_t left = stops ? 1 + random_.Below(batch.size()) : UINT64_MAX;
  for (const uint32_t slot : ShuffledSlots(batch)) {
    if (left == 0) {
      writer.CountWork(batch.work_bytes_max() + 1);
      writer.Postpone(slot);
      continue;
    }
    --left;
    ticket = std::max(ticket, ExecuteSlot(batch, slot, writer));
  }
  return ticket;
}

// Returns all slots in a random order that keeps the order of the points of each key.
std::vector<uint32_t> LaggingEngine::ShuffledSlots(const Batch& batch) {
  std::vector<uint32_t> order(batch.size());
  for (uint32_t slot = 0; slot < order.size(); ++slot) order[slot] = slot;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
  std::map<std::string_view, std::vector<uint32_t>> slots_of;
  for (uint32_t slot = 0; slot < order.size(); ++slot) {
    const Request& request = batch.requests()[slot];
    // Deletes of a range touch many keys: a server must not let one share a batch.
    SKEP_CHECK(request.op != Op::kDeleteRange || batch.size() == 1);
    if (!IsRange(request.op)) slots_of[request.key].push_back(slot);
  }
  std::map<std::string_view, size_t> done;
  for (uint32_t& slot : order) {
    const Request& request = batch.requests()[slot];
    if (!IsRange(request.op)) slot = slots_of[request.key][done[request.key]++];
  }
  return order;
}

Version LaggingEngine::ExecuteSlot(const Batch& batch, uint32_t slot, BatchWriter& writer) {
  Batch one;
  one.set_now_ms(batch.now_ms());
  one.set_scan_bytes_max(batch.scan_bytes_max());
  one.set_scan_visits_max(batch.scan_visits_max());
  one.Add(batch.requests()[slot]);
  const bool lags = ReadsRange(batch.requests()[slot]) && random_.Chance(1, 2);
  if (lags) one.set_snapshot(released_->ref());
  const Version ticket = inner().Execute(one);
  CopyOutcome(one, 0, writer, slot);
  return ticket;
}

Result<SnapshotRef> LaggingEngine::OpenSnapshot(uint64_t now_ms) {
  now_ms_ = now_ms;
  if (!has_unreleased()) Release();  // a young pin
  opened_.emplace(++last_snapshot_, released_);
  return SnapshotRef{released_->ref().version, last_snapshot_};
}

void LaggingEngine::Release() {
  const Result<SnapshotRef> newest = inner().OpenSnapshot(now_ms_);
  SKEP_CHECK(newest.has_value());
  released_ = std::make_shared<Pin>(inner(), *newest);
  gate_.Release(newest->version);
}

const EngineInfo kLaggingEngine = {
    "lagging", "the model engine, as late and as unordered as it may be",
    [](const EngineOptions& options) -> std::unique_ptr<Engine> {
      return std::make_unique<LaggingEngine>(FindEngine("model")->make(options));
    }};

}  // namespace skep::simulation
