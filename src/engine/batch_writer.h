// batch_writer.h: how an engine fills in a batch's outcomes.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "skep/batch.h"

namespace skep {

// The bytes that a key which is only visited counts for in Batch::work_bytes().
inline constexpr size_t kVisitBytes = 16;

// Slots of an atomic batch that are applied or not as one.
struct Part {
  uint32_t begin, end;
  bool is_first;  // if it is not applied, no other is
};

// Visits all parts in order; the first one may be empty, and is the whole batch if it has no parts.
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
// It has 33 methods: it is the only way to the private fields of a batch, so each kind of result
// that an engine may have to write has its own.
class BatchWriter {
 public:
  // Drops earlier outcomes with their bytes, and makes one for every request, kRefused until set.
  explicit BatchWriter(Batch& batch) : batch_(batch) {
    batch.outcomes_.assign(batch.requests_.size(), Outcome{});
    batch.item_spans_.clear();
    batch.effects_.clear();
    batch.applied_ = true;
    batch.seen_bytes_ = 0;
    ForgetPins();
    batch.answers_.Clear();
  }

  // Keeps the outcomes of a batch that was executed, to change some of them.
  struct KeepOutcomes {};
  BatchWriter(Batch& batch, KeepOutcomes) : batch_(batch) {}

  // Drops the outcomes, so that later ones are of the execution that begins now.
  static void Forget(Batch& batch) { batch.outcomes_.clear(); }
  // The highest version of an outcome, also if the batch's execution has thrown; 0: there is none.
  static Version LastVersion(const Batch& batch) {
    Version last = 0;
    for (const Outcome& outcome : batch.outcomes_) last = std::max(last, outcome.version);
    return last;
  }

  // Gives the range of a request an upper bound, and if `lo` is not null the lower bound *lo,
  // before the batch is executed. The bytes must outlive the execution.
  static void BoundRange(Batch& batch, uint32_t slot, const std::string_view* lo,
                         std::string_view hi) {
    Request& request = batch.requests_[slot];
    if (lo != nullptr) request.key = *lo;
    request.other = hi;
    request.flags &= static_cast<uint8_t>(~Request::kNoUpperBound);
  }
  // Tells a sample where the keys end that it may draw, before the batch is executed. The bytes
  // must outlive the execution.
  static void BoundSample(Batch& batch, uint32_t slot, std::string_view end) {
    batch.requests_[slot].key = end;
  }

  Outcome& outcome(uint32_t slot) { return batch_.outcomes_[slot]; }
  // Bytes that live as long as the outcomes.
  Scratch& scratch() { return batch_.answers_; }

  // The time of the batch.
  uint64_t now_ms() const { return batch_.now_ms(); }

  // Counts bytes that the batch has looked at, beside those that it copies into scratch().
  void CountWork(size_t bytes) { batch_.seen_bytes_ += bytes; }
  // Bytes that the batch may still look at before IsFull().
  size_t work_left() const {
    const size_t done = batch_.work_bytes();
    return done < batch_.work_bytes_max_ ? batch_.work_bytes_max_ - done : 0;
  }
  // Whether a limit is reached, so that points are left out. It stays reached until the batch is
  // executed again, so once a request of a key is left out, all later ones on it are, too.
  bool IsFull() const {
    const size_t answers = batch_.answers_.used();
    return answers > batch_.answer_bytes_max_ ||
           answers + batch_.pinned_bytes_ > batch_.returned_bytes_max_ ||
           answers + batch_.seen_bytes_ > batch_.work_bytes_max_;
  }
  // Whether every request from now on, whatever it is, is to be postponed.
  bool IsPostponing() const {
    return batch_.kind() == Batch::Kind::kUnordered && batch_.work_bytes() > batch_.work_bytes_max_;
  }
  void Postpone(uint32_t slot) { outcome(slot) = {.verdict = Verdict::kPostponed}; }
  // Postpones the request, or refuses it with kTooLarge. Requires IsFull().
  void LeaveOut(uint32_t slot);
  // Leaves out a scan of an atomic batch if IsFull(); one of an unordered batch has bounds of its
  // own (Batch::set_scan_bytes_max) and is told to go on from where it stopped.
  bool LeavesOutScan(uint32_t slot) {
    if (batch_.kind() != Batch::Kind::kAtomic || !IsFull()) return false;
    LeaveOut(slot);
    return true;
  }

  // While an object of this class lives, no limit of the work is reached: for work that cannot be
  // divided.
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
  // Refuses a slot because the answers of the batch have reached their limit.
  void RefuseAnswer(uint32_t slot) {
    Refuse(slot, {Code::kTooLarge, "the values of a batch exceed the maximum size",
                  batch_.answer_bytes_max_});
  }
  // Refuses a write for which there is no memory.
  void RefuseMemory(uint32_t slot, const MemoryBudget& budget) {
    Refuse(slot, {Code::kOutOfMemory, "the memory limit is reached", budget.limit()});
  }
  // Refuses every slot.
  void RefuseAll(Status status) {
    for (Outcome& o : batch_.outcomes_) o = {.verdict = Verdict::kRefused, .status = status};
    batch_.applied_ = batch_.kind() == Batch::Kind::kUnordered;
  }
  // Whether an atomic batch that was executed elsewhere was applied.
  void set_applied(bool applied) { batch_.applied_ = applied; }
  // The atomic batch is not applied; the slot `culprit`, already set, says why.
  void AbortAllBut(uint32_t culprit);
  // Likewise for one part.
  void AbortPart(const Part& part, uint32_t culprit);
  // AbortAllBut or AbortPart, as it is the first part or a later one.
  void Abort(const Part& part, uint32_t culprit) {
    part.is_first ? AbortAllBut(culprit) : AbortPart(part, culprit);
  }

  bool notes_effects() const { return batch_.notes_effects_; }
  // Notes what a kApply makes of its key, if the batch wants effects. `value` must live as long as
  // the batch.
  void Note(uint32_t slot, Effect::Kind kind, std::string_view value = {}) {
    if (!batch_.notes_effects_) return;
    batch_.effects_.push_back({.kind = kind, .slot = slot, .value = value});
  }
  // Notes that a kExpireRange has set this deadline.
  void NoteDeadline(uint32_t slot, std::string_view key, uint64_t deadline_ms,
                    Version version = 0) {
    if (!batch_.notes_effects_) return;
    batch_.effects_.push_back({.kind = Effect::Kind::kDeadline,
                               .slot = slot,
                               .key = scratch().Copy(key),
                               .deadline_ms = deadline_ms,
                               .version = version});
  }
  // Notes what an item of a kScan has beside its key and value, if it has anything.
  void NoteItem(uint32_t slot, std::string_view key, uint64_t deadline_ms, uint8_t type) {
    if (!batch_.notes_effects_ || (deadline_ms == 0 && type == kPlainType)) return;
    NoteDeadline(slot, key, deadline_ms);
    batch_.effects_.back().type = type;
  }
  // Notes what another batch has told of this slot's request; the bytes are copied.
  void NoteAgain(uint32_t slot, const Effect& effect) {
    if (!batch_.notes_effects_) return;
    batch_.effects_.push_back(effect);
    Effect& copy = batch_.effects_.back();
    copy.slot = slot;
    copy.key = scratch().Copy(effect.key);
    copy.value = scratch().Copy(effect.value);
  }
  // Drops the effects and pins, because the batch is executed once more.
  void ForgetEffects() {
    batch_.effects_.clear();
    ForgetPins();
  }

  // Gives the slot a pinned value, in place of what an earlier try of the request has pinned.
  void Pin(uint32_t slot, std::shared_ptr<const PinnedValue> value) {
    auto& pins = batch_.pins_;
    if (!pins.empty() && pins.back().slot == slot) {
      batch_.pinned_bytes_ -= pins.back().value->size();
      pins.pop_back();
    }
    batch_.pinned_bytes_ += value->size();
    pins.push_back({.slot = slot, .value = std::move(value)});
    outcome(slot).pinned = static_cast<uint32_t>(pins.size());
  }

  // The items of one scan must be added one after the other: BeginItems, AddItem or AddItems...
  void BeginItems(uint32_t slot) {
    outcome(slot).first_span = static_cast<uint32_t>(batch_.item_spans_.size());
    outcome(slot).item_count = 0;
  }
  // Copies the item into scratch(). Returns the copy.
  Item AddItem(uint32_t slot, const Item& item) {
    char* const at = scratch().Room(item.key.size() + item.value.size());
    CopyBytes(at, item.key.data(), item.key.size());
    CopyBytes(at + item.key.size(), item.value.data(), item.value.size());
    const auto key_bytes = static_cast<uint32_t>(item.key.size());
    const auto value_bytes = static_cast<uint32_t>(item.value.size());
    AddItems(slot, {.at = at, .count = 1, .key_bytes = key_bytes, .value_bytes = value_bytes});
    return {.key = {at, key_bytes}, .value = {at + key_bytes, value_bytes}};
  }
  // Adds items that the caller wrote to the bytes of scratch().Room(); nothing may be allocated
  // since.
  void AddItems(uint32_t slot, const ItemSpan& span) {
    scratch().Allocate(span.count * span.stride());
    AddKeptItems(slot, span);
  }
  // Adds items that live as long as the outcomes; at least one.
  void AddKeptItems(uint32_t slot, const ItemSpan& span) {
    Outcome& to = outcome(slot);
    if (to.item_count == 0 || !Continues(batch_.item_spans_.back(), span)) {
      batch_.item_spans_.push_back(span);
    } else {
      batch_.item_spans_.back().count += span.count;
    }
    to.item_count += span.count;
  }
  // Drops also what was noted of the item. Requires that there is one.
  void DropFirstItem(uint32_t slot) {
    Outcome& from = outcome(slot);
    const std::string_view key = batch_.items(slot).front().key;
    std::erase_if(batch_.effects_,
                  [&](const Effect& effect) { return effect.slot == slot && effect.key == key; });
    ItemSpan& span = batch_.item_spans_[from.first_span];
    span = span.From(1);
    if (span.count == 0) ++from.first_span;
    --from.item_count;
  }

 private:
  void ForgetPins() {
    if (batch_.pins_.empty()) return;
    batch_.pins_.clear();
    batch_.pinned_bytes_ = 0;
  }
  static bool Continues(const ItemSpan& before, const ItemSpan& span) {
    return before.key_bytes == span.key_bytes && before.value_bytes == span.value_bytes &&
           before.end() == span.at;
  }

  Batch& batch_;
};

// Gives `to_slot` of `to` the outcome that `from` has in `slot`; its bytes are copied.
void CopyOutcome(const Batch& from, uint32_t slot, BatchWriter& to, uint32_t to_slot);

// Checks that are the same for every engine: kOk if an engine with these traits can execute the
// batch as a whole, or why every slot must be refused.
Status CheckBatch(const Batch& batch, const EngineTraits& traits);

// kOk if the request is well-formed in this batch for an engine with these traits, or why it must
// be refused.
Status CheckRequest(const Request& request, const Batch& batch, const EngineTraits& traits);
// The part of CheckRequest that judges the sizes of key and value: kTooLarge.
Status CheckSizes(const Request& request, const EngineTraits& traits);

// The value that a scan gives of an item.
inline bool HasValueOfItem(const Request& scan, uint8_t type) {
  return (type == kPlainType || scan.has(Request::kAnyType)) && !scan.has(Request::kKeysOnly);
}
inline std::string_view ValueOfItem(const Request& scan, std::string_view value, uint8_t type) {
  return HasValueOfItem(scan, type) ? value : std::string_view();
}

// Whether the request counts every key, which needs no order.
inline bool CountsAll(const Request& request) {
  return request.op == Op::kCount && request.key.empty() && request.has(Request::kNoUpperBound) &&
         request.limit == kNoLimit;
}

// Whether the request reads, stores, deletes or changes one key, without a condition or a deadline,
// and CheckRequest has no objection to it in any unordered batch. A cheap answer for most requests,
// for engines that take short keys and values.
inline bool IsSoundPoint(const Request& request, const EngineTraits& traits) {
  const bool applies = request.op == Op::kApply && request.function != nullptr &&
                       !request.has(Request::kOperandOfSlot) && traits.functions &&
                       (request.function->type == kPlainType || traits.types);
  return (request.op <= Op::kDelete || applies) && (request.flags & Request::kReverse) == 0 &&
         request.when == 0 && (request.type == kPlainType || traits.types) &&
         request.deadline_ms == 0 && request.key.size() <= traits.key_bytes_max &&
         request.value.size() <= traits.value_bytes_max;
}

}  // namespace skep
