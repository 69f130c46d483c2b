#include "hash/read_run.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "engine/point.h"

namespace skep::hash {
namespace {

constexpr uint32_t kRunMin = 16;  // gets, for which others wait

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
  groups_.RunFetching(
      count, [this](uint32_t i) { return window_.hashes[i]; },
      [this](Partition& partition, Groups::Group& group) {
        Look(partition.table, group);
        Note(partition);
      });
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

// Leaves in the group what is not answered.
void ReadRun::Look(Table& table, Groups::Group& group) {
  if (out_.scratch().used() > kAnswerBytesMax) return;
  const auto places = groups_.PlacesOf(group);
  char* const begin = out_.scratch().Room(places.size() * Bucket::kInlineBytesMax);
  char* at = begin;
  uint16_t left = group.begin;
  for (const uint16_t i : places) {
    const Key key = KeyAt(i);
    std::string_view value;
    if (!table.FindInline(key, &value)) {
      table.PrefetchRecord(key);
      places[left++ - group.begin] = i;
      continue;
    }
    Outcome& outcome = out_.outcome(begin_ + i);
    outcome.verdict = Verdict::kDone;
    outcome.present = true;
    if (requests_[begin_ + i].has(Request::kNoValue)) {
      outcome.integer = static_cast<int64_t>(value.size());
    } else {
      CopyBytes(at, value.data(), value.size());
      outcome.value = {at, value.size()};
      at += value.size();
    }
  }
  out_.scratch().Allocate(static_cast<size_t>(at - begin));
  group.end = left;
}

void ReadRun::Finish(Table& table, const Groups::Group& group) {
  const uint64_t now_ms = core_.now.Latest();
  const auto places = groups_.PlacesOf(group);
  for (size_t i = 0; i < places.size(); ++i) {
    if (i + 1 < places.size()) table.PrefetchBody(KeyAt(places[i + 1]));
    const uint32_t slot = begin_ + places[i];
    Get(table, KeyAt(places[i]), now_ms, requests_[slot], out_, slot);
  }
}

}  // namespace skep::hash
