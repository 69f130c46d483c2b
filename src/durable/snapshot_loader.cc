#include "durable/snapshot_loader.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "durable/feed.h"
#include "engine/bulk_load.h"

namespace skep::durable {
namespace {

Status Put(const SnapshotItem& item, Feed& feed) {
  Scratch& bytes = feed.batch().scratch();
  feed.batch().Add({.op = Op::kPut,
                    .type = item.type,
                    .key = bytes.Copy(item.key),
                    .value = bytes.Copy(item.value),
                    .deadline_ms = item.deadline_ms});
  return feed.Added(item.key.size() + item.value.size());
}

// The work of one thread at a time: blocks of one keyspace that follow each other.
struct Task {
  Engine* engine;
  BulkLoad* bulk;  // null: the items are loaded in batches
  std::span<const size_t> blocks;
  std::optional<size_t> next_block;  // of the keyspace
};

// Reads the first key of a block.
Result<std::string> FirstKey(const SnapshotReader& reader, size_t block) {
  constexpr Code kEnough = Code::kAborted;
  std::string key;
  const Status s = reader.ReadBlock(block, [&](const SnapshotItem& item) {
    key = item.key;
    return Status(kEnough, "only the first one is asked for");
  });
  if (s.code() != kEnough) return Fail(s);
  return key;
}

class Loading {
 public:
  Loading(const SnapshotReader& reader, const EngineOfKeyspace& engine_of, size_t threads_max)
      : reader_(reader), engine_of_(engine_of), threads_max_(threads_max) {}

  Status Do() {
    if (const Status s = Plan(); !s.ok()) return s;
    const size_t count = std::min(threads_max_, tasks_.size());
    std::vector<std::thread> threads;
    for (size_t i = 1; i < count; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    for (const auto& bulk : bulks_) {
      if (first_.ok()) first_ = bulk->Finish();
    }
    return first_;
  }

 private:
  // A task has few enough blocks that all threads are busy to the end, and so many that reading the
  // first key of the next block costs nothing beside them.
  static constexpr size_t kTaskBlocksMax = 64;
  static constexpr size_t kTasksOfThread = 8;

  Status Plan() {
    for (size_t i = 0; i < reader_.block_count(); ++i) {
      blocks_[reader_.block(i).keyspace].push_back(i);
    }
    for (const auto& [keyspace, blocks] : blocks_) {
      const auto engine = engine_of_(keyspace);
      if (!engine) return engine.error();
      std::unique_ptr<BulkLoad> bulk = (*engine)->OpenBulkLoad();
      const size_t share =
          std::clamp<size_t>(blocks.size() / (threads_max_ * kTasksOfThread), 1, kTaskBlocksMax);
      for (size_t at = 0; at < blocks.size(); at += share) {
        const auto rest = std::span(blocks).subspan(at);
        Task& task = tasks_.emplace_back(Task{.engine = *engine,
                                              .bulk = bulk.get(),
                                              .blocks = rest.first(std::min(share, rest.size()))});
        if (share < rest.size()) task.next_block = rest[share];
      }
      if (bulk != nullptr) bulks_.push_back(std::move(bulk));
    }
    return {};
  }

  void Work() {
    for (size_t i = next_++; i < tasks_.size(); i = next_++) {
      const Status s = tasks_[i].bulk == nullptr ? PutAll(tasks_[i]) : Fill(tasks_[i], i);
      if (s.ok()) continue;
      const MutexLock lock(mutex_);
      if (first_.ok()) first_ = s;
      next_ = tasks_.size();
    }
  }

  Status PutAll(const Task& task) {
    Feed feed(*task.engine);
    for (const size_t block : task.blocks) {
      const Status s =
          reader_.ReadBlock(block, [&](const SnapshotItem& item) { return Put(item, feed); });
      if (!s.ok()) return s;
    }
    return feed.Finish();
  }

  Status Fill(const Task& task, size_t number) {
    const bool is_first = number == 0 || tasks_[number - 1].bulk != task.bulk;
    std::optional<std::string> upper;
    if (task.next_block) {
      auto key = FirstKey(reader_, *task.next_block);
      if (!key) return key.error();
      upper = std::move(*key);
    }
    std::unique_ptr<BulkLoad::Part> part;
    for (const size_t block : task.blocks) {
      const Status s = reader_.ReadBlock(block, [&](const SnapshotItem& item) {
        if (part == nullptr) part = task.bulk->Open(is_first ? "" : item.key, upper);
        return part->Add(item.key, item.value, item.deadline_ms, item.type);
      });
      if (s.code() == Code::kInvalidArgument) {
        return {Code::kCorrupt, "the items of a snapshot file are not in order",
                reader_.block(block).offset};
      }
      if (!s.ok()) return s;
    }
    return part->Finish();
  }

  const SnapshotReader& reader_;
  const EngineOfKeyspace& engine_of_;
  const size_t threads_max_;
  std::map<uint32_t, std::vector<size_t>> blocks_;  // of each keyspace
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<BulkLoad>> bulks_;
  std::atomic<size_t> next_{0};  // task
  Mutex mutex_;
  Status first_;  // the first error; guarded by the mutex while threads work
};

}  // namespace

Status LoadSnapshot(const SnapshotReader& reader, const EngineOfKeyspace& engine_of,
                    uint32_t threads_max) {
  return Loading(reader, engine_of, threads_max).Do();
}

Result<SnapshotSalvage> LoadDamagedSnapshot(FileSystem& files, const std::string& path,
                                            const EngineOfKeyspace& engine_of) {
  std::map<uint32_t, Feed> feeds;
  auto salvage =
      SalvageBlocks(files, path, [&](uint32_t keyspace, const SnapshotItem& item) -> Status {
        auto feed = feeds.find(keyspace);
        if (feed == feeds.end()) {
          const auto engine = engine_of(keyspace);
          if (!engine) return engine.error();
          feed = feeds.try_emplace(keyspace, **engine).first;
        }
        return Put(item, feed->second);
      });
  if (!salvage) return salvage;
  for (auto& [keyspace, feed] : feeds) {
    if (const Status s = feed.Finish(); !s.ok()) return Fail(s);
  }
  return salvage;
}

}  // namespace skep::durable
