#include "collections/segment_hints.h"

#include <algorithm>
#include <utility>

#include "base/compare_bytes.h"
#include "collections/access.h"

namespace skep::collections {

// Holds the lock of a list for a change, if it is to be had; then charges what the list holds.
class SegmentHints::Writing {
 public:
  Writing(SegmentHints& hints, List& list)
      : hints_(hints), list_(list), is_locked_(list.lock.TryExclusive()) {}
  ~Writing() {
    if (!is_locked_) return;
    const size_t held = list_.held_bytes();
    const size_t charged = std::exchange(list_.charged_bytes, held);
    hints_.bytes_.fetch_add(held - charged, std::memory_order_relaxed);
    if (hints_.budget_ != nullptr) hints_.budget_->Charge(uint64_t{held} - charged);
    list_.lock.UnlockExclusive();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  explicit operator bool() const { return is_locked_; }

 private:
  SegmentHints& hints_;
  List& list_;
  const bool is_locked_;
};

SegmentHints::Reading::Reading(SegmentHints& hints, uint64_t id)
    : held_(hints.Of(id)), is_locked_(held_.lock.TryShared()) {
  if (!is_locked_ || held_.id != id || !held_.is_complete) return;
  list_ = &held_;
  // The hints are wanted, so others of the list have to begin anew.
  if (held_.wanted.load(std::memory_order_relaxed) != 0) {
    held_.wanted.store(0, std::memory_order_relaxed);
  }
}

std::optional<std::string_view> SegmentHints::Reading::Find(std::string_view place) {
  if (part_ == nullptr) return std::nullopt;
  // Neighbours among the places often are of one node of counts.
  bool found = part_->IsAt(at_, place);
  if (!found) at_ = part_->Find(place, &found);
  return found ? std::optional(part_->SeparatorAt(at_)) : std::nullopt;
}

size_t SegmentHints::List::held_bytes() const {
  size_t held = bytes.used();
  for (const PartHints& part : parts) held += part.held_bytes();
  return held;
}

void SegmentHints::List::Begin(uint64_t of_id) {
  id = of_id;
  is_complete = false;
  is_too_large = false;
  read_until = KeysOf(of_id);
  std::vector<PartHints>().swap(parts);
  bytes = Scratch();
}

// The hints of a part; null: it has none.
PartHints* SegmentHints::List::Of(Part part) {
  const auto at = std::ranges::find(parts, part, &PartHints::part);
  return at == parts.end() ? nullptr : &*at;
}

// Adds an item: its part, one byte, and its separator.
void SegmentHints::List::Add(std::string_view item) {
  if (held_bytes() > kBytesMax) {
    // Keys that were erased take bytes until now.
    Scratch live;
    for (PartHints& part : parts) part.Relocate(live);
    bytes = std::move(live);
    if (held_bytes() > kBytesMax / 2) {
      is_too_large = true;
      is_complete = false;
      std::vector<PartHints>().swap(parts);
      bytes = Scratch();
    }
  }
  if (is_too_large) return;
  const auto part = static_cast<Part>(item.front());
  PartHints* const hints = Of(part);
  (hints != nullptr ? *hints : parts.emplace_back(part)).Add(item.substr(1), bytes);
}

void SegmentHints::List::Erase(std::string_view item) {
  PartHints* const hints = Of(static_cast<Part>(item.front()));
  if (hints != nullptr) hints->Erase(item.substr(1));
}

// Whether the next keys are to be read now.
bool SegmentHints::List::IsTime(uint64_t of_id, size_t places) {
  if (wanted_id != of_id) wanted.store(0, std::memory_order_relaxed);
  wanted_id = of_id;
  if (wanted.fetch_add(places, std::memory_order_relaxed) + places < kWanted) return false;
  wanted.store(0, std::memory_order_relaxed);
  if (id != of_id) Begin(of_id);
  return !is_too_large;
}

bool SegmentHints::Want(Access& access, uint64_t id, size_t places) {
  List& list = Of(id);
  Batch batch;
  {
    const Writing writing(*this, list);
    if (!writing) return false;
    if (list.id == id && list.is_complete) return true;
    if (budget_ != nullptr && !budget_->HasRoomFor(kLoadMax * kKeyBytes)) return false;
    if (!list.IsTime(id, places)) return false;
    batch.Scan(
        Range::Between(batch.scratch().Copy(list.read_until), batch.scratch().Copy(KeysOf(id + 1))),
        {.limit = kLoadMax, .keys_only = true});
  }
  const Outcome& scanned = access.Execute(batch).outcome(0);
  const Writing writing(*this, list);
  const std::string_view from = batch.requests()[0].key;
  const bool goes_on = static_cast<bool>(writing) && list.id == id && list.read_until == from;
  if (!goes_on || scanned.verdict != Verdict::kDone) return false;
  const size_t prefix_bytes = KeysOf(id).size();
  for (const skep::Item& item : batch.items(0)) list.Add(item.key.substr(prefix_bytes));
  list.read_until = scanned.more ? scanned.value : batch.requests()[0].other;
  list.is_complete = !scanned.more && !list.is_too_large;
  return list.is_complete;
}

void SegmentHints::Learn(uint64_t id, std::span<const std::string> made,
                         std::span<const std::string> gone) {
  List& list = Of(id);
  const Writing writing(*this, list);
  if (!writing || list.id != id) return;
  const size_t prefix_bytes = KeysOf(id).size();
  for (const std::string_view key : gone) list.Erase(key.substr(prefix_bytes));
  for (const std::string_view key : made) list.Add(key.substr(prefix_bytes));
}

void SegmentHints::Forget(uint64_t id) {
  List& list = Of(id);
  const Writing writing(*this, list);
  if (writing && list.id == id) list.Begin(0);
}

void SegmentHints::ForgetAll() {
  for (List& list : lists_) {
    const Writing writing(*this, list);
    if (writing) list.Begin(0);
  }
}

bool SegmentHints::Correct(uint64_t id, Part part, std::string_view key,
                           std::optional<std::string_view> bytes, std::string_view place) {
  if (!bytes) {
    const std::string gone(key);
    Learn(id, {}, std::span(&gone, 1));
    return true;
  }
  const auto item = ReadItem(part, *bytes);
  if (!item || !item->fence || CompareBytes(place, *item->fence) < 0) return false;
  const std::string next = SegmentKey(id, part, *item->fence);
  Learn(id, std::span(&next, 1));
  return true;
}

bool SegmentHints::CorrectRefused(Access& access, const Batch& batch, uint32_t slot,
                                  std::string_view place) {
  const Outcome& out = batch.outcome(slot);
  if (out.verdict != Verdict::kRefused || out.status.code() != Code::kAborted) return false;
  const std::string_view key = batch.requests()[slot].key;
  const auto bytes = access.Get(key, types::kSegment);
  return access.status().ok() && Correct(IdOf(key), PartOf(key), key, bytes, place);
}

}  // namespace skep::collections
