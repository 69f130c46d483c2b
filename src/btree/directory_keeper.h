// directory_keeper.h: makes the tree's directory of leaves (leaf_directory.h) when that pays, and
// makes it anew when it has gone out of date.
//
// Roles
//   reader   in its epoch: current(), then LeafDirectory::Find() and the checks of Reader::Surmise
//            or, for a window of requests, of look_ahead.h. It notes an operation that the
//            directory has not led to its leaf, and which then went down from the root
//            (ThreadState::unguided).
//   keeper   whoever calls Maintain: one thread at a time, under the mutex; others go on. It adds
//            up what threads have noted. Once there is a note for every kUnguidedShare leaves, it
//            reads the links of the leaves, Limits::leaves_maintain a call, makes a directory of
//            them and puts it in the place of the old one.
//
// Cost. A build reads each lowest inner node once, and writes 16 bytes a leaf. It reads
//   kUnguidedShare leaves for each operation that has asked for it. So it costs an operation that
//   was not led a constant, however large the tree is. While a tree is loaded, leaves split and the
//   directory goes out of date; it is made anew when the requests that it did not lead pay for it.
//   If so many fences are alike in their words that it leads too few (kAlikeShare), or there is no
//   memory, the next try takes twice as much.
//
// Why a reader may use what it has
//   (1) The pointer is stored and loaded seq_cst, and the load comes after the reader has announced
//       its epoch. So (E1) of versions.h holds with the pointer as the row: a reader whose
//       announcement the keeper's scan misses sees the new pointer.
//   (2) The keeper stores the pointer, advances the epoch from t to t + 1 and frees the old
//       directory once every announced epoch is above t. It does not begin another build before.
//       So there are at most two directories, or one and one that is being made, however long a
//       reader stalls.
//
// Progress: a reader does one load more and never waits. Maintain waits for nobody.
//
// Memory: charged to the budget; made only if four times as much has room there, so that it takes
// no room that a write is about to need. It is dropped when the tree has shrunk to half.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "btree/versions.h"

namespace skep::btree {

struct Core;
class LeafDirectory;

class DirectoryKeeper {
 public:
  // A build is due when there was an unguided operation for every so many leaves.
  static constexpr uint64_t kUnguidedShare = 8;
  // One leaf in so many may be like the one before.
  static constexpr uint64_t kAlikeShare = 4;

  struct Limits {
    // The inner nodes of a smaller tree lie in the core's own caches.
    uint64_t leaves_min = 512;
    // Leaves that a call of Maintain reads.
    uint32_t leaves_maintain = 2048;
  };

  explicit DirectoryKeeper(MemoryBudget& budget);
  ~DirectoryKeeper();
  DirectoryKeeper(const DirectoryKeeper&) = delete;
  DirectoryKeeper& operator=(const DirectoryKeeper&) = delete;

  // The directory; null: there is none. Valid as long as the caller stays in its epoch.
  const LeafDirectory* current() const { return current_.load(std::memory_order_seq_cst); }

  // Does a bounded piece of the keeper's work. The thread is out of its epoch. Returns whether
  // there is more to do now.
  template <class Layout>
  bool Maintain(Core& core, ThreadState& thread);

  // The bytes of all directories.
  uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }
  // How often a directory was made.
  uint64_t builds() const { return builds_.load(std::memory_order_relaxed); }

  // Called before the first operation.
  void set_limits(const Limits& limits) { limits_ = limits; }
  // Puts a directory in the place of the present one. The thread is out of its epoch; no other
  // thread is in Maintain.
  void Replace(Core& core, std::unique_ptr<LeafDirectory> directory);

 private:
  bool IsDue(const Core& core, uint64_t leaves) const SKEP_REQUIRES(mutex_);
  template <class Layout>
  bool Begin(Core& core, ThreadState& thread, uint64_t leaves) SKEP_REQUIRES(mutex_);
  template <class Layout>
  bool Build(Core& core, ThreadState& thread) SKEP_REQUIRES(mutex_);
  void Publish(Core& core, std::unique_ptr<LeafDirectory> directory) SKEP_REQUIRES(mutex_);
  void FreeRetired(const Core& core) SKEP_REQUIRES(mutex_);
  void GiveUp(const Core& core) SKEP_REQUIRES(mutex_);
  void Charge(const LeafDirectory& directory);
  void Discard(std::unique_ptr<LeafDirectory> directory);

  MemoryBudget& budget_;
  Limits limits_;
  std::atomic<const LeafDirectory*> current_{nullptr};
  std::atomic<uint64_t> held_bytes_{0};
  std::atomic<uint64_t> builds_{0};

  Mutex mutex_;
  std::unique_ptr<LeafDirectory> owned_ SKEP_GUARDED_BY(mutex_);    // current_
  std::unique_ptr<LeafDirectory> retired_ SKEP_GUARDED_BY(mutex_);  // null: none
  uint64_t retired_epoch_ SKEP_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<LeafDirectory> made_ SKEP_GUARDED_BY(mutex_);  // null: no build has begun
  std::string next_ SKEP_GUARDED_BY(mutex_);                     // the key that it goes on from
  uint64_t noted_ SKEP_GUARDED_BY(mutex_) = 0;     // unguided operations when it last began
  uint64_t patience_ SKEP_GUARDED_BY(mutex_) = 1;  // a factor of what makes a build due
};

}  // namespace skep::btree
