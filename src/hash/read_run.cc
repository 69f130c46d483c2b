#include "hash/read_run.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace skep::hash {
namespace {

constexpr uint32_t kRunMin = 16;  // shorter runs of gets are left to PointRun if requests follow
constexpr int kStepsMax = 3;      // along chains, side by side

}  // namespace

uint32_t BatchGets::CountFrom(uint32_t slot) const {
  const auto from = requests_.subspan(slot);
  const auto end = from.begin() + static_cast<ptrdiff_t>(std::min<size_t>(from.size(), kWindow));
  const auto other = std::find_if(from.begin(), end, [&](const Request& r) {
    return r.op != Op::kGet || !IsSoundPoint(r, traits_);
  });
  const auto count = static_cast<uint32_t>(other - from.begin());
  return count < kRunMin && count < from.size() ? 0 : count;
}

template <class Gets>
void ReadRun<Gets>::Do(uint32_t slot, uint32_t count) {
  begin_ = slot;
  if (count == 1) {
    const Key key = KeyOf(gets_.key(slot));
    Partition& partition = *core_.partitions[core_.PartitionOf(key.hash)];
    const std::lock_guard locked(partition.lock);
    Get(partition.table, key, slot, core_.now.Latest());
    return Note(partition);
  }
  Sort(count);
  left_ = count;
  groups_.Fetch(count, [this](uint32_t i) { return window_.hashes[i]; }, &window_.lines);
  groups_.Run([this](Partition& partition, Groups::Group& group) {
    Look(partition.table, group);
    Note(partition);
  });
  for (int step = 0; step < kStepsMax && left_ > 0; ++step) {
    window_.lines.Fetch();
    groups_.Run([this](Partition& partition, Groups::Group& group) {
      GoOn(partition.table, group);
      Note(partition);
    });
  }
  window_.lines.Fetch();
  if (left_ == 0) return;
  groups_.Run([this](Partition& partition, const Groups::Group& group) {
    Finish(partition.table, group);
    Note(partition);
  });
}

template <class Gets>
void ReadRun<Gets>::Sort(uint32_t count) {
  groups_.Begin(core_);
  const Gets gets = gets_;  // a copy stays in registers while the windows are written
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view key = gets.key(begin_ + i);
    const uint64_t head = HeadOf(key);
    window_.heads[i] = head;
    window_.hashes[i] = HashOf(key, head);
    groups_.Count(groups_.Of(window_.hashes[i]));
  }
  groups_.Divide();
  for (uint32_t i = 0; i < count; ++i) groups_.Put(groups_.Of(window_.hashes[i]), i);
}

// Answers the gets whose first bucket has their pair inline, and leaves the others in the group.
template <class Gets>
void ReadRun<Gets>::Look(Table& table, Groups::Group& group) {
  group.moves = Table::kNoMoves;
  if (gets_.IsFull()) return;
  BucketProbe& look = window_.bucket_probe;
  const auto key_of = [this](uint16_t place) { return KeyAt(place); };
  look.Sort(table, groups_.PlacesOf(group), key_of);
  char* const begin = gets_.values().Room(look.hits().size() * Bucket::kInlineBytesMax);
  char* at = begin;
  for (const BucketProbe::Seen& hit : look.hits()) {
    std::string_view value;
    if (hit.bucket->FindValue(hit.like, KeyAt(hit.place), &value)) {
      CopyBytes(at, value.data(), value.size());
      at += gets_.TellInline(begin_ + hit.place, {at, value.size()});
    } else {
      look.Miss(hit);
    }
  }
  gets_.values().Allocate(static_cast<size_t>(at - begin));
  left_ -= look.Leave(table, groups_, group, key_of, &window_.lines);
}

// Takes one more step along the chains, and leaves the gets in the group that are not answered.
template <class Gets>
void ReadRun<Gets>::GoOn(Table& table, Groups::Group& group) {
  if (table.moves() != group.moves) return;
  const uint64_t now_ms = core_.now.Latest();
  const auto places = groups_.PlacesOf(group);
  uint16_t left = 0;
  for (size_t n = 0; n < places.size(); ++n) {
    if (n + 1 < places.size()) table.PrefetchBody(window_.bucket_probe.lead(places[n + 1]));
    if (!Follow(table, places[n], now_ms)) places[left++] = places[n];
  }
  left_ -= static_cast<uint32_t>(places.size()) - left;
  group.end = static_cast<uint16_t>(group.begin + left);
}

// Takes one step along a chain. Returns false if the get is not answered yet.
template <class Gets>
bool ReadRun<Gets>::Follow(const Table& table, uint16_t i, uint64_t now_ms) {
  const Key key = KeyAt(i);
  const uint32_t slot = begin_ + i;
  Table::Lead& lead = window_.bucket_probe.lead(i);
  if (lead.is_record()) {
    const Pair pair = table.ReadRecord(lead.at());
    if (!IsSame(key, pair.key)) return false;
    gets_.Tell(slot, PointState{pair.value, pair.deadline_ms}, now_ms);
    return true;
  }
  if (lead.at() != 0) {
    const Bucket& bucket = table.ChainedBucket(lead.at());
    std::string_view value;
    if (bucket.FindValue(key, &value)) {
      gets_.Tell(slot, PointState{value}, now_ms);
      return true;
    }
    lead = table.LeadOf(bucket, key);
    table.AddLine(lead, &window_.lines);
    if (lead.at() != 0) return false;
  }
  gets_.Tell(slot, std::nullopt, now_ms);
  return true;
}

template <class Gets>
void ReadRun<Gets>::Finish(Table& table, const Groups::Group& group) {
  const uint64_t now_ms = core_.now.Latest();
  const auto places = groups_.PlacesOf(group);
  for (size_t n = 0; n < places.size(); ++n) {
    if (n + 1 < places.size()) table.PrefetchBody(KeyAt(places[n + 1]));
    Get(table, KeyAt(places[n]), begin_ + places[n], now_ms);
  }
}

// Does a get of the key. The partition must be locked.
template <class Gets>
void ReadRun<Gets>::Get(Table& table, const Key& key, uint32_t slot, uint64_t now_ms) {
  std::optional<PointState> state;
  if (const Table::Place place = table.Find(key)) {
    const Pair pair = table.Read(place);
    state = {.value = pair.value, .deadline_ms = pair.deadline_ms};
  }
  gets_.Tell(slot, state, now_ms);
}

template class ReadRun<BatchGets>;
template class ReadRun<ManyGets>;

}  // namespace skep::hash
