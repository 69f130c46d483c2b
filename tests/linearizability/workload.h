// workload.h: random operations on few keys, so that clients meet.
//
// Every stored value is a decimal that no other operation stores, so that a read tells which write
// it saw, and kAddDecimal acts on any value. A longer value is written "<decimal>~<bytes>", which
// is no number; padded_client.h makes it that long. Batches often write one value to several keys:
// half of such a batch is then easy to see.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

struct Mix {
  uint32_t keys = 4;  // at most 26
  // Weights of the kinds; 0 leaves a kind out.
  uint32_t points = 6;
  uint32_t ranges = 3;
  uint32_t batches = 3;
  uint32_t snapshots = 2;
  uint32_t transactions = 1;  // each is several operations: watches, reads, a batch that needs them
  uint32_t ticks = 1;         // 0: no deadlines either
  bool quiet_ticks = false;   // no other operation is in flight while time is told
  // Lengths of values, in turn; 0: only the decimal.
  std::vector<uint32_t> value_bytes = {0};
};

// Returns value number `n` (from 1 on) of a client.
std::string ValueOf(const Mix& mix, uint32_t client, uint64_t n);

// The operations of one client, in turn. Thread safety: one owner.
class Workload {
 public:
  using Filter = std::function<bool(const Operation&)>;
  static constexpr uint32_t kSnapshotsMax = 2;  // that one client holds open
  static constexpr uint32_t kWatchesMax = 2;

  // `filter` says which operations are allowed; some point must be. `time` is the latest that any
  // client of the history has told; the workload raises it.
  Workload(uint32_t client, uint64_t seed, const Mix& mix, std::atomic<uint64_t>& time,
           Filter filter);

  // Returns the next operation, without answers. Snapshot numbers are 0 .. kSnapshotsMax-1, those
  // of watches 0 .. kWatchesMax-1. No two operations tell the same time.
  Operation Next();
  // Notes that the snapshot could not be opened or is gone.
  void Forget(uint32_t snapshot) { open_[snapshot] = false; }

 private:
  std::deque<Operation> Draw();
  Operation Point();
  Operation OneRange();
  Operation ABatch();
  Operation InParts();
  Operation OnSnapshot();
  Operation ATick();
  std::deque<Operation> Transaction();
  void AddParts(Operation& operation);
  Step PointStep();
  Step StoreStep(Action action);
  Step CompareStep();
  Step RangeStep();
  Step ReadStep();
  Step Condition();
  std::string Key();
  std::string NewValue();
  std::string OldValue();
  uint64_t Deadline();
  uint64_t Below(uint64_t bound) { return rng_() % bound; }

  const uint32_t client_;
  const Mix mix_;
  std::atomic<uint64_t>& time_;
  const Filter filter_;
  std::mt19937_64 rng_;
  std::deque<Operation> planned_;
  uint64_t values_ = 0;  // number made so far
  bool open_[kSnapshotsMax] = {};
};

}  // namespace skep::linearizability
