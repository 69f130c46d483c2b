#include "collections/access.h"

#include <algorithm>
#include <utility>

#include "base/compare_bytes.h"
#include "collections/change.h"
#include "types/large_find.h"

namespace skep::collections {

Batch& Access::Execute(Batch& batch) {
  batch.set_now_ms(now_ms_);
  batch.set_snapshot(at_);
  ticket_ = std::max(ticket_, engine_.Execute(batch));
  work_ += batch.work_bytes();
  return batch;
}

std::optional<std::string> Access::Get(std::string_view key, uint8_t type) {
  uint64_t unused = 0;
  return Get(key, type, &unused);
}

std::optional<std::string> Access::Get(std::string_view key, uint8_t type, uint64_t* deadline_ms) {
  Batch batch;
  batch.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = key});
  const Outcome& out = Execute(batch).outcome(0);
  if (out.verdict == Verdict::kRefused) status_ = out.status;
  if (out.verdict != Verdict::kDone || !out.present || out.type != type) return std::nullopt;
  *deadline_ms = out.deadline_ms;
  return std::string(out.value);
}

uint8_t Access::TypeOf(std::string_view key) {
  Batch batch;
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  return Execute(batch).outcome(0).type;
}

bool Access::IsPresent(std::string_view key) {
  Batch batch;
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  return Execute(batch).outcome(0).present;
}

std::optional<types::LargeRecord> Access::Record(std::string_view key, uint8_t kind) {
  const auto found = Get(key, types::kLargeForm + kind, &deadline_ms_);
  return found ? types::ReadLargeRecord(*found) : std::nullopt;
}

// The largest key of a segment of the part that is not above `key`, or with `below` is below it.
std::optional<std::string> Access::SegmentKeyNear(uint64_t id, Part part, std::string_view key,
                                                  bool below) {
  const std::string first = SegmentKey(id, part, {});
  Batch batch;
  const uint32_t slot = below ? batch.Scan(Range::Between(first, key),
                                           {.limit = 1, .reverse = true, .keys_only = true})
                              : batch.Scan(Range::Between(key, KeyAfter(key, batch.scratch())),
                                           {.limit = 1, .keys_only = true, .seek_floor = true});
  Execute(batch);
  const ItemRange items = batch.items(slot);
  if (items.empty() || !items.front().key.starts_with(first)) return std::nullopt;
  return std::string(items.front().key);
}

std::optional<std::string> Access::FindSegment(uint64_t id, Part part, std::string_view place,
                                               std::string* bytes) {
  const std::string first = SegmentKey(id, part, {});
  // Without a hint, as when the collection was made a moment ago, the way begins at the first one.
  std::string key = SegmentKeyNear(id, part, SegmentKey(id, part, place), false).value_or(first);
  while (true) {
    auto found = Get(key, types::kSegment);
    if (!found) {
      if (key == first) return std::nullopt;
      key = SegmentKeyNear(id, part, key, true).value_or(first);
      continue;
    }
    const auto segment = ReadItem(part, *found);
    if (!segment) return std::nullopt;
    if (!segment->fence || place < *segment->fence) {
      *bytes = std::move(*found);
      return key;
    }
    std::string next = SegmentKey(id, part, *segment->fence);
    if (next <= key) return std::nullopt;  // no segment has such a fence
    key = std::move(next);
  }
}

// Whether the item has the place.
bool Segments::Has(size_t item, std::string_view place) const {
  if (item >= by_separator_.size()) return false;
  const Loaded& loaded = *by_separator_[item];
  const auto& fence = loaded.segment.fence;
  return CompareBytes(SeparatorOf(loaded.key), place) <= 0 &&
         (!fence || CompareBytes(place, *fence) < 0);
}

// Looks at the item that was found last and at the next one first: places are mostly asked for in
// their order.
Loaded* Segments::FindRead(std::string_view place) {
  for (const size_t near : {last_found_, last_found_ + 1}) {
    if (!Has(near, place)) continue;
    last_found_ = near;
    return by_separator_[near];
  }
  const auto behind = std::ranges::upper_bound(
      by_separator_, place, {}, [](const Loaded* loaded) { return SeparatorOf(loaded->key); });
  if (behind == by_separator_.begin()) return nullptr;
  const auto before = static_cast<size_t>(behind - by_separator_.begin()) - 1;
  if (!Has(before, place)) return nullptr;
  last_found_ = before;
  return by_separator_[before];
}

Loaded* Segments::Keep(std::string_view key, std::string_view bytes) {
  const bool is_behind = by_separator_.empty() || by_separator_.back()->key < key;
  const auto at = is_behind ? by_separator_.end()
                            : std::ranges::lower_bound(by_separator_, key, {}, &Loaded::key);
  if (at != by_separator_.end() && (*at)->key == key) {
    return (*at)->bytes == bytes ? *at : nullptr;
  }
  const auto segment = ReadItem(part_, bytes);
  if (!segment) return nullptr;
  loaded_.push_back({.key = key, .bytes = bytes, .segment = *segment});
  return *by_separator_.insert(at, &loaded_.back());
}

Loaded* Segments::Find(std::string_view place) {
  if (Loaded* const read = FindRead(place)) return read;
  std::string bytes;
  const auto key = access_.FindSegment(id_, part_, place, &bytes);
  return key ? Keep(access_.scratch().Copy(*key), access_.scratch().Copy(bytes)) : nullptr;
}

Loaded* Segments::FindNext(const Loaded& segment) {
  return segment.segment.fence ? FindAtFence(*segment.segment.fence) : nullptr;
}

Loaded* Segments::FindAtFence(std::string_view fence) {
  if (Loaded* const read = FindRead(fence)) return read;
  // The next one begins there (C1), unless what was read has changed.
  const std::string_view key = access_.scratch().Concat(prefix_, fence);
  const auto bytes = access_.Get(key, types::kSegment);
  return bytes ? Keep(key, access_.scratch().Copy(*bytes)) : Find(fence);
}

// The key of a segment that begins at the place; with `behind` the least key above that one.
std::string_view Lookup::KeyOf(const Segments& segments, std::string_view place, bool behind) {
  const std::string_view prefix = segments.prefix();
  const size_t bytes = prefix.size() + place.size();
  char* const at = batch_.scratch().Allocate(bytes + 1);
  CopyBytes(at, prefix.data(), prefix.size());
  CopyBytes(at + prefix.size(), place.data(), place.size());
  at[bytes] = '\0';
  return {at, bytes + (behind ? 1 : 0)};
}

// A request for the item that seems to have the place, by its key, which begins where the item was
// in the tree. Nothing: there are no hints.
std::optional<Request> Lookup::Hinted(const Segments& segments, std::string_view place) {
  if (access_.hints() == nullptr) return std::nullopt;
  if (!hints_) hints_.emplace(*access_.hints(), segments.id());
  if (!*hints_) return std::nullopt;
  if (segments.part() != hinted_part_) hints_->BeginPart(segments.part());
  hinted_part_ = segments.part();
  const auto separator = hints_->Find(place);
  if (!separator) return std::nullopt;
  const Hint hint = hints_->hint();
  Request request = {.key = batch_.scratch().Concat(segments.prefix(), *separator), .hint = hint};
  if (hint.bits == 0) request.flags = Request::kWantHint;
  return request;
}

void Lookup::Add(Segments& segments, std::string_view place) {
  if (segments.FindRead(place) != nullptr) return;
  if (auto request = Hinted(segments, place)) {
    request->flags |= Request::kIfOfType;
    request->type = types::kSegment;
    batch_.Add(*request);
    wanted_.push_back({.segments = &segments, .place = place});
    return;
  }
  AddScan(segments, place);
}

// Asks for the item that has the place by a scan.
void Lookup::AddScan(Segments& segments, std::string_view place) {
  const std::string_view behind = KeyOf(segments, place, true);
  batch_.Scan(Range::Between(behind.substr(0, behind.size() - 1), behind),
              {.limit = 1, .any_type = true, .seek_floor = true});
  wanted_.push_back({.segments = &segments, .place = place});
}

void Lookup::AddMember(Segments& segments, uint8_t kind, std::string_view member) {
  static const Function* const functions[] = {
      FindFunction(types::FindFunctionName(types::kHash)),
      FindFunction(types::FindFunctionName(types::kSet)),
      FindFunction(types::FindFunctionName(types::kSortedSet))};
  auto request = Hinted(segments, member);
  if (!request) return AddScan(segments, member);
  request->op = Op::kApply;
  request->function = functions[kind == types::kHash ? 0 : kind == types::kSet ? 1 : 2];
  request->value = member;
  batch_.Add(*request);
  wanted_.push_back({.segments = &segments, .place = member});
}

void Lookup::AddRange(Segments& segments, std::string_view from, std::string_view to,
                      uint32_t limit) {
  batch_.Scan(Range::Between(KeyOf(segments, from, false), KeyOf(segments, to, true)),
              {.limit = limit, .any_type = true, .seek_floor = true});
  wanted_.push_back({.segments = &segments, .place = {}});
}

std::optional<types::LargeRecord> Lookup::Execute(std::string_view key, uint8_t kind) {
  const auto type = static_cast<uint8_t>(types::kLargeForm + kind);
  const uint32_t record =
      batch_.Add({.op = Op::kGet, .flags = Request::kIfOfType, .type = type, .key = key});
  const bool has_none = hints_ && !*hints_;
  hints_.reset();
  access_.Execute(batch_);
  NoteHints();
  if (has_none) access_.hints()->Want(access_, wanted_.front().segments->id(), wanted_.size());
  const Outcome& out = batch_.outcome(record);
  if (out.verdict == Verdict::kRefused) access_.set_status(out.status);
  if (out.verdict != Verdict::kDone || !out.present || out.type != type) return std::nullopt;
  access_.set_deadline_ms(out.deadline_ms);
  return types::ReadLargeRecord(out.value);
}

// Notes where items are in the tree, as far as the batch has told that.
void Lookup::NoteHints() {
  std::optional<SegmentHints::Reading> hints;
  Part part = Part::kNames;
  for (uint32_t slot = 0; slot < wanted_.size(); ++slot) {
    const Outcome& out = batch_.outcome(slot);
    const Segments& segments = *wanted_[slot].segments;
    if (out.hint.bits == 0) continue;
    if (!hints) hints.emplace(*access_.hints(), segments.id());
    if (!*hints) return;
    if (segments.part() != part) hints->BeginPart(segments.part());
    part = segments.part();
    if (hints->Find(wanted_[slot].place)) hints->NoteHint(out.hint);
  }
}

// Corrects the hint by which a slot was read, if it was wrong.
void Lookup::CheckHint(uint32_t slot) const {
  const Outcome& out = batch_.outcome(slot);
  if (out.verdict == Verdict::kRefused) return;
  const Segments& segments = *wanted_[slot].segments;
  const auto bytes = out.present ? std::optional(out.value) : std::nullopt;
  access_.hints()->Correct(segments.id(), segments.part(), batch_.requests()[slot].key, bytes,
                           wanted_[slot].place);
}

std::optional<types::LargeRecord> Lookup::Run(std::string_view key, uint8_t kind) {
  const auto record = Execute(key, kind);
  for (uint32_t slot = 0; slot < wanted_.size(); ++slot) {
    Segments& segments = *wanted_[slot].segments;
    if (batch_.requests()[slot].op == Op::kGet) {
      CheckHint(slot);
      const Outcome& out = batch_.outcome(slot);
      if (out.present) segments.Keep(batch_.requests()[slot].key, out.value);
      continue;
    }
    for (const Item& item : batch_.items(slot)) {
      // The floor of a place of a part that is gone lies before the part.
      const bool is_of_part = item.key.starts_with(segments.prefix());
      if (is_of_part) segments.Keep(item.key, item.value);
    }
  }
  return record;
}

bool Lookup::FoundMember(uint32_t call, uint8_t kind, std::optional<Piece>* piece) const {
  const Segments& segments = *wanted_[call].segments;
  const std::string_view member = wanted_[call].place;
  const Form form = FormOf(segments.part(), kind);
  piece->reset();
  if (batch_.requests()[call].op == Op::kApply) return FoundByFunction(call, form, piece);
  const ItemRange items = batch_.items(call);
  if (items.empty() || !items.front().key.starts_with(segments.prefix())) return false;
  const auto segment = types::ReadSegment(items.front().value);
  if (!segment || (segment->fence && member >= *segment->fence)) return false;
  FindPieces(form, segment->body, std::span(&member, 1),
             [&](size_t, const char*, const Piece* found) {
               if (found != nullptr) *piece = *found;
             });
  return true;
}

// FoundMember, of a member that a function has looked for. Corrects the hint, if it was wrong.
bool Lookup::FoundByFunction(uint32_t call, Form form, std::optional<Piece>* piece) const {
  const Outcome& out = batch_.outcome(call);
  if (out.verdict != Verdict::kDone) return false;
  std::string_view rest = out.value;
  switch (static_cast<types::SegmentFinding>(out.integer)) {
    case types::SegmentFinding::kNone:
      return true;
    case types::SegmentFinding::kPiece:
      return TakePiece(form, rest, &piece->emplace());
    case types::SegmentFinding::kEndsBefore: {
      const Segments& segments = *wanted_[call].segments;
      const std::string next = SegmentKey(segments.id(), segments.part(), out.value);
      access_.hints()->Learn(segments.id(), std::span(&next, 1));
      return false;
    }
    case types::SegmentFinding::kNoSegment: {
      const std::string gone(batch_.requests()[call].key);
      access_.hints()->Learn(wanted_[call].segments->id(), {}, std::span(&gone, 1));
      return false;
    }
  }
  return false;
}

void RequireRecord(Batch& batch, std::string_view key, uint8_t kind,
                   const types::LargeRecord& record) {
  batch.Add({.op = Op::kRequireValue,
             .type = static_cast<uint8_t>(types::kLargeForm + kind),
             .key = key,
             .other = batch.scratch().Copy(types::BytesOf(record))});
}

}  // namespace skep::collections
