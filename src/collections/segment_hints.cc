#include "collections/segment_hints.h"

#include <algorithm>

#include "base/compare_bytes.h"
#include "collections/access.h"

namespace skep::collections {
namespace {

bool IsBelow(std::string_view a, std::string_view b) { return CompareBytes(a, b) < 0; }

}  // namespace

// Holds the lock of a list for a change, if it is to be had.
class SegmentHints::Writing {
 public:
  explicit Writing(List& list) : list_(list), is_locked_(list.lock.TryExclusive()) {}
  ~Writing() {
    if (is_locked_) list_.lock.UnlockExclusive();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  explicit operator bool() const { return is_locked_; }

 private:
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

void SegmentHints::Reading::BeginPart(Part part) {
  const auto& items = list_->items;
  const auto [begin, end] = std::ranges::equal_range(
      items, static_cast<unsigned char>(part), {},
      [](std::string_view item) { return static_cast<unsigned char>(item.front()); });
  at_ = begin_ = static_cast<size_t>(begin - items.begin());
  end_ = static_cast<size_t>(end - items.begin());
}

std::optional<std::string_view> SegmentHints::Reading::Find(std::string_view place) {
  const auto& items = list_->items;
  const auto is_not_above = [&](std::string_view item) {
    return CompareBytes(item.substr(1), place) <= 0;
  };
  // Looks 1, 2, 4, ... items ahead first: places that are asked for together are close.
  size_t low = at_ < end_ && is_not_above(items[at_]) ? at_ : begin_;
  size_t step = 1;
  while (low + step < end_ && is_not_above(items[low + step])) {
    low += step;
    step *= 2;
  }
  const auto begin = items.begin();
  const auto behind = std::partition_point(
      begin + static_cast<ptrdiff_t>(low),
      begin + static_cast<ptrdiff_t>(std::min(low + step, end_)), is_not_above);
  const auto index = static_cast<size_t>(behind - begin);
  if (index == begin_) return std::nullopt;
  at_ = index - 1;
  return list_->items[at_].substr(1);
}

void SegmentHints::List::Begin(uint64_t of_id) {
  id = of_id;
  is_complete = false;
  is_too_large = false;
  read_until = KeysOf(of_id);
  items.clear();
  bytes.Clear();
}

void SegmentHints::List::Add(std::string_view item) {
  const auto used = [this] { return bytes.used() + items.size() * sizeof(std::string_view); };
  if (used() > kBytesMax) {
    // Keys that were erased take bytes until now.
    Scratch live;
    for (std::string_view& kept : items) kept = live.Copy(kept);
    bytes = std::move(live);
    if (used() > kBytesMax / 2) {
      is_too_large = true;
      is_complete = false;
      items = {};
      bytes = {};
    }
  }
  if (is_too_large) return;
  const bool is_behind = items.empty() || IsBelow(items.back(), item);
  const auto at = is_behind ? items.end() : std::ranges::lower_bound(items, item, IsBelow);
  if (at == items.end() || *at != item) items.insert(at, bytes.Copy(item));
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
    const Writing writing(list);
    if (!writing) return false;
    if (list.id == id && list.is_complete) return true;
    if (!list.IsTime(id, places)) return false;
    batch.Scan(
        Range::Between(batch.scratch().Copy(list.read_until), batch.scratch().Copy(KeysOf(id + 1))),
        {.limit = kLoadMax, .keys_only = true});
  }
  const Outcome& scanned = access.Execute(batch).outcome(0);
  const Writing writing(list);
  const std::string_view from = batch.requests()[0].key;
  const bool goes_on = static_cast<bool>(writing) && list.id == id && list.read_until == from;
  if (!goes_on || scanned.verdict != Verdict::kDone) return false;
  const size_t prefix_bytes = KeysOf(id).size();
  for (const Item& item : batch.items(0)) list.Add(item.key.substr(prefix_bytes));
  list.read_until = scanned.more ? scanned.value : batch.requests()[0].other;
  list.is_complete = !scanned.more && !list.is_too_large;
  return list.is_complete;
}

void SegmentHints::Learn(uint64_t id, std::span<const std::string> made,
                         std::span<const std::string> gone) {
  List& list = Of(id);
  const Writing writing(list);
  if (!writing || list.id != id) return;
  const size_t prefix_bytes = KeysOf(id).size();
  std::vector<std::string_view> erased;
  for (const std::string_view key : gone) erased.push_back(key.substr(prefix_bytes));
  std::ranges::sort(erased, IsBelow);
  list.Erase(erased);
  for (const std::string_view key : made) list.Add(key.substr(prefix_bytes));
}

// Erases items, which ascend, and moves what lies behind the first of them once.
void SegmentHints::List::Erase(std::span<const std::string_view> gone) {
  auto from = items.begin();  // not moved yet
  auto to = items.begin();
  for (const std::string_view item : gone) {
    const auto at = std::lower_bound(from, items.end(), item, IsBelow);
    to = to == from ? at : std::move(from, at, to);
    from = at != items.end() && *at == item ? std::next(at) : at;
  }
  if (to != from) items.erase(std::move(from, items.end(), to), items.end());
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
  return Correct(IdOf(key), PartOf(key), key, access.Get(key, types::kSegment), place);
}

}  // namespace skep::collections
