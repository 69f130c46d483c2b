#include "durable/snapshot_loader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace skep::durable {
namespace {

// One thread's.
class Loader {
 public:
  explicit Loader(const EngineOfKeyspace& engine_of) : engine_of_(engine_of) {}

  Status Add(uint32_t keyspace, const SnapshotItem& item) {
    if (engine_ == nullptr || keyspace != keyspace_) {
      if (const Status s = Execute(); !s.ok()) return s;
      const auto engine = engine_of_(keyspace);
      if (!engine) return engine.error();
      engine_ = *engine;
      keyspace_ = keyspace;
    }
    batch_.Add({.op = Op::kPut,
                .key = batch_.scratch().Copy(item.key),
                .value = batch_.scratch().Copy(item.value),
                .deadline_ms = item.deadline_ms});
    return batch_.size() < kBatchMax ? Status() : Execute();
  }

  // What was added last.
  Status Execute() {
    if (batch_.empty()) return {};
    engine_->Execute(batch_);
    Status status;
    for (uint32_t slot = 0; slot < batch_.size() && status.ok(); ++slot) {
      if (batch_.outcome(slot).verdict == Verdict::kRefused) status = batch_.outcome(slot).status;
    }
    batch_.Clear();
    return status;
  }

 private:
  static constexpr size_t kBatchMax = 256;

  const EngineOfKeyspace& engine_of_;
  Engine* engine_ = nullptr;
  uint32_t keyspace_ = 0;
  Batch batch_;
};

Status LoadBlock(const SnapshotReader& reader, size_t block, Loader& loader) {
  const uint32_t keyspace = reader.block(block).keyspace;
  const Status s =
      reader.ReadBlock(block, [&](const SnapshotItem& item) { return loader.Add(keyspace, item); });
  return s.ok() ? loader.Execute() : s;
}

}  // namespace

Status LoadSnapshot(const SnapshotReader& reader, const EngineOfKeyspace& engine_of,
                    uint32_t threads_max) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status first;
  const auto load = [&] {
    Loader loader(engine_of);
    for (size_t block = next++; block < reader.block_count(); block = next++) {
      const Status s = LoadBlock(reader, block, loader);
      if (s.ok()) continue;
      std::lock_guard lock(mutex);
      if (first.ok()) first = s;
      next = reader.block_count();
    }
  };
  const size_t thread_count = std::min<size_t>(threads_max, reader.block_count());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < thread_count; ++i) threads.emplace_back(load);
  load();
  for (std::thread& thread : threads) thread.join();
  return first;
}

Result<SnapshotSalvage> LoadDamagedSnapshot(FileSystem& files, const std::string& path,
                                            const EngineOfKeyspace& engine_of) {
  Loader loader(engine_of);
  auto salvage = SalvageBlocks(files, path, [&](uint32_t keyspace, const SnapshotItem& item) {
    return loader.Add(keyspace, item);
  });
  if (!salvage) return salvage;
  if (const Status s = loader.Execute(); !s.ok()) return Fail(s);
  return salvage;
}

}  // namespace skep::durable
