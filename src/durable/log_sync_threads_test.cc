// A log on a real disk, synced by the threads that write and by its own.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_directory_test.h"
#include "durable/open_keyspaces.h"

namespace skep::durable {
namespace {

OpenedKeyspaces OpenStore(const Options& options) {
  std::string problem;
  auto opened = OpenKeyspaces(PosixFileSystem(), SystemClock(), options, &problem);
  SKEP_CHECK(opened.has_value());
  return std::move(*opened);
}

// Goal: whoever syncs, all writes are synced that were waited for, and are there after a kill.
// Method: threads write to two keyspaces and wait, each second time they want the sync here;
// segments are so small that they change under the syncs.
TEST(LogSync, ByManyThreads) {
  constexpr int kThreads = 3;
  constexpr int kWrites = 300;
  const TemporaryDirectory directory;
  const Options options{.engine = "btree",
                        .keyspaces = 2,
                        .directory = directory.path(),
                        .log_sync = LogSync::kAlways,
                        .log_segment_bytes = 16 * 1024};
  {
    const OpenedKeyspaces store = OpenStore(options);
    store.persistence->StartThreads();
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&store, thread] {
        Engine& engine = store.keyspaces->at(static_cast<uint32_t>(thread % 2));
        for (int i = 0; i < kWrites; ++i) {
          const std::string key = std::to_string(thread) + "-" + std::to_string(i);
          Batch batch;
          batch.Put(key, key);
          const Version ticket = engine.Execute(batch);
          if (i % 2 == 0) {
            engine.WantSync(ticket, false);
            engine.gate().Wait(ticket);
          } else {
            engine.AwaitRelease(ticket);
          }
          EXPECT_TRUE(engine.synced_gate().IsReleased(ticket));
        }
      });
    }
    threads.clear();
    EXPECT_GT(store.persistence->log().statistics().syncs, 0u);
    store.persistence->StopThreads();
  }
  const OpenedKeyspaces store = OpenStore(options);
  for (int thread = 0; thread < kThreads; ++thread) {
    Engine& engine = store.keyspaces->at(static_cast<uint32_t>(thread % 2));
    for (int i = 0; i < kWrites; ++i) {
      const std::string key = std::to_string(thread) + "-" + std::to_string(i);
      Batch batch;
      batch.Get(key);
      engine.Execute(batch);
      EXPECT_EQ(batch.outcome(0).value, key);
    }
  }
}

}  // namespace
}  // namespace skep::durable
