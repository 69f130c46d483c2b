// batch_writer.h: how an engine fills in a batch's outcomes.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/engine.h"
#include "skep/batch.h"

namespace skep {

// What a key that is only visited counts for in Batch::work_bytes().
inline constexpr size_t kVisitBytes = 16;

// Slots of an atomic batch that are applied or not as one.
struct Part {
  uint32_t begin, end;
  bool is_first;  // if it is not applied, no other is
};

// All parts in order; the first one may be empty, and is the whole batch if it has no parts.
template <typename Visit>
void ForEachPart(const Batch& batch, Visit visit) {
  const auto begins = batch.part_begins();
  const auto size = static_cast<uint32_t>(batch.size());
  uint32_t begin = 0;
  for (size_t i = 0; i <= begins.size(); ++i) {
    const uint32_t end = i < begins.size() ? begins[i] : size;
    if (!visit(Part{.begin = begin, .end = end, .is_first = i == 0})) return;
    begin = end;
  }
}

// Thread safety: the thread that executes the batch.
class BatchWriter {
 public:
  // Drops earlier outcomes with their bytes, and makes one for every request, kRefused until set.
  explicit BatchWriter(Batch& batch) : batch_(batch) {
    batch.outcomes_.assign(batch.requests_.size(), Outcome{});
    batch.item_spans_.clear();
    batch.effects_.clear();
    batch.applied_ = true;
    batch.seen_bytes_ = 0;
    batch.answers_.Clear();
  }

  // Changes some outcomes of a batch that was executed.
  struct KeepOutcomes {};
  BatchWriter(Batch& batch, KeepOutcomes) : batch_(batch) {}

  // Drops the outcomes, so that those there are later are of what begins now.
  static void Forget(Batch& batch) { batch.outcomes_.clear(); }
  // The highest version of an outcome, also if the batch's execution has thrown; 0: there is none.
  static Version LastVersion(const Batch& batch) {
    Version last = 0;
    for (const Outcome& outcome : batch.outcomes_) last = std::max(last, outcome.version);
    return last;
  }

  Outcome& outcome(uint32_t slot) { return batch_.outcomes_[slot]; }
  // Bytes that live as long as the outcomes.
  Scratch& scratch() { return batch_.answers_; }

  // The batch has looked at so many bytes, beside what it copies into scratch().
  void CountWork(size_t bytes) { batch_.seen_bytes_ += bytes; }
  // How much it may look at yet before IsFull().
  size_t work_left() const {
    const size_t done = batch_.work_bytes();
    return done < batch_.work_bytes_max_ ? batch_.work_bytes_max_ - done : 0;
  }
  // Whether a limit is reached: a point is left out then. It stays so until the batch is executed
  // again, so that of one key all that come behind are left out, too.
  bool IsFull() const {
    const size_t answers = batch_.answers_.used();
    return answers > batch_.answer_bytes_max_ ||
           answers + batch_.seen_bytes_ > batch_.work_bytes_max_;
  }
  // Whether all that comes now, whatever it is, is to be postponed.
  bool IsPostponing() const {
    return batch_.kind() == Batch::Kind::kUnordered && batch_.work_bytes() > batch_.work_bytes_max_;
  }
  void Postpone(uint32_t slot) { outcome(slot) = {.verdict = Verdict::kPostponed}; }
  // Once IsFull().
  void LeaveOut(uint32_t slot);
  // Leaves out a scan of an atomic batch if IsFull(); one of an unordered batch has bounds of its
  // own (Batch::set_scan_bytes_max) and is told to go on from where it stopped.
  bool LeavesOutScan(uint32_t slot) {
    if (batch_.kind() != Batch::Kind::kAtomic || !IsFull()) return false;
    LeaveOut(slot);
    return true;
  }

  // While there is one, no limit of the work is reached: for what cannot be divided.
  class Whole {
   public:
    explicit Whole(BatchWriter& out)
        : batch_(out.batch_), max_(std::exchange(batch_.work_bytes_max_, SIZE_MAX)) {}
    ~Whole() { batch_.work_bytes_max_ = max_; }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

   private:
    Batch& batch_;
    const size_t max_;
  };

  void Refuse(uint32_t slot, Status status) {
    outcome(slot).verdict = Verdict::kRefused;
    outcome(slot).status = status;
  }
  // The answers of the batch have reached their limit.
  void RefuseAnswer(uint32_t slot) {
    Refuse(slot, {Code::kTooLarge, "the values of a batch exceed the maximum size",
                  batch_.answer_bytes_max_});
  }
  // A write for which there is no memory.
  void RefuseMemory(uint32_t slot, const MemoryBudget& budget) {
    Refuse(slot, {Code::kOutOfMemory, "the memory limit is reached", budget.limit()});
  }
  // Every slot.
  void RefuseAll(Status status) {
    for (Outcome& o : batch_.outcomes_) o = {.verdict = Verdict::kRefused, .status = status};
    batch_.applied_ = batch_.kind() == Batch::Kind::kUnordered;
  }
  // What became of an atomic batch that somebody else has executed.
  void set_applied(bool applied) { batch_.applied_ = applied; }
  // The atomic batch is not applied; the slot `culprit`, already set, says why.
  void AbortAllBut(uint32_t culprit);
  // The same of one part.
  void AbortPart(const Part& part, uint32_t culprit);
  // Whichever of these it comes to if the part is not applied.
  void Abort(const Part& part, uint32_t culprit) {
    part.is_first ? AbortAllBut(culprit) : AbortPart(part, culprit);
  }

  bool notes_effects() const { return batch_.notes_effects_; }
  // What a kApply makes of its key, if the batch wants effects. `value` lives as long as the batch.
  void Note(uint32_t slot, Effect::Kind kind, std::string_view value = {}) {
    if (!batch_.notes_effects_) return;
    batch_.effects_.push_back({.kind = kind, .slot = slot, .value = value});
  }
  // That a kExpireRange has given this deadline, or a kScan found it.
  void NoteDeadline(uint32_t slot, std::string_view key, uint64_t deadline_ms,
                    Version version = 0) {
    if (!batch_.notes_effects_) return;
    batch_.effects_.push_back({.kind = Effect::Kind::kDeadline,
                               .slot = slot,
                               .key = scratch().Copy(key),
                               .deadline_ms = deadline_ms,
                               .version = version});
  }
  // The batch is executed once more.
  void ForgetEffects() { batch_.effects_.clear(); }

  // The items of one scan must be added one after the other: BeginItems, AddItem or AddItems...
  void BeginItems(uint32_t slot) {
    outcome(slot).first_span = static_cast<uint32_t>(batch_.item_spans_.size());
    outcome(slot).item_count = 0;
  }
  // Copies the item. Returns the copy.
  Item AddItem(uint32_t slot, const Item& item) {
    char* const at = scratch().Room(item.key.size() + item.value.size());
    CopyBytes(at, item.key.data(), item.key.size());
    CopyBytes(at + item.key.size(), item.value.data(), item.value.size());
    const auto key_bytes = static_cast<uint32_t>(item.key.size());
    const auto value_bytes = static_cast<uint32_t>(item.value.size());
    AddItems(slot, {.at = at, .count = 1, .key_bytes = key_bytes, .value_bytes = value_bytes});
    return {.key = {at, key_bytes}, .value = {at + key_bytes, value_bytes}};
  }
  // Adds items that were written to what scratch().Room() returned; nothing was allocated since.
  void AddItems(uint32_t slot, const ItemSpan& span) {
    scratch().Allocate(span.count * span.stride());
    AddKeptItems(slot, span);
  }
  // Adds items that live as long as the outcomes; not none.
  void AddKeptItems(uint32_t slot, const ItemSpan& span) {
    Outcome& to = outcome(slot);
    if (to.item_count == 0 || !Continues(batch_.item_spans_.back(), span)) {
      batch_.item_spans_.push_back(span);
    } else {
      batch_.item_spans_.back().count += span.count;
    }
    to.item_count += span.count;
  }

 private:
  static bool Continues(const ItemSpan& before, const ItemSpan& span) {
    return before.key_bytes == span.key_bytes && before.value_bytes == span.value_bytes &&
           before.end() == span.at;
  }

  Batch& batch_;
};

// Gives the slot `to_slot` the outcome that another batch has in `slot`; its bytes are copied.
void CopyOutcome(const Batch& from, uint32_t slot, BatchWriter& to, uint32_t to_slot);

// The checks that are the same for every engine. Whether the batch as a whole can be executed by an
// engine with these traits: kOk, or why every slot must be refused.
Status CheckBatch(const Batch& batch, const EngineTraits& traits);

// Whether the request is well-formed in this batch for an engine with these traits: kOk, or why it
// must be refused.
Status CheckRequest(const Request& request, const Batch& batch, const EngineTraits& traits);
// Of that, whether its key and value are too large: kTooLarge.
Status CheckSizes(const Request& request, const EngineTraits& traits);

// Whether it counts every key, which needs no order.
inline bool CountsAll(const Request& request) {
  return request.op == Op::kCount && request.key.empty() && request.has(Request::kNoUpperBound) &&
         request.limit == kNoLimit;
}

// Whether it reads, stores, deletes or changes one key, without a condition or a deadline, and
// CheckRequest has no objection to it in any unordered batch. The cheap answer for most requests,
// of engines that take short keys and values.
inline bool IsSoundPoint(const Request& request, const EngineTraits& traits) {
  const bool applies = request.op == Op::kApply && request.function != nullptr && traits.functions;
  return (request.op <= Op::kDelete || applies) && (request.flags & Request::kReverse) == 0 &&
         request.when == 0 && request.deadline_ms == 0 &&
         request.key.size() <= traits.key_bytes_max &&
         request.value.size() <= traits.value_bytes_max;
}

}  // namespace skep
