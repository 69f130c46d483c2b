// batch_executor.h: executes one batch from start to end.
//
// The executor enters an epoch, announces what the batch reads or that it writes (versions.h), and
// passes each request on: points to Reader and Writer, ranges to Ranges and RangeDelete, an atomic
// batch that writes to AtomicPoints or AtomicRanges. An unordered batch is a sequence of requests,
// each by itself; between two of them nothing is held but the epoch and the floors. A long batch
// rests there after every kRestEvery requests, and within kExpireRange after every 64 keys: it
// leaves its epoch and releases finished versions. A read over one range keeps its epoch to its
// end, as does a batch that reads all at one version. A batch at a snapshot announces no version
// (snapshots.h).
#pragma once

#include <cstdint>
#include <optional>

#include "btree/core.h"
#include "btree/look_ahead.h"
#include "btree/reader.h"
#include "btree/upkeep.h"
#include "btree/writer.h"
#include "engine/batch_writer.h"

namespace skep::btree {

// Owner: one execution of one batch. The thread is outside its epoch.
// It has 31 methods: what the thread has announced (epoch, floors, pin) is state that every kind of
// request needs, and that the next one, or a rest, has to withdraw.
template <class Layout>
class BatchExecutor {
 public:
  BatchExecutor(Core& core, Upkeep& upkeep, const EngineTraits& traits, ThreadState& thread,
                Batch& batch)
      : core_(core),
        upkeep_(upkeep),
        traits_(traits),
        thread_(thread),
        batch_(batch),
        out_(batch),
        writer_(core, upkeep),
        reader_(core),
        look_ahead_(core, thread) {}

  // Fills in the outcomes, and returns the batch's ticket. Called once.
  Version Execute();
  // Whether versions may have been drawn.
  bool wrote() const { return wrote_; }

 private:
  static constexpr Version kNewest = Reader<Layout>::kNewest;
  // The number of requests between two rests of a batch.
  static constexpr uint32_t kRestEvery = 256;
  static_assert(kRestEvery % LookAhead<Layout>::kWindow == 0, "no window is looked at in vain");

  const Request& request(uint32_t i) const { return batch_.requests()[i]; }
  bool NeedsNewest() const;

  Version BeginReading();
  void EndReading();
  Version ReadingVersion();
  void BeginWrites();
  void PauseWrites();
  static bool IsTimeToRest(uint32_t i) { return i > 0 && i % kRestEvery == 0; }
  void Rest();
  void RestReading();
  void AwaitReleased(Version version);
  void Reclaim();

  Version DoBatch();
  Version DoUnordered();
  Version DoAtomic();
  Version DoAtSnapshot();
  void DoReads(Version at);

  Version DoSlot(uint32_t i);
  void Read(uint32_t i, Version at);
  LeafPlace LeafOf(uint32_t i, Version at) const;
  Version Get(uint32_t i, const LeafPlace& place, Version at);
  Version GetNewest(uint32_t i);
  Version ApplyReading(uint32_t i);
  Version Write(uint32_t i);
  void DoRange(uint32_t i, Version at);
  Version Sample(uint32_t i);
  Version DeleteRange(uint32_t i);
  Version ExpireRange(uint32_t i);

  Core& core_;
  Upkeep& upkeep_;
  const EngineTraits& traits_;
  ThreadState& thread_;
  Batch& batch_;
  uint64_t now_ms_ = 0;
  BatchWriter out_;
  Writer<Layout> writer_;
  const Reader<Layout> reader_;
  LookAhead<Layout> look_ahead_;
  bool writes_ = false;                // a write floor is announced now
  bool wrote_ = false;                 // a write floor was announced
  bool reads_ = false;                 // a read floor is announced
  std::optional<Snapshots::Use> pin_;  // pins read_at_, in place of a floor
  Version read_at_ = 0;                // the version, if reads_ or pin_
};

}  // namespace skep::btree
