// The thread beside a worker (side_thread.h).
#include "server/side_thread.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/mutex.h"

namespace skep {
namespace {

// Counts the wake-ups, and waits for them as a poller does.
class Poller {
 public:
  void Wake() {
    const MutexLock lock(mutex_);
    ++wakes_;
    changed_.NotifyAll();
  }
  // Waits until there were more wake-ups than `seen`; returns how many.
  int WaitBeyond(int seen) {
    const MutexLock lock(mutex_);
    while (wakes_ <= seen) changed_.Wait(mutex_);
    return wakes_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  int wakes_ SKEP_GUARDED_BY(mutex_) = 0;
};

// Appends its number to a list that only the thread touches until the jobs are done.
class Append final : public SideJob {
 public:
  Append(std::vector<int>& list, int number) : list_(list), number_(number) {}
  Append(std::vector<int>& list, int number, MemoryBudget& budget) : Append(list, number) {
    SideJob::Hold(budget, 100);
  }

 private:
  void Run() override { list_.push_back(number_); }

  std::vector<int>& list_;
  const int number_;
};

// A job that does not end before it is let.
class Hold final : public SideJob {
 public:
  void Let() {
    const MutexLock lock(mutex_);
    is_let_ = true;
    changed_.NotifyAll();
  }
  void AwaitBegin() {
    const MutexLock lock(mutex_);
    while (!has_begun_) changed_.Wait(mutex_);
  }

 private:
  void Run() override {
    const MutexLock lock(mutex_);
    has_begun_ = true;
    changed_.NotifyAll();
    while (!is_let_) changed_.Wait(mutex_);
  }

  Mutex mutex_;
  ConditionVariable changed_;
  bool has_begun_ SKEP_GUARDED_BY(mutex_) = false;
  bool is_let_ SKEP_GUARDED_BY(mutex_) = false;
};

// Goal: jobs are run in their order, each is done when the worker is woken for it, and the worker
// then sees what they have written, though it posts more meanwhile.
// Method: a worker that sleeps whenever its last job is not done, as the turns of a server do.
TEST(SideThread, RunsJobsInOrderAndWakesTheWorker) {
  Poller poller;
  SideThread side([&] { poller.Wake(); });
  EXPECT_FALSE(side.is_allowed());
  side.Allow();
  std::vector<int> list;
  std::vector<std::shared_ptr<SideJob>> jobs;
  int posted = 0;
  int wakes = 0;
  while (posted < 300) {
    for (int i = 0; i < posted % 7 + 1; ++i) {
      jobs.push_back(std::make_shared<Append>(list, posted++));
      side.Post(jobs.back());
    }
    while (!jobs.back()->is_done()) wakes = poller.WaitBeyond(wakes);
    ASSERT_EQ(list.size(), static_cast<size_t>(posted));
    for (const auto& job : jobs) ASSERT_TRUE(job->is_done());
  }
  for (int i = 0; i < posted; ++i) EXPECT_EQ(list[static_cast<size_t>(i)], i);
  EXPECT_LE(poller.WaitBeyond(0), posted);
}

// Goal: at the end the job that is run ends, those behind it are never run, and a job whose task is
// gone is freed.
TEST(SideThread, EndsWithTheJobThatIsRun) {
  std::vector<int> list;
  const auto hold = std::make_shared<Hold>();
  std::weak_ptr<SideJob> behind;
  {
    SideThread side([] {});
    side.Allow();
    side.Post(hold);
    auto job = std::make_shared<Append>(list, 1);
    behind = job;
    side.Post(std::move(job));
    hold->AwaitBegin();
    EXPECT_FALSE(hold->is_done());
    hold->Let();
    side.Stop();
    EXPECT_FALSE(side.is_allowed());
    EXPECT_TRUE(hold->is_done());
  }
  EXPECT_TRUE(behind.expired());
  EXPECT_TRUE(list.empty());
  SideThread never([] {});
  never.Stop();
}

// Goal: a job that has not begun when its task goes is not run, and what it has copied is charged
// until the thread passes it over.
TEST(SideThread, PassesOverJobsThatNobodyAsksFor) {
  MemoryBudget budget;
  std::vector<int> list;
  const auto hold = std::make_shared<Hold>();
  const auto kept = std::make_shared<Append>(list, 2, budget);
  SideThread side([] {});
  side.Allow();
  side.Post(hold);
  hold->AwaitBegin();
  for (int i = 0; i < 5; ++i) side.Post(std::make_shared<Append>(list, 1, budget));
  side.Post(kept);
  EXPECT_EQ(budget.used(), 600U);
  hold->Let();
  while (!kept->is_done()) std::this_thread::yield();
  EXPECT_EQ(budget.used(), 100U);
  EXPECT_EQ(list, std::vector<int>{2});
}

}  // namespace
}  // namespace skep
