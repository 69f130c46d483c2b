#include "pool/cleaner.h"

#include <algorithm>

#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr size_t kFindItems = 1024;
static_assert(Cleaner::kBatchItems <= ItemWriter::kWritesMax);

}  // namespace

bool Cleaner::Step() { return survivors_.empty() ? Begin() : MoveSome(); }

bool Cleaner::Begin() {
  const auto answer = AskForVictims();
  if (!answer) return false;
  if (answer->missing == 0) {
    BeginPass(false);
    found_nothing_ = false;
    return false;
  }
  for (const Victim& victim : answer->victims) {
    if (!IsPassedOver(victim)) return Load(victim);
  }
  if (answer->victims.size() < kVictimsMax) return EndPass();
  const Victim& last = answer->victims.back();
  from_rank_ = evicts_ ? last.sealed_index : last.live_units;
  from_chunk_ = last.chunk + 1;
  return true;
}

std::optional<Victims> Cleaner::AskForVictims() {
  std::string request(1, static_cast<char>(MessageKind::kVictims));
  AppendVarint(request, session_.epoch());
  EncodeVictimsRequest({.by_age = evicts_,
                        .from_rank = from_rank_,
                        .from_chunk = from_chunk_,
                        .found_nothing = found_nothing_,
                        .figures = figures_},
                       request);
  ReplyCode code;
  const auto fields = session_.Call(ClientSession::To::kHashServer, request, &code);
  Victims victims;
  if (fields && DecodeVictims(*fields, &victims)) return victims;
  session_.RefreshMap();
  return std::nullopt;
}

void Cleaner::BeginPass(bool evicts) {
  evicts_ = evicts;
  has_gained_ = false;
  from_rank_ = 0;
  from_chunk_ = 0;
}

// All victims were looked at, or nothing can be moved now. Returns whether to go on at once.
bool Cleaner::EndPass() {
  const bool had_gained = has_gained_;
  const bool begins_to_evict = !had_gained && !evicts_ && eviction_ == Eviction::kOldest;
  found_nothing_ = !had_gained && !begins_to_evict;
  BeginPass(begins_to_evict);
  return !found_nothing_;
}

bool Cleaner::IsPassedOver(const Victim& victim) const {
  const auto& seen = passed_over_[evicts_ ? 1 : 0];
  const auto at = seen.find(victim.chunk);
  return at != seen.end() && at->second.gen == victim.gen &&
         at->second.live_units == victim.live_units;
}

// Until it has another count than this one.
void Cleaner::PassOver(const Victim& victim, uint64_t live_units) {
  passed_over_[evicts_ ? 1 : 0][victim.chunk] = {.gen = victim.gen,
                                                 .live_units = static_cast<uint32_t>(live_units)};
}

bool Cleaner::Load(const Victim& victim) {
  victim_ = victim;
  if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  if (!session_.ReadChunk(victim.chunk, victim.gen, bytes_.get()) ||
      !FindSurvivors(ItemsIn(victim.chunk, victim.gen, {bytes_.get(), kChunkBytes}))) {
    survivors_.clear();
    session_.RefreshMap();
    // The next ones may be readable.
    from_rank_ = evicts_ ? victim.sealed_index : victim.live_units;
    from_chunk_ = victim.chunk + 1;
    return false;
  }
  if (!evicts_ && !IsWorthIt()) {
    PassOver(victim, victim.live_units);
    survivors_.clear();
    return true;
  }
  // Short ones first: they leave no tail behind them.
  std::ranges::stable_partition(survivors_,
                                [](const Survivor& s) { return s.item.units <= kGarbageUnitsMin; });
  next_ = 0;
  settled_units_ = 0;
  has_gained_ = true;
  found_nothing_ = false;
  if (survivors_.empty()) EndVictim();
  return true;
}

bool Cleaner::FindSurvivors(std::span<const ChunkItem> items) {
  survivors_.clear();
  end_unit_ = items.empty() ? 0 : items.back().unit + items.back().units;
  for (auto left = items; !left.empty();) {
    size_t count = 0;
    size_t bytes = 0;
    while (count < left.size() && count < kFindItems && bytes < kBatchBytes) {
      bytes += left[count++].view.key.size();
    }
    if (!AskForSlots(left.first(count))) return false;
    left = left.subspan(count);
  }
  return true;
}

bool Cleaner::AskForSlots(std::span<const ChunkItem> items) {
  std::string request(1, static_cast<char>(MessageKind::kFind));
  AppendVarint(request, session_.epoch());
  AppendVarint(request, items.size());
  for (const ChunkItem& item : items) AppendBytes(request, item.view.key);
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kHashServer, request, &code);
  for (const ChunkItem& item : items) {
    Slot slot;
    if (!fields || !TakeSlot(*fields, &slot)) return false;
    const bool is_here = slot && slot.chunk() == victim_.chunk && slot.unit() == item.unit &&
                         slot.gen() == victim_.gen;
    if (is_here) survivors_.push_back({.slot = slot, .item = item});
  }
  return true;
}

bool Cleaner::IsWorthIt() const {
  uint32_t live = 0;
  bool has_long = false;
  for (const Survivor& survivor : survivors_) {
    live += survivor.item.units;
    has_long |= survivor.item.units > kGarbageUnitsMin;
  }
  const uint32_t used = has_long ? end_unit_ : kChunkUnits;
  return used - live >= kGarbageUnitsMin;
}

bool Cleaner::MoveSome() {
  std::vector<Write> writes;
  size_t bytes = 0;
  for (size_t i = next_;
       i < survivors_.size() && writes.size() < kBatchItems && bytes < kBatchBytes; ++i) {
    const Survivor& survivor = survivors_[i];
    bytes += survivor.item.view.value.size();
    writes.push_back({.kind = evicts_ ? LogEntry::Kind::kDelete : LogEntry::Kind::kPut,
                      .condition = LogEntry::Condition::kIfSlot,
                      .key = survivor.item.view.key,
                      .value = evicts_ ? std::string_view() : survivor.item.view.value,
                      .expected = survivor.slot});
  }
  writer_.Run(writes);
  for (const Write& write : writes) {
    if (!write.status.ok()) return GiveUp(write.status);
    Settle(write);
  }
  if (next_ == survivors_.size()) EndVictim();
  return true;
}

void Cleaner::Settle(const Write& write) {
  const Survivor& survivor = survivors_[next_++];
  if (write.verdict.kind != CommitVerdict::Kind::kDone) return;
  settled_units_ += survivor.slot.units();
  if (evicts_) {
    ++figures_.items_evicted;
  } else {
    ++figures_.items_moved;
    figures_.bytes_moved += uint64_t{survivor.item.units} * kUnitBytes;
  }
}

// What was moved stays moved.
bool Cleaner::GiveUp(const Status& status) {
  survivors_.clear();
  if (status.code() != Code::kOutOfMemory) return false;
  has_gained_ = false;
  return EndPass();
}

void Cleaner::EndVictim() {
  survivors_.clear();
  ++(evicts_ ? figures_.chunks_evicted : figures_.chunks_cleaned);
  PassOver(victim_, victim_.live_units - std::min<uint64_t>(settled_units_, victim_.live_units));
  if (evicts_) BeginPass(false);
}

}  // namespace skep::pool
