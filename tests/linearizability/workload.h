// workload.h: random operations on few keys, so that clients meet.
//
// Every value stored is a decimal that no other operation stores, so that a read tells which write
// it saw, and kAddDecimal acts on whatever it finds. One that is to be longer is written
// "<decimal>~<bytes>", which is no number; padded_client.h makes it as long as that. Batches like
// to write one value to several keys: half of such a batch is then easy to see.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/linearizability/history.h"

namespace skep::linearizability {

struct Mix {
  uint32_t keys = 4;  // at most 26
  // Weights; 0 leaves a kind out.
  uint32_t points = 6;
  uint32_t ranges = 3;
  uint32_t batches = 3;
  uint32_t snapshots = 2;
  // How long values are, in turn; 0: only the decimal.
  std::vector<uint32_t> value_bytes = {0};
};

// The value number `n` (from 1 on) of a client.
std::string ValueOf(const Mix& mix, uint32_t client, uint64_t n);

// The operations of one client, in turn. Thread safety: one owner.
class Workload {
 public:
  using Filter = std::function<bool(const Operation&)>;
  static constexpr uint32_t kSnapshotsMax = 2;  // that one client holds open

  // `filter` says what may be asked; some point must pass it.
  Workload(uint32_t client, uint64_t seed, const Mix& mix, Filter filter);

  // What to ask next, without answers. Snapshot numbers are 0 .. kSnapshotsMax-1.
  Operation Next();
  // Tells that the snapshot could not be opened or is gone.
  void Forget(uint32_t snapshot) { open_[snapshot] = false; }

 private:
  Operation Draw();
  Operation Point();
  Operation OneRange();
  Operation ABatch();
  Operation OnSnapshot();
  Step PointStep();
  Step RangeStep();
  Step ReadStep();
  Step Condition();
  std::string Key();
  std::string NewValue();
  std::string OldValue();
  uint64_t Below(uint64_t bound) { return rng_() % bound; }

  const uint32_t client_;
  const Mix mix_;
  const Filter filter_;
  std::mt19937_64 rng_;
  uint64_t values_ = 0;  // made so far
  bool open_[kSnapshotsMax] = {};
};

}  // namespace skep::linearizability
