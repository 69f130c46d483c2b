#include "bench/engine_target.h"

#include <utility>

#include "bench/batch_session.h"
#include "bench/resident_memory.h"

namespace skep::bench {
namespace {

class StoreSession final : public BatchSession {
 public:
  StoreSession(Store& store, const ValuePool& values) : BatchSession(values), store_(store) {}

 private:
  Status Run(Batch& batch) override { return store_.Execute(batch); }

  Store& store_;
};

}  // namespace

Result<std::unique_ptr<EngineTarget>> EngineTarget::Open(const Options& options,
                                                         const ValuePool& values) {
  auto store = Store::Open(options);
  if (!store) return Fail(store.error());
  return std::unique_ptr<EngineTarget>(new EngineTarget(std::move(*store), values));
}

Result<std::unique_ptr<YcsbSession>> EngineTarget::Connect() {
  return std::make_unique<StoreSession>(*store_, values_);
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
