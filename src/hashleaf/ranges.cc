#include "hashleaf/ranges.h"

#include <algorithm>

namespace skep::hashleaf {
namespace {

constexpr uint32_t kAll = UINT32_MAX;

template <typename K>
Interval<K> Everything() {
  return {0, kKeyMax<K>};
}

template <typename K>
std::string_view KeyBytes(const Slice& slice, uint32_t i, uint32_t stride) {
  return {slice.at + size_t{i} * stride, sizeof(K)};
}

}  // namespace

template <typename K>
void Ranges<K>::Do(uint32_t slot) {
  out_.outcome(slot).verdict = Verdict::kDone;
  switch (request(slot).op) {
    case Op::kScan:
      return Scan(slot);
    case Op::kCount:
      return Count(slot);
    case Op::kSample:
      return Sample(slot);
    case Op::kRequireEmpty:
      return RequireEmpty(slot);
    default:
      return DeleteRange(slot);
  }
}

template <typename K>
Version Ranges<K>::Finish() {
  Version number = 0;
  for (const Leaf<K>* const leaf : locks_.held()) number = std::max(number, leaf->number);
  locks_.Unlock();
  return number;
}

template <typename K>
std::optional<Interval<K>> Ranges<K>::Needs(const Request& r) {
  if (r.op == Op::kSample || r.op == Op::kDeleteAll) return Everything<K>();
  auto interval = Interval<K>::Of(r.key, r.other, r.has(Request::kNoUpperBound));
  if (r.has(Request::kSeekFloor)) {
    // The place of the floor is not known yet; and the floor may be below an upper bound that is
    // itself below the lower bound.
    interval = Interval<K>::Of({}, r.other, r.has(Request::kNoUpperBound));
    const auto to = LastKeyTo<K>(r.key);
    if (to) interval = Interval<K>{0, interval ? std::max(interval->last, *to) : *to};
  }
  return interval;
}

template <typename K>
std::optional<Interval<K>> Ranges<K>::Bounds(const Request& r) {
  if (r.op == Op::kDeleteAll) return Everything<K>();
  const bool unbounded = r.has(Request::kNoUpperBound);
  if (r.has(Request::kSeekFloor)) {
    const auto to = LastKeyTo<K>(r.key);
    const auto floor = to ? Floor(*to) : std::nullopt;
    if (floor) {
      const auto interval = Interval<K>::Of({}, r.other, unbounded);
      if (!interval || interval->last < *floor) return std::nullopt;
      return Interval<K>{*floor, interval->last};
    }
  }
  return Interval<K>::Of(r.key, r.other, unbounded);
}

// Returns the largest key of the tree that is not above `bound`. Its leaf, and all up to that of
// `bound`, are held then.
template <typename K>
std::optional<K> Ranges<K>::Floor(K bound) {
  const LeafMap<K>& map = core_.Map();
  const uint32_t index = map.IndexOf(bound);
  for (uint32_t back = 0;; back = back * 2 + 1) {
    const uint32_t from = index - std::min(index, back);
    if (!is_atomic()) {
      locks_.Unlock();
      locks_.Lock({map.leaf(from)->first, bound});
    }
    const auto& held = locks_.held();
    for (size_t i = held.size(); i-- > 0;) {
      if (held[i]->first > bound) continue;
      const Slice slice = ReadLeaf(core_, *held[i], {0, bound}, {.count_max = 1, .last = true});
      if (slice.count > 0) return LoadKey<K>(slice.at);
    }
    if (is_atomic() || from == 0) return std::nullopt;
  }
}

// Locks leaves at the end of the interval, as many as have `wanted` pairs of it, or all.
template <typename K>
void Ranges<K>::LockBack(const Interval<K>& interval, uint64_t wanted) {
  if (is_atomic()) return;
  const LeafMap<K>& map = core_.Map();
  const uint32_t index = map.IndexOf(interval.last);
  for (uint32_t back = 0;; back = back * 2 + 1) {
    const uint32_t from = index - std::min(index, back);
    const K first = std::max(interval.first, map.leaf(from)->first);
    locks_.Unlock();
    locks_.Lock({first, interval.last});
    if (first == interval.first) return;
    uint64_t found = 0;
    for (Leaf<K>* const leaf : locks_.held()) {
      const bool is_whole = leaf->first >= first && leaf->last <= interval.last;
      const Want want{.count_max = static_cast<uint32_t>(std::min<uint64_t>(wanted - found, kAll)),
                      .last = true};
      found += is_whole ? leaf->table.items()
                        : ReadLeaf(core_, *leaf, {first, interval.last}, want).count;
      if (found >= wanted) return;
    }
  }
}

template <typename K>
void Ranges<K>::AddItems(uint32_t slot, const Slice& slice, bool keys_only, bool reverse) {
  if (slice.count == 0) return;
  const uint32_t stride = core_.format.stride();
  const uint32_t value_bytes = keys_only ? 0 : core_.format.value_bytes;
  const uint32_t wanted = sizeof(K) + value_bytes;
  char* const at = out_.scratch().Room(size_t{slice.count} * wanted);
  if (!keys_only && !reverse) {
    std::memcpy(at, slice.at, size_t{slice.count} * stride);
  } else {
    for (uint32_t i = 0; i < slice.count; ++i) {
      const uint32_t from = reverse ? slice.count - 1 - i : i;
      std::memcpy(at + size_t{i} * wanted, slice.at + size_t{from} * stride, wanted);
    }
  }
  out_.AddItems(
      slot, {.at = at, .count = slice.count, .key_bytes = sizeof(K), .value_bytes = value_bytes});
}

// Ends an operation before its interval ends: `slice`, of this leaf, has the last pairs that it
// saw. The bound in its outcome leaves out exactly what it saw.
template <typename K>
void Ranges<K>::Stop(uint32_t slot, Leaf<K>& leaf, const Interval<K>& interval,
                     const Slice& slice) {
  const bool reverse = request(slot).has(Request::kReverse);
  const bool has_seen = slice.count > 0;
  // If it saw no pair, the bound is before the next one.
  const Slice at =
      has_seen ? slice : ReadLeaf(core_, leaf, interval, {.count_max = 1, .last = reverse});
  const auto key = KeyBytes<K>(at, reverse ? 0 : at.count - 1, core_.format.stride());
  Outcome& outcome = out_.outcome(slot);
  outcome.more = true;
  outcome.value = has_seen == reverse ? out_.scratch().Copy(key) : KeyAfter(key, out_.scratch());
}

template <typename K>
void Ranges<K>::Scan(uint32_t slot) {
  if (out_.LeavesOutScan(slot)) return;
  const Request& r = request(slot);
  out_.BeginItems(slot);
  const auto interval = Bounds(r);
  if (!interval) return;
  const bool keys_only = r.has(Request::kKeysOnly);
  const bool reverse = r.has(Request::kReverse);
  // A scan is full as soon as its bytes exceed the limit.
  const size_t fill = batch_.scan_bytes_max() / (keys_only ? sizeof(K) : core_.format.stride());
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(
      std::min(r.limit, batch_.scan_visits_max()), fill < kAll ? fill + 1 : kAll));
  Outcome& outcome = out_.outcome(slot);
  const auto read = [&](Leaf<K>& leaf) {
    const Slice slice = ReadLeaf(core_, leaf, *interval,
                                 {.count_max = wanted - outcome.item_count, .last = reverse});
    AddItems(slot, slice, keys_only, reverse);
    if (slice.more) Stop(slot, leaf, *interval, slice);
  };
  if (reverse) {
    LockBack(*interval, uint64_t{wanted} + 1);
    // Other operations of the batch may hold leaves on both sides of the interval.
    Leaf<K>* leaf = &locks_.HeldOf(interval->last);
    for (;;) {
      read(*leaf);
      if (outcome.more || leaf->first <= interval->first) return;
      if (leaf == locks_.held().front()) return;
      leaf = &locks_.HeldOf(static_cast<K>(leaf->first - 1));
    }
  }
  for (Leaf<K>* leaf = &locks_.Of(interval->first); leaf != nullptr;) {
    read(*leaf);
    if (outcome.more || leaf->last >= interval->last) return;
    leaf = locks_.After(*leaf);
  }
}

template <typename K>
void Ranges<K>::Count(uint32_t slot) {
  const Request& r = request(slot);
  const auto interval = Bounds(r);
  if (!interval) return;
  Outcome& outcome = out_.outcome(slot);
  uint64_t left = r.limit == kNoLimit ? UINT64_MAX : r.limit;
  for (Leaf<K>* leaf = &locks_.Of(interval->first); leaf != nullptr;) {
    const bool is_whole = interval->first <= leaf->first && leaf->last <= interval->last;
    if (is_whole && leaf->table.items() <= left) {
      outcome.integer += leaf->table.items();
      left -= leaf->table.items();
    } else {
      const auto want = static_cast<uint32_t>(std::min<uint64_t>(left, kAll));
      const Slice slice = ReadLeaf(core_, *leaf, *interval, {.count_max = want});
      outcome.integer += slice.count;
      left -= slice.count;
      if (slice.more) return Stop(slot, *leaf, *interval, slice);
    }
    if (leaf->last >= interval->last) return;
    leaf = locks_.After(*leaf);
  }
}

// Draws the number when all leaves that the operation changes are locked (sequence_numbers.h).
template <typename K>
void Ranges<K>::Number(uint32_t slot) {
  if (is_atomic() || !core_.numbers.wanted()) return;
  const Version number = core_.numbers.Draw();
  for (Leaf<K>* const leaf : locks_.held()) leaf->number = number;
  out_.outcome(slot).version = number;
}

template <typename K>
void Ranges<K>::DeleteRange(uint32_t slot) {
  const Request& r = request(slot);
  const auto interval = Bounds(r);
  if (!interval) return;
  Outcome& outcome = out_.outcome(slot);
  const bool has_limit = r.op == Op::kDeleteRange && r.limit != kNoLimit;
  K last = interval->last;  // last key to delete
  if (!has_limit) {
    locks_.Lock(*interval);
  } else {
    uint64_t left = r.limit;
    for (Leaf<K>* leaf = &locks_.Of(interval->first); leaf != nullptr;) {
      const Slice slice =
          ReadLeaf(core_, *leaf, *interval, {.count_max = static_cast<uint32_t>(left)});
      left -= slice.count;
      if (slice.more) {
        Stop(slot, *leaf, *interval, slice);
        if (slice.count == 0 && left == r.limit) return;
        last = static_cast<K>(*FirstKeyFrom<K>(outcome.value) - 1);  // there is a key behind it
        break;
      }
      if (leaf->last >= interval->last) break;
      leaf = locks_.After(*leaf);
    }
  }
  const Interval<K> erased{interval->first, last};
  const std::vector<LeafPairs> from = PairsToErase(erased);
  // Nothing fails from here on, unless an atomic batch can take it back.
  Number(slot);
  for (const LeafPairs& one : from) {
    const uint32_t before = one.leaf->table.items();
    one.is_whole ? mutator_.Clear(*one.leaf) : EraseFrom(*one.leaf, one.pairs);
    outcome.integer += before - one.leaf->table.items();
  }
  if (is_atomic()) return;
  if (outcome.integer == 0) {
    outcome.version = 0;
    return;
  }
  char lo[sizeof(K)];
  StoreKey(lo, erased.first);
  char hi[sizeof(K)];
  const bool is_unbounded = erased.last == kKeyMax<K>;
  if (!is_unbounded) StoreKey(hi, static_cast<K>(erased.last + 1));
  core_.watches.TouchRange({lo, sizeof(K)}, {hi, sizeof(K)}, is_unbounded, 0);
}

// Returns the held leaves that have a part of the interval. Unless a leaf loses all pairs, its
// pairs of the interval are copied: the originals move when the leaf changes.
template <typename K>
std::vector<typename Ranges<K>::LeafPairs> Ranges<K>::PairsToErase(const Interval<K>& interval) {
  std::vector<LeafPairs> from;
  from.reserve(locks_.held().size());
  for (Leaf<K>* const leaf : locks_.held()) {
    if (leaf->last < interval.first || interval.last < leaf->first) continue;
    const bool is_inside = interval.first <= leaf->first && leaf->last <= interval.last;
    LeafPairs& one = from.emplace_back(LeafPairs{leaf, is_inside && !is_atomic(), {}});
    if (one.is_whole) continue;
    const Slice slice = ReadLeaf(core_, *leaf, interval, {.count_max = kAll});
    one.pairs.assign(slice.at, slice.at + size_t{slice.count} * core_.format.stride());
  }
  return from;
}

template <typename K>
void Ranges<K>::EraseFrom(Leaf<K>& leaf, std::span<const char> pairs) {
  const uint32_t stride = core_.format.stride();
  for (size_t at = 0; at < pairs.size(); at += stride) {
    const char* const pair = pairs.data() + at;
    const K key = LoadKey<K>(pair);
    if (is_atomic()) {
      Undo<K>& undo = undo_->emplace_back(Undo<K>{.key = key, .present = true, .value = {}});
      CopyValue(undo.value.data(), pair + sizeof(K), core_.format.value_bytes);
    }
    mutator_.Erase(leaf, key, HashOf(key, core_.format.secret));
  }
}

template <typename K>
void Ranges<K>::Sample(uint32_t slot) {
  out_.BeginItems(slot);
  if (!is_atomic()) locks_.Lock(Everything<K>());
  uint64_t items = 0;
  for (const Leaf<K>* const leaf : locks_.held()) items += leaf->table.items();
  if (items == 0) {
    out_.outcome(slot).verdict = Verdict::kAbsent;
    return;
  }
  auto left = static_cast<uint64_t>(static_cast<Key128>(request(slot).random) * items >> 64);
  for (const Leaf<K>* const leaf : locks_.held()) {
    if (left >= leaf->table.items()) {
      left -= leaf->table.items();
      continue;
    }
    leaf->table.ForEach([&](K key, const std::byte* value) {
      if (left-- != 0) return;
      char bytes[sizeof(K)];
      StoreKey(bytes, key);
      out_.AddItem(slot,
                   {.key = {bytes, sizeof(K)},
                    .value = {reinterpret_cast<const char*>(value), core_.format.value_bytes}});
    });
    return;
  }
}

template <typename K>
void Ranges<K>::RequireEmpty(uint32_t slot) {
  const auto interval = Bounds(request(slot));
  if (!interval) return;
  for (Leaf<K>* leaf = &locks_.Of(interval->first); leaf != nullptr;) {
    const Slice slice = ReadLeaf(core_, *leaf, *interval, {.count_max = 1});
    if (slice.count > 0) {
      out_.outcome(slot).verdict = Verdict::kMismatch;
      out_.outcome(slot).value = out_.scratch().Copy(KeyBytes<K>(slice, 0, core_.format.stride()));
      return;
    }
    if (leaf->last >= interval->last) return;
    leaf = locks_.After(*leaf);
  }
}

template class Ranges<uint32_t>;
template class Ranges<uint64_t>;
template class Ranges<Key128>;

}  // namespace skep::hashleaf
