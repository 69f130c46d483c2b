// hidden_items.h: how many items of an engine are parts of large collections, while writes go on
// and all items may be deleted at any time.
//
// A write adds what it has made, and takes off what it has deleted, once it is done: with its
// version, for a delete of everything may have come between. What was written before the version of
// such a delete is gone, what was written after it stays. So while one is under way, what is added
// is noted with its version.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "skep/batch.h"

namespace skep::collections {

class HiddenItems {
 public:
  // A write of this version has made so many more items, or fewer.
  void Add(Version version, int64_t items) {
    if (items == 0) return;
    const MutexLock lock(mutex_);
    if (version < deleted_at_) return;
    count_ += items;
    if (deletes_ > 0) noted_.emplace_back(version, items);
  }
  int64_t count() const {
    const MutexLock lock(mutex_);
    return std::max<int64_t>(count_, 0);
  }

  // A delete of everything begins. Every call is followed by one of EndDelete.
  void BeginDelete() {
    const MutexLock lock(mutex_);
    ++deletes_;
  }
  // It has ended, at this version; 0: nothing was deleted. Returns how many items it has deleted.
  int64_t EndDelete(Version version) {
    const MutexLock lock(mutex_);
    int64_t deleted = 0;
    if (version > deleted_at_) {
      deleted_at_ = version;
      const int64_t before = std::exchange(count_, 0);
      for (const auto& [at, items] : noted_) {
        if (at > version) count_ += items;
      }
      deleted = std::max<int64_t>(before - count_, 0);
    }
    if (--deletes_ == 0) noted_.clear();
    return deleted;
  }

 private:
  mutable Mutex mutex_;
  int64_t count_ SKEP_GUARDED_BY(mutex_) = 0;
  Version deleted_at_ SKEP_GUARDED_BY(mutex_) = 0;
  int deletes_ SKEP_GUARDED_BY(mutex_) = 0;  // under way
  std::vector<std::pair<Version, int64_t>> noted_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep::collections
