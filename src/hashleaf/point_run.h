// point_run.h: executes the points of an unordered batch (HeteroKV, section III-D: a thread takes
// all requests of a leaf, so that the leaf is read from memory once).
//
//   Add      copies keys, hashes and values out of the requests
//   Flush    Dispatcher: groups by leaf
//            lanes: the groups, by this thread or by it and helpers (lane.h)
//            outcomes, in the order of arrival
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hashleaf/lane.h"

namespace skep::hashleaf {

// Owner: one execution of one batch, by one thread, which is a reader of the core's epochs.
template <typename K>
class PointRun {
 public:
  struct Window;
  // The thread's next batch reuses the memory of the window.
  static Window& WindowOfThread();

  PointRun(Core<K>& core, const EngineTraits& traits, Batch& batch, BatchWriter& out,
           LeafMutator<K>& mutator);

  // Takes points from this slot on and returns the first slot that is no point, or the batch's
  // size. Refuses points that are not well-formed. Flushes full windows.
  uint32_t Add(uint32_t slot);
  void Flush();
  // The highest number read or drawn so far.
  Version ticket() const { return ticket_; }

 private:
  static constexpr uint32_t kWindow = 32 * 1024;
  // A window of fewer units is done before a helper has come.
  static constexpr uint32_t kSharedMin = 2048;

  PointKind KindOf(const Request& request) const;
  void Share(const SortedWindow<K>& sorted);
  bool LockToRead(const SortedWindow<K>& sorted, const Group<K>& group);
  void PostponeAll();
  void Answer();
  char* ValueOf(uint32_t index) const { return values_ + size_t{index} * value_bytes_; }

  Core<K>& core_;
  const EngineTraits& traits_;
  Batch& batch_;
  const std::span<const Request> requests_;
  BatchWriter& out_;
  LeafMutator<K>& mutator_;
  const LeafMap<K>* map_;
  Window& window_;
  const uint32_t value_bytes_;
  const bool numbers_;
  char* values_ = nullptr;  // of each unit: the value that it stores, or has read
  uint32_t count_ = 0;
  bool has_other_ = false;
  bool postpones_ = false;  // a limit was reached before the window began
  Version ticket_ = 0;
};

extern template class PointRun<uint32_t>;
extern template class PointRun<uint64_t>;
extern template class PointRun<Key128>;

}  // namespace skep::hashleaf
