// epochs.h: memory that is freed once no thread reads it any more (epoch-based reclamation).
//
//   reader  Guard g(epochs);  p = pointer.load();  use *p;             while g lives, *p does too
//   writer  pointer.store(q);  epochs.Retire(p, free);                 nobody can find p any more
//   anyone  epochs.Reclaim();                                          now and then
//
// Protocol
//   epoch    a number e. Readers count themselves in the set e & 1; each of the two sets has
//            kShards counts.
//   Retire   notes the object with the current epoch, e.
//   Reclaim  goes from e to e + 1 if the set (e + 1) & 1 is empty, and frees the objects retired at
//            e - 2 or before.
//
// Why no reader has an object that is freed
//   (1) Between the retiring at e and the freeing at e + 2 the epoch went on twice, so each of the
//       two sets was found empty at a moment after the retiring.
//   (2) A reader that could find the object loaded the pointer before the object was unlinked, so
//       it counted itself, in one of the sets, before that, and is counted until its Guard ends. By
//       (1) its Guard has ended. Which set it was does not matter: a reader that was late, and
//       counted itself in a set whose epoch has passed, is found there as well.
//   (3) All of these are sequentially consistent operations: the reader's count comes before its
//       load of the pointer, which comes before the unlinking, before the retiring, before the look
//       at the sets.
//
// A reader whose Guard never ends keeps all objects retired from then on. Cost: two locked
// additions a Guard.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

#include "base/mutex.h"

namespace skep {

// Thread-safe. The destructor frees the objects that are left: no thread may be reading them then.
class Epochs {
 public:
  class Guard {
   public:
    explicit Guard(Epochs& epochs)
        : count_(epochs.counts_[epochs.epoch_.load(std::memory_order_seq_cst) & 1][ShardOfThread()]
                     .value) {
      count_.fetch_add(1, std::memory_order_seq_cst);  // (3)
    }
    ~Guard() { count_.fetch_sub(1, std::memory_order_seq_cst); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<int64_t>& count_;
  };

  Epochs() = default;
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  // Calls `free` when no reader can have the object.
  void Retire(std::function<void()> free) {
    Garbage one;
    one.emplace_back().free = std::move(free);
    Retire(one);
  }
  // An object to retire. A list of them is made before the objects are unlinked, so that Retire()
  // allocates nothing and cannot lose one.
  struct Retired {
    uint64_t epoch = 0;  // filled in by Retire()
    std::function<void()> free;
  };
  using Garbage = std::list<Retired>;
  void Retire(Garbage& garbage) noexcept;
  // Frees the objects that no reader can have any more. Returns whether some are left. Does not
  // wait.
  bool Reclaim();

 private:
  static constexpr uint32_t kShards = 16;
  struct alignas(64) Count {
    std::atomic<int64_t> value{0};
  };

  static uint32_t ShardOfThread();

  std::atomic<uint64_t> epoch_{0};
  std::array<std::array<Count, kShards>, 2> counts_;
  Mutex mutex_;  // guards retired_, and changes of epoch_
  Garbage retired_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
