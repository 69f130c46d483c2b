#include "durable/batch_changes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "durable/log_change.h"

namespace skep::durable {
namespace {

using Kind = LogChange::Kind;

class BatchChanges {
 public:
  BatchChanges(const Batch& batch, uint32_t keyspace, std::string& to)
      : batch_(batch), keyspace_(keyspace), to_(to) {}

  ChangesWritten Write() {
    for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
      const Request& r = batch_.requests()[slot];
      const Outcome& out = batch_.outcome(slot);
      if (IsWrite(r.op) && out.verdict == Verdict::kDone && out.version != 0) Write(slot, r, out);
    }
    return written_;
  }

 private:
  void Add(const LogChange& change) {
    if (!encoder_) encoder_.emplace(to_, keyspace_, batch_.now_ms(), LowestVersion());
    encoder_->Add(change);
    written_.last = std::max(written_.last, change.version);
    ++written_.count;
  }

  // Adds a put, of the kind that has what the value has.
  void AddPut(LogChange& change) {
    change.kind = change.type != kPlainType ? Kind::kPutTyped
                  : change.deadline_ms != 0 ? Kind::kPutUntil
                                            : Kind::kPut;
    Add(change);
  }

  Version LowestVersion() const {
    Version lowest = UINT64_MAX;
    for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
      const Outcome& out = batch_.outcome(slot);
      if (IsWrite(batch_.requests()[slot].op) && out.version != 0) {
        lowest = std::min(lowest, out.version);
      }
    }
    // A kExpireRange has one for each key; its outcome has the last.
    for (const Effect& effect : batch_.effects()) {
      if (effect.version != 0) lowest = std::min(lowest, effect.version);
    }
    return lowest;
  }

  void Write(uint32_t slot, const Request& r, const Outcome& out) {
    LogChange change{.version = out.version, .key = r.key};
    switch (r.op) {
      case Op::kPut:
      case Op::kInsert:
      case Op::kUpdate: {
        const uint64_t kept = out.present ? out.deadline_ms : 0;
        change.value = r.value;
        change.type = r.type;
        change.deadline_ms = r.deadline_ms == kKeepDeadline ? kept : r.deadline_ms;
        return AddPut(change);
      }
      case Op::kDelete:
        change.kind = Kind::kErase;
        return Add(change);
      case Op::kExpire:
        change.kind = Kind::kSetDeadline;
        change.deadline_ms = r.deadline_ms;
        return Add(change);
      case Op::kMove:
        change.kind = Kind::kMove;
        change.value = r.other;
        return Add(change);
      case Op::kApply:
        return WriteApplied(slot, r, out);
      case Op::kDeleteAll:
        change.kind = Kind::kEraseAll;
        change.key = {};
        return Add(change);
      case Op::kDeleteRange:
        return WriteErased(r, out);
      case Op::kExpireRange:
        return WriteExpired(slot, out);
      default:
        return;
    }
  }

  // A range delete with a limit has erased the keys below the bound at which it would go on.
  void WriteErased(const Request& r, const Outcome& out) {
    LogChange change{.kind = Kind::kEraseRange, .version = out.version, .key = r.key};
    if (out.more) {
      change.value = out.value;
    } else if (r.has(Request::kNoUpperBound)) {
      change.kind = Kind::kEraseFrom;
    } else {
      change.value = r.other;
    }
    Add(change);
  }

  void WriteExpired(uint32_t slot, const Outcome& out) {
    for (const Effect& effect : batch_.effects()) {
      if (effect.slot != slot) continue;
      Add({.kind = Kind::kSetDeadline,
           .version = effect.version != 0 ? effect.version : out.version,
           .key = effect.key,
           .deadline_ms = effect.deadline_ms});
    }
  }

  void WriteApplied(uint32_t slot, const Request& r, const Outcome& out) {
    const Effect* const effect = EffectOf(slot);
    LogChange change{.version = out.version, .key = r.key};
    if (effect != nullptr && effect->kind == Effect::Kind::kNothing) return;
    if (effect != nullptr && effect->kind == Effect::Kind::kErase) {
      change.kind = Kind::kErase;
      return Add(change);
    }
    const std::string operand = OperandOf(r);
    if (effect != nullptr && effect->value.size() <= operand.size() + kValueBytesMore) {
      change.value = effect->value;
      change.type = r.function->type;
      change.deadline_ms = out.present ? out.deadline_ms : 0;
      return AddPut(change);
    }
    // A key that had expired is still there for a replay.
    if (!out.present) Add({.kind = Kind::kErase, .version = out.version, .key = r.key});
    change.kind = Kind::kApply;
    change.function = r.function;
    change.value = operand;
    Add(change);
  }

  // The operand that a kApply had.
  std::string OperandOf(const Request& r) const {
    std::string operand(r.value);
    if (r.has(Request::kOperandOfSlot)) operand += batch_.outcome(r.limit).value;
    return operand;
  }

  // The effect of a kApply; null if it has none.
  const Effect* EffectOf(uint32_t slot) {
    if (by_slot_.empty()) {
      by_slot_.resize(batch_.size());
      for (const Effect& effect : batch_.effects()) by_slot_[effect.slot] = &effect;
    }
    return by_slot_[slot];
  }

  const Batch& batch_;
  const uint32_t keyspace_;
  std::string& to_;
  std::optional<ChangeEncoder> encoder_;
  std::vector<const Effect*> by_slot_;  // the last effect of each slot
  ChangesWritten written_;
};

}  // namespace

ChangesWritten WriteChanges(const Batch& batch, uint32_t keyspace, std::string& to) {
  return BatchChanges(batch, keyspace, to).Write();
}

}  // namespace skep::durable
