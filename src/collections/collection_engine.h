// collection_engine.h: an engine whose collections may have any size.
//
// It wraps an engine that has order, types, functions and atomic batches. A collection that
// outgrows one value becomes a record and segments (layout.h), which are items of the wrapped
// engine like others: so the log, snapshots and recovery, which the wrapped engine has, have them
// too. Who uses this engine sees keys with collections, and no segments.
//
// The keyspace that is seen
//   Users' keys are below kHiddenFrom: a point of another key is refused, every range ends there,
//   and a sample that is hidden is drawn again. So no request reads or changes a hidden item, but
//   kDeleteAll, which deletes all. Types and functions of records and segments are refused. The
//   type of a large collection is told as that of a small one, but to a kGet with kIfOfType.
//
// Unordered batches
//   The wrapped engine executes the batch and sets aside what needs the large form, and every later
//   request of those keys (types/form_scope.h). Keys that are likely to have a large collection are
//   set aside beforehand (large_hints.h). Those requests are then done key by key, in order: on a
//   large collection as large_call.h says, those that name members, or ends of a list, together; a
//   collection that has outgrown one value is first converted (conversion.h). Everything else of
//   the batch costs what it does without this engine. What follows a call that is left out because
//   it would be long (Batch::set_portion_bytes_max), on its key, stays postponed: whoever makes the
//   call in another way makes it first.
//
// Atomic batches
//   The keys of functions of collections, and of moves, are locked (key_locks.h), so none of them
//   becomes large, or gets a large collection, between the look at their types and the batch. If
//   none is large, the batch is executed as it is. A batch that only reads is answered at one
//   snapshot, request by request. In another one calls about a few members or elements are made
//   where these lie (atomic_calls.h). Else large collections are put back into one value within the
//   batch, under the condition that nothing was written since they were read, and are converted
//   again afterwards: its cost is that of the collections.
//   Functions of an atomic batch may make values up to the engine's limit; those that outgrow the
//   small form are converted when it is done.
//   An atomic batch with Batch::set_portion_bytes_max that is not at a snapshot is left out as a
//   whole, every slot kPostponed and nothing applied, where it would wait for another call's turn
//   or lock at one of its keys, where one of its calls would be left out of an unordered batch or
//   all of them together look at kPortionsMax portions, and where collections of more than a
//   portion would be put into one value.
//
// Progress. A request that is set aside is done again when others have written what it read; after
// kTriesMax times, or one that was long, it has the turn at its key (Turnstiles), and those on the
// key that come later wait, or stay postponed in a batch that leaves long calls out. So it ends
// after at most one more failure for each thread. Requests that are done together are tried
// kGroupTriesMax times, then the first of them is done alone, and fewer of the others together.
// Locks of keys are taken after the turn, never before it, so there is no cycle. A batch that
// leaves long calls out (LeavesOut) waits for no turn and for no lock of a key: those may be held
// for as long as a long call takes. It tries them, and what does not get them stays postponed.
//
// Time. Fields of hashes have deadlines (types/hash_fields.h). The functions of a batch see one
// time, which is not before that of any batch that ended before this one began: so a field that was
// seen as gone stays so. What is due is removed in the background (field_sweeper.h).
//
// Moves. See names.h: the new names of a large collection are added before its record moves.
//
// Thread safety: as Engine.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "collections/access.h"
#include "collections/atomic_calls.h"
#include "collections/field_sweeper.h"
#include "collections/hidden_items.h"
#include "collections/key_locks.h"
#include "collections/large_call.h"
#include "collections/large_hints.h"
#include "collections/layout.h"
#include "collections/segment_hints.h"
#include "collections/sweeper.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"
#include "engine/plain_gets.h"

namespace skep::collections {

// Whether an engine with these traits can have large collections.
bool CanHaveCollections(const EngineTraits& traits);

// Whether an engine that is not wrapped has parts of large collections.
bool HasParts(Engine& engine);

constexpr bool IsCollection(uint8_t type) {
  return type >= types::kHash && type <= types::kSortedSet;
}
// The type of the collection that a point asks for, or stores; kPlainType: none.
inline uint8_t KindWanted(const Request& r) {
  if (IsRange(r.op) || r.op == Op::kSample || r.op == Op::kDeleteAll) return kPlainType;
  const uint8_t type = r.op == Op::kApply && r.function != nullptr ? r.function->type : r.type;
  return IsCollection(type) ? type : kPlainType;
}

class CollectionEngine final : public ForwardingEngine, public PlainGets {
 public:
  // `value_bytes`: the size from which a collection no longer lies in one value. The memory of
  // hints is charged to the budget, which must outlive the engine; null: to none.
  CollectionEngine(std::unique_ptr<Engine> inner, size_t value_bytes,
                   MemoryBudget* budget = nullptr);

  // Whether this version reads the large collections that the wrapped engine has (names.h). To be
  // asked for before anything else.
  bool ReadsRecords();

  Version Execute(Batch& batch) override;
  // A record or a segment is not of kPlainType, and the key of a segment is refused.
  std::optional<Version> GetPlain(std::string_view key,
                                  std::optional<std::string>* value) override {
    if (plain_gets_ == nullptr || IsHidden(key)) return std::nullopt;
    return plain_gets_->GetPlain(key, value);
  }
  Version GetManyPlain(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                       PlainValues values) override {
    if (plain_gets_ == nullptr || std::ranges::any_of(keys, IsHidden)) return 0;
    return plain_gets_->GetManyPlain(keys, answers, values);
  }
  //   kInvalidArgument  the key is hidden
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override;
  bool Maintain(uint64_t now_ms) override;
  // Without the hidden items.
  EngineStatistics Statistics() const override;
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override;
  const char* Verify() const override;

  ReleaseGate& gate() override { return inner().gate(); }
  const ReleaseGate& gate() const override { return inner().gate(); }
  ReleaseGate& synced_gate() override { return inner().synced_gate(); }

 private:
  static constexpr int kTriesMax = 8;
  static constexpr int kGroupTriesMax = 3;
  // The bytes that an attempt has copied which is not repeated without the turn.
  static constexpr size_t kLongAttemptBytes = size_t{4} << 20;
  // How many requests are done together at most, and how many at first after they have failed: the
  // more there are, the more others are likely to write what they have read.
  static constexpr size_t kGroupMax = 256;
  static constexpr size_t kGroupAfterFailure = 8;
  // How many keys of a batch are set aside beforehand: each request is compared with all of them.
  static constexpr size_t kHintedMax = 4;
  // Between two rounds of the sweep that nothing but the time asks for.
  static constexpr uint64_t kLookMs = 60'000;
  // A request that has the turn and fails that often has met bytes that are no collection.
  static constexpr int kTurnTriesMax = 10'000;
  // The portions that the calls of an atomic batch which leaves long calls out look at together.
  static constexpr size_t kPortionsMax = AtomicCalls::kPortionsMax;

  // The kinds of requests in a batch that the wrapped engine cannot execute alone.
  struct Needs {
    bool refuses = false;  // a request names what is hidden
    bool samples = false;
    bool collections = false;  // a function of collections, or a value of one
    bool moves = false;
    bool deletes_all = false;
    bool field_deadlines = false;  // a field of a hash may get a deadline
  };

  Access AccessOf(const Batch& batch) {
    SegmentHints* const hints = batch.snapshot().id == 0 ? &segment_hints_ : nullptr;
    Access access(inner(), batch.now_ms(), segment_bytes_, batch.snapshot(), hints);
    access.set_portion_bytes_max(batch.portion_bytes_max());
    return access;
  }
  static Status WhyRefused(const Request& request);
  static Needs Prepare(Batch& batch);

  bool SetAsideHinted(const Batch& batch, types::FormScope& scope) const;
  Version ExecuteUnordered(Batch& batch, const Needs& needs);
  Version DoOfKey(Batch& batch, std::span<const uint32_t> slots);
  size_t TryTogether(Access& access, Batch& batch, std::span<const uint32_t> slots);
  Version DoAlone(Batch& batch, uint32_t slot);
  // Whether the batch leaves out what is long, or would wait for what is.
  static bool LeavesOut(const Batch& batch) { return batch.portion_bytes_max() != SIZE_MAX; }
  static Wait WaitOf(const Batch& batch) { return LeavesOut(batch) ? Wait::kMustNot : Wait::kMay; }
  bool Pass(const Batch& batch, std::span<const std::string_view> keys);
  bool TryAlone(Access& access, Batch& batch, uint32_t slot);
  bool TryInOneValue(Access& access, Batch& batch, uint32_t slot, size_t bytes_max,
                     bool sets_aside);
  void Fill(Batch& batch, uint32_t slot, uint8_t kind, Access& access, const Answer& answer);
  std::optional<WriteResult> MakeLarge(Access& access, std::string_view key, uint8_t kind,
                                       Wait wait, Status* status);

  Version ExecuteAtomic(Batch& batch, const Needs& needs);
  std::vector<std::string_view> LargeKeys(Access& access, const Batch& batch) const;
  Version ReadAtSnapshot(Batch& batch);
  bool ReadPart(Batch& batch, BatchWriter& out, const skep::Part& part, SnapshotRef at);
  static bool IsTooMuch(const Batch& batch, uint32_t slot);
  void ReadSlot(Batch& batch, BatchWriter& out, uint32_t slot, SnapshotRef at);
  // One attempt at an atomic batch: how it is made, and what it has done.
  struct Attempt {
    bool is_in_turn = false;               // nobody else comes to the keys' large collections
    std::vector<std::string_view> joined;  // the large collections that were put into one value
  };
  bool TryAtomic(Access& access, Batch& batch, const std::vector<std::string_view>& keys,
                 const Needs& needs, Attempt* attempt);
  bool TryLarge(Access& access, Batch& batch, const std::vector<std::string_view>& large,
                Attempt* attempt);
  bool TryWhole(Access& access, Batch& batch, const std::vector<std::string_view>& large,
                Status* no_memory);
  void ConvertOutgrown(Access& access, const Batch& batch, std::vector<std::string_view> keys);
  void ConvertIfOutgrown(Access& access, std::string_view key, Wait wait);

  void HideTypes(Batch& batch);
  void CountDeletedAll(Batch& batch);
  void NoteFieldDeadlines(const Batch& batch);
  void NoteLeft(const Batch& batch);
  bool HasHidden();
  uint64_t NewId(Access& access);
  void CountHidden();

  PlainGets* const plain_gets_;  // of the wrapped engine; null: it has none
  const size_t value_bytes_;
  const size_t segment_bytes_;
  KeyLocks locks_;
  Turnstiles turnstiles_;
  LargeHints large_hints_;
  SegmentHints segment_hints_;
  Sweeper sweeper_;
  FieldSweeper field_sweeper_;
  std::atomic<bool> was_looked_at_{false};  // has_hidden_ is known
  std::atomic<bool> has_hidden_{false};     // there were hidden items once
  HiddenItems hidden_items_;
  std::atomic<bool> has_deadlines_{false};  // a large collection may have a deadline
  std::atomic<uint64_t> looked_ms_{0};      // when a round was last asked for because of that
  std::atomic<uint64_t> last_id_{0};
  std::atomic<uint64_t> expired_keys_{0};  // of the engine, when a round was last asked for
  std::atomic<uint64_t> swept_items_{0};
  std::atomic<uint64_t> conversions_{0};
};

}  // namespace skep::collections
