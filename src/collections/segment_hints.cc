#include "collections/segment_hints.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/compare_bytes.h"
#include "collections/access.h"

namespace skep::collections {
namespace {

bool IsBelow(std::string_view a, std::string_view b) { return CompareBytes(a, b) < 0; }

// The first eight bytes from `from` on, in the order of the strings; those that are missing are
// zeros.
inline uint64_t HeadOf(std::string_view bytes, size_t from) {
  constexpr size_t kBytes = sizeof(uint64_t);
  const size_t left = bytes.size() - from;
  uint64_t head = 0;
  if (left >= kBytes) [[likely]] {
    std::memcpy(&head, bytes.data() + from, kBytes);
    return __builtin_bswap64(head);
  }
  if (left == 0) return 0;
  if (bytes.size() >= kBytes) {
    std::memcpy(&head, bytes.data() + bytes.size() - kBytes, kBytes);
    return __builtin_bswap64(head) << (8 * (kBytes - left));
  }
  std::memcpy(&head, bytes.data() + from, left);
  return __builtin_bswap64(head);
}

}  // namespace

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

void SegmentHints::Reading::BeginPart(Part part) {
  const auto& items = list_->items;
  const auto [begin, end] = std::ranges::equal_range(
      items, static_cast<unsigned char>(part), {},
      [](const Item& item) { return static_cast<unsigned char>(item.name.front()); });
  at_ = begin_ = static_cast<size_t>(begin - items.begin());
  end_ = static_cast<size_t>(end - items.begin());
  common_ = {};
  if (end_ - begin_ < 3) return;
  // They ascend, so what the second and the last one begin with, all between them begin with.
  const std::string_view low = items[begin_ + 1].name.substr(1);
  const std::string_view high = items[end_ - 1].name.substr(1);
  const auto [differs, unused] = std::ranges::mismatch(low, high);
  common_ = low.substr(0, static_cast<size_t>(differs - low.begin()));
}

std::optional<std::string_view> SegmentHints::Reading::Find(std::string_view place) {
  const auto& items = list_->items;
  if (begin_ == end_) return std::nullopt;
  size_t low = begin_ + 1;  // the first item that may be above the place
  size_t high = end_;       // and the last one
  const int order = CompareBytes(place.substr(0, common_.size()), common_);
  if (order < 0) high = low;
  if (order > 0) low = high;
  const size_t common = common_.size();
  const uint64_t head = order == 0 ? HeadOf(place, common) : 0;
  const auto is_not_above = [&](size_t index) {
    const std::string_view name = items[index].name;
    const uint64_t own = HeadOf(name, 1 + common);
    if (own != head) [[likely]]
      return own < head;
    return CompareBytes(name.substr(1 + common), place.substr(common)) <= 0;
  };
  if (at_ >= low && at_ < high) {
    const bool is_behind = is_not_above(at_);
    (is_behind ? low : high) = is_behind ? at_ + 1 : at_;
    for (size_t near = 0; is_behind && near < kNear && low < high; ++near) {
      if (!is_not_above(low)) {
        high = low;
      } else {
        ++low;
      }
    }
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    is_not_above(middle) ? low = middle + 1 : high = middle;
  }
  at_ = low - 1;
  const std::string_view separator = items[at_].name.substr(1);
  const bool is_none = at_ == begin_ && CompareBytes(separator, place) > 0;
  return is_none ? std::nullopt : std::optional(separator);
}

void SegmentHints::List::Begin(uint64_t of_id) {
  id = of_id;
  is_complete = false;
  is_too_large = false;
  read_until = KeysOf(of_id);
  std::vector<Item>().swap(items);
  bytes = Scratch();
}

void SegmentHints::List::Add(std::string_view item) {
  const auto used = [this] { return bytes.used() + items.size() * sizeof(Item); };
  if (used() > kBytesMax) {
    // Keys that were erased take bytes until now.
    Scratch live;
    for (Item& kept : items) kept.name = live.Copy(kept.name);
    bytes = std::move(live);
    if (used() > kBytesMax / 2) {
      is_too_large = true;
      is_complete = false;
      std::vector<Item>().swap(items);
      bytes = Scratch();
    }
  }
  if (is_too_large) return;
  const bool is_behind = items.empty() || IsBelow(items.back().name, item);
  const auto at =
      is_behind ? items.end() : std::ranges::lower_bound(items, item, IsBelow, &Item::name);
  if (at == items.end() || at->name != item) items.insert(at, Item{.name = bytes.Copy(item)});
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
  std::vector<std::string_view> erased;
  for (const std::string_view key : gone) erased.push_back(key.substr(prefix_bytes));
  std::ranges::sort(erased, IsBelow);
  list.Erase(erased);
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

// Erases items, which ascend, and moves what lies behind the first of them once.
void SegmentHints::List::Erase(std::span<const std::string_view> gone) {
  auto from = items.begin();  // not moved yet
  auto to = items.begin();
  for (const std::string_view item : gone) {
    const auto at = std::ranges::lower_bound(from, items.end(), item, IsBelow, &Item::name);
    to = to == from ? at : std::move(from, at, to);
    from = at != items.end() && at->name == item ? std::next(at) : at;
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
  const auto bytes = access.Get(key, types::kSegment);
  return access.status().ok() && Correct(IdOf(key), PartOf(key), key, bytes, place);
}

}  // namespace skep::collections
