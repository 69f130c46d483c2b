#include "bench/keyspace_target.h"

#include <utility>

#include "base/clock.h"
#include "bench/batch_session.h"
#include "bench/resident_memory.h"
#include "skep/store.h"

namespace skep::bench {
namespace {

constexpr uint64_t kBatchesBetweenMaintenance = 64;

class EngineSession final : public BatchSession {
 public:
  EngineSession(Engine& engine, const ValuePool& values) : BatchSession(values), engine_(engine) {}

 private:
  Status Run(Batch& batch) override {
    const uint64_t now_ms = SystemClock().WallMs();
    batch.set_now_ms(now_ms);
    engine_.AwaitRelease(engine_.Execute(batch));
    if (++batches_ % kBatchesBetweenMaintenance == 0) engine_.Maintain(now_ms);
    return {};
  }

  Engine& engine_;
  uint64_t batches_ = 0;
};

class EngineSnapshot final : public HeldSnapshot {
 public:
  EngineSnapshot(Engine& engine, SnapshotRef ref) : engine_(engine), snapshot_(engine, ref) {}

  bool Readable() override {
    Batch batch;
    batch.set_snapshot(snapshot_.ref());
    batch.Get("any key");
    engine_.Execute(batch);
    return batch.outcome(0).verdict != Verdict::kRefused;
  }

 private:
  Engine& engine_;
  Snapshot snapshot_;
};

}  // namespace

Result<std::unique_ptr<KeyspaceTarget>> KeyspaceTarget::Open(const Options& options,
                                                             const ValuePool& values) {
  auto keyspaces = Keyspaces::Make(options);
  if (!keyspaces) return Fail(keyspaces.error());
  return std::unique_ptr<KeyspaceTarget>(new KeyspaceTarget(std::move(*keyspaces), values));
}

Result<std::unique_ptr<YcsbSession>> KeyspaceTarget::Connect() {
  return std::make_unique<EngineSession>(keyspaces_->at(0), values_);
}

Result<std::unique_ptr<HeldSnapshot>> KeyspaceTarget::Hold() {
  Engine& engine = keyspaces_->at(0);
  const auto ref = engine.OpenSnapshot(SystemClock().WallMs());
  if (!ref) return Fail(ref.error());
  return std::make_unique<EngineSnapshot>(engine, *ref);
}

Result<Footprint> KeyspaceTarget::Measure() {
  Engine& engine = keyspaces_->at(0);
  while (engine.Maintain(SystemClock().WallMs())) {
  }
  const EngineStatistics statistics = engine.Statistics();
  Footprint footprint = {.bytes_per_item = std::nullopt, .rss_bytes = ResidentBytes()};
  if (statistics.items != 0) {
    footprint.bytes_per_item =
        static_cast<double>(statistics.bytes) / static_cast<double>(statistics.items);
  }
  return footprint;
}

}  // namespace skep::bench
