#include "collections/atomic_calls.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "collections/collection_engine.h"
#include "collections/large_call.h"
#include "engine/partial_batch.h"
#include "engine/point.h"
#include "engine/request_chain.h"
#include "types/form_scope.h"

namespace skep::collections {
namespace {

// Whether the function never makes a collection larger.
bool OnlyFrees(const Function& function) {
  static const std::set<std::string_view> names = {
      "hash-delete",   "hash-take",      "hash-drop-due", "set-remove",      "set-take",
      "set-pop",       "zset-remove",    "zset-cut",      "zset-pop-lowest", "zset-pop-highest",
      "list-pop-left", "list-pop-right", "list-remove",   "list-trim"};
  return function.reads_only || names.contains(function.name);
}

// Whether the request may need memory.
bool MayStore(const Request& r) {
  if (r.op == Op::kApply) return r.function == nullptr || !OnlyFrees(*r.function);
  return IsWrite(r.op) && r.op != Op::kDelete && r.op != Op::kDeleteRange && r.op != Op::kDeleteAll;
}

bool IsLength(const Function& function) { return function.name.ends_with("-length"); }

// Whether the request asks for the bytes of a collection.
bool ReadsWhole(const Request& r) {
  return r.op == Op::kGet && r.type != kPlainType && !r.has(Request::kNoValue);
}

}  // namespace

bool AtomicCalls::IsLarge(const Request& r) const {
  return !IsRange(r.op) && keys_.contains(r.key);
}

// Whether the request is a call that is made beforehand.
bool AtomicCalls::IsCall(const Request& r) const {
  return IsLarge(r) && (r.op == Op::kApply || ReadsWhole(r));
}

// Whether the slot can be a call that is made beforehand, or stays beside such calls.
bool AtomicCalls::IsSoSlot(uint32_t slot) const {
  if (slots_[slot].deed == Deed::kRefused) return true;
  const Request& r = batch_.requests()[slot];
  if (IsWrite(r.op) && (IsRange(r.op) || r.op == Op::kDeleteAll)) return false;
  if (r.op == Op::kMove && keys_.contains(r.other)) return false;
  if (!IsLarge(r)) return true;
  if (IsOfAnotherKind(slot)) return r.op == Op::kApply && IsPartOfItsOwn(slot);
  switch (r.op) {
    case Op::kApply:
      return r.function != nullptr &&
             (JointCalls::Has(*r.function) || IsLength(*r.function) || r.function->reads_only);
    case Op::kExpire:
      return r.deadline_ms == 0 || r.deadline_ms > batch_.now_ms();
    case Op::kGet:
    case Op::kRequireAbsent:
    case Op::kRequirePresent:
    case Op::kRequireUnchanged:
      return true;
    default:
      return false;
  }
}

// Whether the slot is all of its part, and not of the first one: if it is refused, nothing else is.
bool AtomicCalls::IsPartOfItsOwn(uint32_t slot) const {
  const auto begins = batch_.part_begins();
  return std::ranges::binary_search(begins, slot) &&
         (slot + 1 == batch_.size() || std::ranges::binary_search(begins, slot + 1));
}

// Whether the slot is a call for a collection of another kind than the key has.
bool AtomicCalls::IsOfAnotherKind(uint32_t slot) const {
  const Request& r = batch_.requests()[slot];
  return IsCall(r) && KindWanted(r) != keys_.find(r.key)->second.kind;
}

bool AtomicCalls::RefuseStores(Status status) {
  refusal_ = status;
  bool leaves_first = true;
  ForEachPart(batch_, [&](const skep::Part& part) {
    const auto own = batch_.requests().subspan(part.begin, part.end - part.begin);
    const auto culprit = std::ranges::find_if(own, MayStore);
    if (culprit == own.end()) return true;
    leaves_first = leaves_first && !part.is_first;
    for (uint32_t slot = part.begin; slot < part.end; ++slot) slots_[slot].deed = Deed::kRefused;
    slots_[part.begin + static_cast<size_t>(culprit - own.begin())].is_culprit = true;
    return true;
  });
  // Where no call is left on a collection, the others may delete it.
  std::set<std::string_view> called;
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    const Request& r = batch_.requests()[slot];
    if (slots_[slot].deed != Deed::kRefused && IsCall(r)) called.insert(r.key);
  }
  std::erase_if(keys_, [&](const auto& entry) { return !called.contains(entry.first); });
  return leaves_first;
}

// Notes which request is the first about each key, and which ones are beside calls.
void AtomicCalls::NoteKeys() {
  ForEachPart(batch_, [&](const skep::Part& part) {
    bool has_calls = false;
    for (uint32_t slot = part.begin; slot < part.end; ++slot) {
      const Request& r = batch_.requests()[slot];
      // A watch in the first part is judged on the state before the batch, so a request behind it
      // may be moved in front of it.
      const bool is_watch = r.op == Op::kRequireUnchanged && part.is_first;
      if (!is_watch) first_slots_.try_emplace(r.key, slot);
      const bool is_broad = IsRange(r.op) || r.op == Op::kMove || r.op == Op::kSample;
      if (is_broad) first_broad_slot_ = std::min(first_broad_slot_, slot);
      has_calls |= slots_[slot].deed != Deed::kRefused && IsCall(r);
    }
    for (uint32_t slot = part.begin; slot < part.end && has_calls && !part.is_first; ++slot) {
      slots_[slot].is_beside_calls =
          slots_[slot].deed != Deed::kRefused && !IsCall(batch_.requests()[slot]);
    }
    return true;
  });
}

bool AtomicCalls::IsSo() const {
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    if (!IsSoSlot(slot) || (!foresees_ && slots_[slot].is_beside_calls)) return false;
  }
  return true;
}

// False: a key has no large collection any more.
bool AtomicCalls::ReadRecords() {
  for (auto& [name, key] : keys_) {
    const uint8_t type = access_.TypeOf(name);
    key.kind = types::KindOf(type);
    const auto record = types::IsLarge(type) ? access_.Record(name, key.kind) : std::nullopt;
    if (!record) return false;
    key.record = *record;
  }
  return true;
}

// Foresees a call on a key that is not large, and that no request before it is about.
AtomicCalls::End AtomicCalls::Foresee(uint32_t slot) {
  const Request& r = slots_[slot].request;
  if (r.op != Op::kApply || r.function == nullptr || r.flags != 0) return End::kNotSo;
  if (first_slots_.find(r.key)->second != slot || first_broad_slot_ < slot) return End::kNotSo;
  // A read of a key that is too long would refuse all of the batch, instead of the part.
  if (!CheckRequest(r, batch_, access_.engine().traits()).ok()) return End::kNotSo;
  const auto value = access_.Get(r.key, r.function->type);
  if (!value && access_.IsPresent(r.key)) return End::kNotSo;
  Scratch& scratch = whole_.scratch();
  if (value) {
    whole_.Add({.op = Op::kRequireValue,
                .type = r.function->type,
                .key = r.key,
                .other = scratch.Copy(*value)});
  } else {
    whole_.RequireAbsent(r.key);
  }
  const FunctionEffect effect =
      RunFunction(*r.function, value ? std::optional<std::string_view>(*value) : std::nullopt,
                  r.value, access_.now_ms(), access_.scratch());
  if (!effect.status.ok()) return End::kNotSo;
  slots_[slot].known = std::string(effect.returned);
  slots_[slot].stored_bytes = effect.value.size();
  return End::kDone;
}

// Foresees what a request beside calls will do, and has it done with them in front of all parts.
AtomicCalls::End AtomicCalls::MoveToFront(uint32_t slot) {
  if (!slots_[slot].known) {
    if (const End end = Foresee(slot); end != End::kDone) return end;
  }
  const size_t bytes_max = access_.engine().traits().value_bytes_max;
  if (slots_[slot].stored_bytes > bytes_max) return End::kNotSo;
  slots_[slot].deed = Deed::kForeseen;
  return End::kDone;
}

// Gives a request that has the outcome of another one for its operand that operand, if the other
// one is a call that was made, or the request itself is such a call.
AtomicCalls::End AtomicCalls::ResolveOperand(uint32_t slot) {
  Request& r = slots_[slot].request;
  if (r.op != Op::kApply || !r.has(Request::kOperandOfSlot)) return End::kDone;
  if (r.limit >= slot || slots_[r.limit].deed == Deed::kRefused) return End::kNotSo;
  Slot& source = slots_[r.limit];
  if (source.deed == Deed::kStays && !source.known) {
    if (!IsLarge(r)) return End::kDone;
    if (!foresees_) return End::kNotSo;
    if (const End end = Foresee(r.limit); end != End::kDone) return end;
  }
  const std::string_view found =
      source.known ? std::string_view(*source.known) : std::string_view(source.answer.value);
  const bool is_done =
      HasUnlessSome(r) ? found.empty() : !(r.has(Request::kUnlessNone) && found.empty());
  if (!is_done) {
    slots_[slot].deed = Deed::kNothing;
    if (HasUnlessSome(r)) slots_[slot].answer.value = found;
    return End::kDone;
  }
  r.value = whole_.scratch().Concat(r.value, found);
  r.flags = 0;
  r.limit = kNoLimit;
  return End::kDone;
}

AtomicCalls::End AtomicCalls::MakeCall(Key& key, uint32_t slot) {
  const Request& r = slots_[slot].request;
  Answer& answer = slots_[slot].answer;
  if (IsOfAnotherKind(slot)) {
    // After a call that leaves no members, the key has no kind.
    if (key.calls != nullptr && key.calls->members() == 0) return End::kNotSo;
    slots_[slot].deed = Deed::kOfAnotherKind;
    return End::kDone;
  }
  slots_[slot].deed = Deed::kAnswered;
  // Some of the fields of a hash with deadlines may be due, so its length is read like other things
  // that are of the whole collection.
  const bool is_length = r.op == Op::kApply && IsLength(*r.function) &&
                         !(key.kind == types::kHash && key.record.last != 0);
  if (is_length || (r.op == Op::kApply && JointCalls::Has(*r.function))) {
    if (key.calls == nullptr) key.calls = JointCalls::Of(access_, r.key, key.kind, key.record);
    if (is_length) {
      key.calls->RequireRecord();
      answer.integer = static_cast<int64_t>(key.calls->members());
      return End::kDone;
    }
    if (key.calls->members() == 0) return End::kNotSo;
    const FunctionCall call = {.function = r.function, .operand = r.value};
    if (!key.calls->CanMake(call)) return End::kNotSo;
    if (JointCalls::IsLong(access_, key.kind, key.record, call)) return End::kLong;
    if (!key.calls->Make(call, &answer)) return End::kAgain;
    if (answer.is_too_long) return End::kLong;
    if (key.calls->members() == 0) key.erased_slot = slot;
    return answer.status.ok() || IsPartOfItsOwn(slot) ? End::kDone : End::kNotSo;
  }
  // A view does not show what the calls before this one have changed.
  if (key.calls != nullptr && key.calls->has_changes()) return End::kNotSo;
  key.is_read = true;
  if (r.op != Op::kApply && access_.IsTooLong(key.record, key.record.members)) return End::kLong;
  LargeCall call(access_, r.key, key.kind, key.record);
  auto read = r.op == Op::kApply ? call.Apply(*r.function, r.value) : call.Whole();
  if (!read) return End::kAgain;
  if (read->is_too_long) return End::kLong;
  if (!read->status.ok() && !IsPartOfItsOwn(slot)) return End::kNotSo;
  answer = std::move(*read);
  // The view was of a state between the record that was read before and the one that is read now.
  return access_.Record(r.key, key.kind) == key.record ? End::kDone : End::kAgain;
}

// Makes the calls, in the order of the slots.
AtomicCalls::End AtomicCalls::Make() {
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    slots_[slot].request = batch_.requests()[slot];
    if (slots_[slot].deed == Deed::kRefused) continue;
    if (const End end = ResolveOperand(slot); end != End::kDone) return end;
    const Request& r = slots_[slot].request;
    if (slots_[slot].deed == Deed::kNothing) continue;
    if (slots_[slot].is_beside_calls) {
      if (const End end = MoveToFront(slot); end != End::kDone) return end;
    }
    if (!IsCall(r)) continue;
    const End end = MakeCall(keys_.find(r.key)->second, slot);
    if (end != End::kDone) return end;
    if (IsTooMuch()) return End::kLong;
  }
  return End::kDone;
}

// Whether a request that stays may look for a collection that the calls have left without members:
// it would miss it, since the collection is deleted in front of all requests.
bool AtomicCalls::MissesOne() const {
  const auto has_ended = [](const auto& entry) {
    return entry.second.calls != nullptr && entry.second.calls->members() == 0;
  };
  const auto is_ended = [&](std::string_view name) {
    const auto found = keys_.find(name);
    return found != keys_.end() && has_ended(*found);
  };
  if (std::ranges::none_of(keys_, has_ended)) return false;
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    const Request& r = slot.request;
    const bool looks = IsRange(r.op) || r.op == Op::kSample || is_ended(r.key) ||
                       (r.op == Op::kMove && is_ended(r.other));
    return slot.deed == Deed::kStays && looks;
  });
}

// Adds what the calls depend on and what they write.
void AtomicCalls::AddFront() {
  for (auto& [name, key] : keys_) {
    if (key.calls != nullptr && key.calls->has_changes()) continue;
    key.required_slot = static_cast<uint32_t>(whole_.size());
    RequireRecord(whole_, name, key.kind, key.record);
  }
  for (Slot& slot : slots_) {
    if (slot.deed == Deed::kForeseen) slot.at = whole_.Add(slot.request);
  }
}

// Adds the requests that stay, in the parts that they have.
void AtomicCalls::AddOthers() {
  const auto parts = batch_.part_begins();
  size_t next = 0;
  bool begins = false;
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    for (; next < parts.size() && parts[next] == slot; ++next) begins = true;
    Slot& own = slots_[slot];
    if (own.deed != Deed::kStays) continue;
    if (begins) whole_.BeginPart();
    begins = false;
    const bool is_chained =
        own.request.op == Op::kApply && own.request.has(Request::kOperandOfSlot);
    if (is_chained) own.request.limit = slots_[own.request.limit].at;
    own.at = whole_.Add(own.request);
  }
}

void AtomicCalls::Finish(const Fill& fill) {
  BatchWriter out(batch_);
  std::map<std::string_view, Answer> written;
  std::map<std::string_view, uint64_t> deadlines;
  for (auto& [name, key] : keys_) {
    if (!whole_.applied()) break;
    if (key.calls != nullptr && key.calls->has_changes()) {
      written.emplace(name, key.calls->Done(whole_));
      deadlines.emplace(name, access_.deadline_ms());
    } else {
      deadlines.emplace(name, whole_.outcome(key.required_slot).deadline_ms);
    }
  }
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    Slot& own = slots_[slot];
    if (IsExecuted(own)) {
      CopyOutcome(whole_, own.at, out, slot);
    } else if (own.deed == Deed::kRefused && own.is_culprit) {
      out.Refuse(slot, refusal_);
    } else if (!whole_.applied() || own.deed == Deed::kRefused) {
      out.outcome(slot).verdict = Verdict::kAborted;
    } else if (own.deed == Deed::kOfAnotherKind) {
      RefuseType(keys_.find(own.request.key)->second.kind, out, slot);
    } else if (own.deed == Deed::kNothing) {
      out.outcome(slot).verdict = Verdict::kDone;
      out.outcome(slot).present = IsLarge(own.request);
      out.outcome(slot).value = out.scratch().Copy(own.answer.value);
    } else {
      const Key& key = keys_.find(own.request.key)->second;
      if (const auto at = written.find(own.request.key); at != written.end()) {
        // The first call of a key counts the segments that the write of the key has added.
        own.answer.version = at->second.version;
        own.answer.segments_added = std::exchange(at->second.segments_added, 0);
        own.answer.is_erased = at->second.is_erased && slot == key.erased_slot;
      }
      access_.set_deadline_ms(deadlines[own.request.key]);
      fill(slot, key.kind, own.answer);
    }
  }
  std::vector<uint32_t> slot_at(whole_.size(), UINT32_MAX);
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    if (IsExecuted(slots_[slot])) slot_at[slots_[slot].at] = slot;
  }
  for (const Effect& effect : whole_.effects()) {
    const uint32_t slot = slot_at[effect.slot];
    if (slot != UINT32_MAX) out.NoteAgain(slot, effect);
  }
  out.set_applied(whole_.applied());
}

AtomicCalls::End AtomicCalls::Try(size_t value_bytes_max, const Fill& fill, Status* no_memory) {
  NoteKeys();
  if (!ReadRecords() || !IsSo()) return End::kNotSo;
  access_.WantNewest();
  CopySettings(batch_, whole_);
  whole_.set_notes_effects(BatchWriter(batch_).notes_effects());
  const End made = Make();
  if (!access_.status().ok()) {
    BatchWriter(batch_).RefuseAll(access_.status());
    return End::kDone;
  }
  if (made != End::kDone) return made;
  if (MissesOne()) return End::kNotSo;
  for (auto& [name, key] : keys_) {
    if (key.calls == nullptr) continue;
    if (!key.calls->has_changes()) {
      if (!key.calls->RequireRead(whole_) && !key.calls->IsNewest()) return End::kAgain;
    } else {
      if (key.is_read) key.calls->RequireRecord();
      if (!key.calls->AddTo(whole_)) return End::kAgain;
    }
  }
  AddFront();
  front_ = static_cast<uint32_t>(whole_.size());
  AddOthers();
  {
    const types::FormScope scope(value_bytes_max, false);
    access_.Execute(whole_);
  }
  if (!whole_.applied()) {
    Status status;
    switch (ResultOf(whole_, 0, front_, &status)) {
      case WriteResult::kAgain:
        return End::kAgain;
      case WriteResult::kRefused:
        // Something that was foreseen is too large, which refuses its part and no other.
        if (status.code() == Code::kTooLarge) return End::kNotSo;
        if (status.code() == Code::kOutOfMemory) *no_memory = status;
        BatchWriter(batch_).RefuseAll(status);
        return End::kDone;
      case WriteResult::kDone:
        break;  // another condition or request of the first part is at fault
    }
  }
  Finish(fill);
  return End::kDone;
}

}  // namespace skep::collections
