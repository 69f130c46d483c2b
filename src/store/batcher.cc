#include "skep/batcher.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/batch_writer.h"
#include "skep/store.h"
#include "store/batch_wait.h"

namespace skep {
namespace {

constexpr Status kNoMemory(Code::kUnavailable,
                           "the process has no memory: whether it was done is not known");

// Whether this thread is inside a call of a `done`, of any batcher.
thread_local bool is_in_done = false;

}  // namespace

// Gathers operations into batches, and executes these on a thread of its own. Only that thread uses
// `running_`, which it swaps with the first batch of `open_` under the mutex.
class Batcher::Gatherer {
 public:
  Gatherer(Store& store, const BatcherOptions& options)
      : store_(store),
        options_(options),
        wait_(options.operations_wanted, uint64_t{options.wait_us_max} * 1000),
        thread_([this] { Run(); }) {}

  // Ends the thread. To be called before the destruction, as a call of a `done` may still use the
  // object.
  void Stop() {
    {
      const MutexLock lock(mutex_);
      stops_ = true;
      hurries_.store(true, std::memory_order_relaxed);
      work_.NotifyOne();
    }
    thread_.join();
  }

  // `add` puts the operation, of so many bytes, into the batch it is called with.
  template <typename Add>
  void Submit(size_t bytes, Add add, Done done) {
    const MutexLock lock(mutex_);
    if (!HasRoom(open_.back(), bytes)) {
      // A thread that waited inside a `done` would keep its batcher, this or another one, from
      // making room.
      if (is_in_done) {
        open_.emplace_back();
      } else {
        ++waiting_;
        ShowGathered();
        while (open_.size() != 1 || !HasRoom(open_.front(), bytes)) room_.Wait(mutex_);
        --waiting_;
      }
    }
    Gathered& gathered = open_.back();
    gathered.done.push_back(std::move(done));
    try {
      add(gathered.batch);
    } catch (...) {
      gathered.done.pop_back();
      throw;
    }
    ++submitted_;
    if (gathered.batch.size() == 1 && options_.wait_us_max > 0) {
      gathered.since_ns = SystemClock().MonotonicNs();
    }
    ShowGathered();
    if (is_asleep_) work_.NotifyOne();
  }
  void SubmitPoint(Op op, std::string_view key, std::string_view value, Done done) {
    Submit(
        key.size() + value.size(),
        [&](Batch& batch) {
          Scratch& bytes = batch.scratch();
          batch.Add({.op = op, .key = bytes.Copy(key), .value = bytes.Copy(value), .other = {}});
        },
        std::move(done));
  }

  void Drain() {
    const MutexLock lock(mutex_);
    ++drains_;
    hurries_.store(true, std::memory_order_relaxed);
    const uint64_t submitted = submitted_;
    while (statistics_.operations < submitted) drained_.Wait(mutex_);
    --drains_;
    hurries_.store(stops_ || drains_ > 0, std::memory_order_relaxed);
  }

  Statistics statistics() const {
    const MutexLock lock(mutex_);
    return statistics_;
  }

 private:
  struct Gathered {
    Batch batch;
    std::vector<Done> done;  // by slot
    uint64_t since_ns = 0;   // when the first operation came
  };

  // Whether an operation of so many bytes fits. The first one always does.
  bool HasRoom(Gathered& gathered, size_t bytes) const {
    return gathered.batch.empty() || (gathered.batch.size() < options_.operations_max &&
                                      gathered.batch.scratch().used() + bytes <= kBytesMax);
  }
  // Whether the open batch is to leave, however small it is.
  bool IsCrowded() const SKEP_REQUIRES(mutex_) { return waiting_ > 0 || open_.size() > 1; }
  void ShowGathered() SKEP_REQUIRES(mutex_) {
    const size_t operations = IsCrowded() ? UINT32_MAX : open_.back().batch.size();
    gathered_.store(static_cast<uint32_t>(operations), std::memory_order_relaxed);
  }

  void Run() {
    const MutexLock lock(mutex_);
    for (;;) {
      if (open_.front().batch.empty()) {
        if (stops_) return;
        AwaitFirst();
        continue;
      }
      AwaitMore();
      std::swap(open_.front(), running_);
      if (open_.size() > 1) open_.pop_front();
      ShowGathered();
      room_.NotifyAll();
      const size_t operations = running_.batch.size();
      {
        const MutexUnlock unlock(mutex_);
        if (options_.wait_us_max > 0) {
          wait_.Left(static_cast<uint32_t>(operations), SystemClock().MonotonicNs());
        }
        Execute();
      }
      ++statistics_.batches;
      statistics_.operations += operations;
      if (drains_ > 0) drained_.NotifyAll();
    }
  }

  // Waits for the first operation: busily for a while, as to be woken takes longer, and then
  // asleep.
  void AwaitFirst() SKEP_REQUIRES(mutex_) {
    constexpr uint64_t kWakeNs = 50'000;
    const auto gap_ns = static_cast<uint64_t>(wait_.gap_ns());
    if (options_.wait_us_max > 0 && gap_ns < kWakeNs) {
      const MutexUnlock unlock(mutex_);
      LookFor(1, 2 * gap_ns);
    }
    is_asleep_ = true;
    while (!stops_ && open_.front().batch.empty()) work_.Wait(mutex_);
    is_asleep_ = false;
  }

  void AwaitMore() SKEP_REQUIRES(mutex_) {
    if (options_.wait_us_max == 0) return;
    while (!hurries_.load(std::memory_order_relaxed) && !IsCrowded()) {
      const uint64_t age_ns = SystemClock().MonotonicNs() - open_.front().since_ns;
      const uint64_t ns = wait_.WaitNs(static_cast<uint32_t>(open_.front().batch.size()), age_ns);
      if (ns == 0) return;
      const MutexUnlock unlock(mutex_);
      LookFor(options_.operations_wanted, ns);
    }
  }

  // Waits busily, until so many operations are gathered, so many nanoseconds have passed, or a
  // thread waits in Drain() or Stop().
  void LookFor(uint32_t operations, uint64_t ns) const {
    const uint64_t until_ns = SystemClock().MonotonicNs() + ns;
    while (gathered_.load(std::memory_order_relaxed) < operations &&
           !hurries_.load(std::memory_order_relaxed) && SystemClock().MonotonicNs() < until_ns) {
      std::this_thread::yield();
    }
  }

  void Execute() {
    try {
      // Execute() refuses only a keyspace that there is not, and this one was checked.
      static_cast<void>(store_.Execute(running_.batch, options_.keyspace));
    } catch (const std::bad_alloc&) {
      RefuseAll();
    }
    is_in_done = true;
    for (uint32_t slot = 0; slot < running_.done.size(); ++slot) {
      if (running_.done[slot]) running_.done[slot](running_.batch, slot);
    }
    running_.done.clear();
    is_in_done = false;
    running_.batch.Clear();
  }

  // Refuses all operations of a batch that could not be executed for want of memory: outcomes that
  // the engine has noted may not hold. Every submitter must be told; if there is no memory even for
  // that, this waits until there is.
  void RefuseAll() {
    for (bool told = false; !told;) {
      try {
        BatchWriter(running_.batch).RefuseAll(kNoMemory);
        told = true;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  // Bytes of the copies of a batch's keys and values. A server takes messages of a mebibyte at
  // least.
  static constexpr size_t kBytesMax = 512 * 1024;

  Store& store_;
  const BatcherOptions options_;
  BatchWait wait_;  // owner: the thread
  // These are read without the mutex: the number of operations in the open batch, UINT32_MAX if it
  // is to leave; and whether a thread waits in Drain() or Stop().
  std::atomic<uint32_t> gathered_{0};
  std::atomic<bool> hurries_{false};
  mutable Mutex mutex_;
  ConditionVariable work_;     // there is an open operation, or the thread is to stop
  ConditionVariable room_;     // the open batch has left
  ConditionVariable drained_;  // a batch was executed
  // Has one batch at least; more only if a `done` has submitted operations when that one was full.
  std::deque<Gathered> open_ SKEP_GUARDED_BY(mutex_) = std::deque<Gathered>(1);
  Gathered running_;
  bool is_asleep_ SKEP_GUARDED_BY(mutex_) = false;
  bool stops_ SKEP_GUARDED_BY(mutex_) = false;
  uint32_t waiting_ SKEP_GUARDED_BY(mutex_) = 0;  // calls that wait for room
  uint32_t drains_ SKEP_GUARDED_BY(mutex_) = 0;   // calls of Drain() that wait
  uint64_t submitted_ SKEP_GUARDED_BY(mutex_) = 0;
  Statistics statistics_ SKEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

Result<std::unique_ptr<Batcher>> Batcher::Make(Store& store, const BatcherOptions& options) {
  constexpr uint32_t kOperationsMax = 64 * 1024;
  constexpr uint32_t kWaitUsMax = 1000;
  if (options.operations_max == 0 || options.operations_max > kOperationsMax) {
    return Fail(Code::kInvalidArgument, "operations_max is from 1 to 65536");
  }
  if (options.operations_wanted == 0 || options.operations_wanted > options.operations_max) {
    return Fail(Code::kInvalidArgument, "operations_wanted is from 1 to operations_max");
  }
  if (options.wait_us_max > kWaitUsMax) {
    return Fail(Code::kInvalidArgument, "wait_us_max is at most 1000");
  }
  Batch nothing;
  if (const Status s = store.Execute(nothing, options.keyspace); !s.ok()) return Fail(s);
  return std::unique_ptr<Batcher>(new Batcher(std::make_unique<Gatherer>(store, options)));
}

Batcher::Batcher(std::unique_ptr<Gatherer> gatherer) : gatherer_(std::move(gatherer)) {}
Batcher::~Batcher() { gatherer_->Stop(); }

void Batcher::Get(std::string_view key, Done done) {
  gatherer_->SubmitPoint(Op::kGet, key, {}, std::move(done));
}

void Batcher::Put(std::string_view key, std::string_view value, Done done) {
  gatherer_->SubmitPoint(Op::kPut, key, value, std::move(done));
}

void Batcher::Insert(std::string_view key, std::string_view value, Done done) {
  gatherer_->SubmitPoint(Op::kInsert, key, value, std::move(done));
}

void Batcher::Update(std::string_view key, std::string_view value, Done done) {
  gatherer_->SubmitPoint(Op::kUpdate, key, value, std::move(done));
}

void Batcher::Delete(std::string_view key, Done done) {
  gatherer_->SubmitPoint(Op::kDelete, key, {}, std::move(done));
}

void Batcher::Apply(std::string_view key, const Function* function, std::string_view operand,
                    Done done) {
  gatherer_->Submit(
      key.size() + operand.size(),
      [&](Batch& batch) {
        batch.Apply(batch.scratch().Copy(key), function, batch.scratch().Copy(operand));
      },
      std::move(done));
}

void Batcher::UpdateElements(std::string_view key, const Function* update,
                             std::string_view operands, const UpdateOptions& options, Done done) {
  gatherer_->Submit(
      key.size() + operands.size(),
      [&](Batch& batch) {
        batch.UpdateElements(batch.scratch().Copy(key), update, operands, options);
      },
      std::move(done));
}

void Batcher::Scan(const Range& range, const ScanOptions& options, Done done) {
  gatherer_->Submit(
      range.lo.size() + range.hi.size(),
      [&](Batch& batch) {
        Range copy = range;
        copy.lo = batch.scratch().Copy(range.lo);
        copy.hi = batch.scratch().Copy(range.hi);
        batch.Scan(copy, options);
      },
      std::move(done));
}

void Batcher::Drain() { gatherer_->Drain(); }
Batcher::Statistics Batcher::statistics() const { return gatherer_->statistics(); }

}  // namespace skep
