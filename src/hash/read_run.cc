#include "hash/read_run.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "engine/point.h"

namespace skep::hash {
namespace {

constexpr uint32_t kRunMin = 16;  // shorter runs of gets are left to PointRun if requests follow
constexpr int kStepsMax = 3;      // along chains, side by side

}  // namespace

void Get(Table& table, const Key& key, uint64_t now_ms, const Request& request, BatchWriter& out,
         uint32_t slot) {
  std::optional<PointState> state;
  if (const Table::Place place = table.Find(key)) {
    const Pair pair = table.Read(place);
    state = {.value = pair.value, .deadline_ms = pair.deadline_ms};
  }
  ApplyGet(request, state, now_ms, out, slot);
}

uint32_t ReadRun::Count(uint32_t slot) const {
  const auto from = requests_.subspan(slot);
  const auto end = from.begin() + static_cast<ptrdiff_t>(std::min<size_t>(from.size(), kWindow));
  const auto other = std::find_if(from.begin(), end, [&](const Request& r) {
    return r.op != Op::kGet || !IsSoundPoint(r, traits_);
  });
  const auto count = static_cast<uint32_t>(other - from.begin());
  return count < kRunMin && count < from.size() ? 0 : count;
}

void ReadRun::Do(uint32_t slot, uint32_t count) {
  begin_ = slot;
  if (count == 1) {
    const Key key = KeyOf(requests_[slot].key);
    Partition& partition = *core_.partitions[core_.PartitionOf(key.hash)];
    const std::lock_guard locked(partition.lock);
    Get(partition.table, key, core_.now.Latest(), requests_[slot], out_, slot);
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

void ReadRun::Sort(uint32_t count) {
  groups_.Begin(core_);
  const Request* const requests = &requests_[begin_];
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t head = HeadOf(requests[i].key);
    window_.heads[i] = head;
    window_.hashes[i] = HashOf(requests[i].key, head);
    groups_.Count(groups_.Of(window_.hashes[i]));
  }
  groups_.Divide();
  for (uint32_t i = 0; i < count; ++i) groups_.Put(groups_.Of(window_.hashes[i]), i);
}

// Answers the gets whose first bucket has their pair inline, and leaves the others in the group.
void ReadRun::Look(Table& table, Groups::Group& group) {
  group.moves = Table::kNoMoves;
  if (out_.IsFull()) return;
  BucketProbe& look = window_.bucket_probe;
  const auto key_of = [this](uint16_t place) { return KeyAt(place); };
  look.Sort(table, groups_.PlacesOf(group), key_of);
  char* const begin = out_.scratch().Room(look.hits().size() * Bucket::kInlineBytesMax);
  char* at = begin;
  for (const BucketProbe::Seen& hit : look.hits()) {
    std::string_view value;
    if (!hit.bucket->FindValue(hit.like, KeyAt(hit.place), &value)) {
      look.Miss(hit);
      continue;
    }
    const uint32_t slot = begin_ + hit.place;
    Outcome& outcome = out_.outcome(slot);
    outcome.verdict = Verdict::kDone;
    outcome.present = true;
    if (requests_[slot].has(Request::kNoValue)) {
      outcome.integer = static_cast<int64_t>(value.size());
    } else {
      CopyBytes(at, value.data(), value.size());
      outcome.value = {at, value.size()};
      at += value.size();
    }
  }
  out_.scratch().Allocate(static_cast<size_t>(at - begin));
  left_ -= look.Leave(table, groups_, group, key_of, &window_.lines);
}

// Takes one more step along the chains, and leaves the gets in the group that are not answered.
void ReadRun::GoOn(Table& table, Groups::Group& group) {
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
bool ReadRun::Follow(const Table& table, uint16_t i, uint64_t now_ms) {
  const Key key = KeyAt(i);
  const uint32_t slot = begin_ + i;
  Table::Lead& lead = window_.bucket_probe.lead(i);
  if (lead.is_record()) {
    const Pair pair = table.ReadRecord(lead.at());
    if (!IsSame(key, pair.key)) return false;
    ApplyGet(requests_[slot], PointState{pair.value, pair.deadline_ms}, now_ms, out_, slot);
    return true;
  }
  if (lead.at() != 0) {
    const Bucket& bucket = table.ChainedBucket(lead.at());
    std::string_view value;
    if (bucket.FindValue(key, &value)) {
      ApplyGet(requests_[slot], PointState{value}, now_ms, out_, slot);
      return true;
    }
    lead = table.LeadOf(bucket, key);
    table.AddLine(lead, &window_.lines);
    if (lead.at() != 0) return false;
  }
  ApplyGet(requests_[slot], std::nullopt, now_ms, out_, slot);
  return true;
}

void ReadRun::Finish(Table& table, const Groups::Group& group) {
  const uint64_t now_ms = core_.now.Latest();
  const auto places = groups_.PlacesOf(group);
  for (size_t n = 0; n < places.size(); ++n) {
    if (n + 1 < places.size()) table.PrefetchBody(KeyAt(places[n + 1]));
    const uint32_t slot = begin_ + places[n];
    Get(table, KeyAt(places[n]), now_ms, requests_[slot], out_, slot);
  }
}

}  // namespace skep::hash
