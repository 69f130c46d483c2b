// Goal: where there is no memory for what a batch has to log, nothing that is acknowledged later is
//   lost, and nobody waits for ever: what the batch did is kept by a snapshot, or was not done.
// Method: on every engine that is logged, a batch is executed and written while the n-th operator
//   new fails, for every n until none does; then the store goes on, is killed, and starts again. On
//   real files, whose code allocates where users' does.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "base/failing_new_test.h"
#include "base/temporary_directory_test.h"
#include "durable/log_test.h"
#include "skep/function.h"

namespace skep::durable {
namespace {

class Store {
 public:
  Store(const std::string& directory, const char* engine, LogSync sync)
      : options_{.engine = engine,
                 .directory = directory,
                 .log_sync = sync,
                 .log_segment_bytes = uint64_t{1} << 20} {
    auto opened = OpenKeyspaces(PosixFileSystem(), clock_, options_, &problem_);
    if (!opened) {
      status_ = opened.error();
      return;
    }
    persistence_ = std::move(opened->persistence);
    keyspaces_ = std::move(opened->keyspaces);
  }

  const Status& status() const { return status_; }
  Engine& engine() { return keyspaces_->at(0); }
  State Contents() { return StateOf(engine(), clock_.WallMs()); }

  // Does a step of the log's thread and one of the saver's.
  void Step() {
    clock_.Advance(1'000'000'000);
    persistence_->log().Step();
    persistence_->saver().Step();
  }
  void Execute() {
    Batch batch;
    batch.set_now_ms(clock_.WallMs());
    const std::string large(300, 'v');
    batch.Put("large", large);
    batch.Apply("counter", FindFunction("add-decimal"), "1");
    batch.Apply("text", FindFunction("append"), "x");
    batch.Delete("gone");
    Do(batch);
  }
  // Whether it is answered.
  bool Put(const std::string& key) {
    Batch batch;
    batch.set_now_ms(clock_.WallMs());
    batch.Put(key, "value");
    const Version ticket = Do(batch);
    for (int i = 0; i < 12; ++i) Step();
    EXPECT_EQ(batch.outcome(0).verdict, Verdict::kDone) << batch.outcome(0).status.ToString();
    return engine().gate().IsReleased(ticket);
  }

 private:
  Version Do(Batch& batch) {
    const Version ticket = engine().Execute(batch);
    engine().Release();
    if (engine().syncs_to_release()) engine().WantSync(ticket, true);
    return ticket;
  }

  SimClock clock_;
  const Options options_;
  std::string problem_;
  Status status_;
  RecoveryReport report_;
  std::unique_ptr<Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
};

class DurableMemory : public testing::TestWithParam<std::tuple<const char*, LogSync>> {
 protected:
  // False: no allocation has failed.
  static bool FailAt(uint64_t n) {
    const auto [engine, sync] = GetParam();
    const TemporaryDirectory directory;
    bool has_failed = false;
    State before;
    {
      Store store(directory.path(), engine, sync);
      EXPECT_TRUE(store.status().ok());
      EXPECT_TRUE(store.Put("gone"));
      FailingNew::FailAt(n);
      try {
        store.Execute();
      } catch (const std::bad_alloc&) {
      }
      has_failed = FailingNew::has_failed();
      FailingNew::FailAt(0);
      store.Step();  // with memory back
      for (const char* const key : {"a", "b", "c"}) EXPECT_TRUE(store.Put(key)) << key;
      before = store.Contents();
    }
    Store again(directory.path(), engine, sync);
    EXPECT_TRUE(again.status().ok()) << again.status().ToString();
    EXPECT_EQ(again.Contents(), before);
    return has_failed;
  }
};

TEST_P(DurableMemory, NothingIsLostAndNobodyWaits) {
  uint64_t n = 1;
  for (bool goes_on = true; goes_on && !HasFailure(); ++n) {
    // A thread of its own, so that what threads keep for themselves is made anew.
    std::thread([&] {
      SCOPED_TRACE(testing::Message() << "allocation " << n);
      goes_on = FailAt(n);
    }).join();
  }
  EXPECT_GT(n, 8u);
}

INSTANTIATE_TEST_SUITE_P(All, DurableMemory,
                         testing::Combine(testing::Values("btree", "hash", "model"),
                                          testing::Values(LogSync::kNo, LogSync::kAlways)));

}  // namespace
}  // namespace skep::durable
