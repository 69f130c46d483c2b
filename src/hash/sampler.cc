#include "hash/sampler.h"

#include <algorithm>

#include "engine/point.h"

namespace skep::hash {

Sampler::Sampler(const Core& core, uint64_t random, uint64_t now_ms,
                 const ReservationStation* station, bool is_empty)
    : core_(core), random_(random), now_ms_(now_ms), station_(station), is_empty_(is_empty) {}

std::optional<Pair> Sampler::Draw() {
  if (is_empty_) return DrawOfAll();
  uint64_t items = 0;
  for (const auto& partition : core_.partitions) items += partition->table.items();
  uint64_t fresh = 0;  // keys that only the station has
  ForEachFresh([&](const Pair&) { ++fresh; });
  if (items == 0) return DrawOfAll();
  for (int tries = 0; tries < kTriesMax; ++tries) {
    uint64_t at = random_.Below(items + fresh);
    std::optional<Pair> drawn;
    if (at >= items) {
      at -= items;
      ForEachFresh([&](const Pair& pair) {
        if (at-- == 0) drawn = pair;
      });
    } else {
      size_t p = 0;
      for (; at >= core_.partitions[p]->table.items(); ++p) {
        at -= core_.partitions[p]->table.items();
      }
      drawn = DrawFrom(core_.partitions[p]->table, &tries);
    }
    if (drawn) return drawn;
  }
  return DrawOfAll();
}

// Draws once. Returns nothing if the pair does not count, or after too many tries.
std::optional<Pair> Sampler::DrawFrom(const Table& table, int* tries) {
  // A bucket that is not split yet has the keys of two buckets.
  constexpr uint64_t kPlacesMin = 32;
  const uint64_t places = std::max<uint64_t>(kPlacesMin, uint64_t{4} * table.options().fill_slots);
  while (++*tries < kTriesMax) {
    const uint64_t bucket = random_.Below(table.bucket_count());
    uint64_t left = random_.Below(places);
    std::optional<Pair> drawn;
    table.ForEachIn(bucket, [&](const Pair& pair) {
      if (left-- == 0) drawn = pair;
    });
    if (drawn) return Judge(*drawn);
  }
  return std::nullopt;
}

std::optional<Pair> Sampler::Judge(const Pair& pair) const {
  if (HasExpired(pair.deadline_ms, now_ms_)) return std::nullopt;
  const ReservationStation::Entry* const entry =
      station_ == nullptr ? nullptr : station_->Find(KeyOf(pair.key));
  if (entry == nullptr) return pair;
  if (!entry->is_present) return std::nullopt;
  return Pair{.key = entry->key.bytes, .value = entry->value};
}

// Visits the keys that the station has and the tables do not.
template <typename Visit>
void Sampler::ForEachFresh(Visit visit) const {
  if (station_ == nullptr) return;
  for (const auto& entry : station_->entries()) {
    if (entry.is_present && (is_empty_ || !entry.was_live)) {
      visit(Pair{.key = entry.key.bytes, .value = entry.value});
    }
  }
}

// Visits every pair that counts, in an order that depends on the state alone.
template <typename Visit>
void Sampler::ForEach(Visit visit) const {
  ForEachFresh(visit);
  if (is_empty_) return;
  for (const auto& partition : core_.partitions) {
    for (uint64_t i = 0; i < partition->table.bucket_count(); ++i) {
      partition->table.ForEachIn(i, [&](const Pair& pair) {
        if (const auto judged = Judge(pair)) visit(*judged);
      });
    }
  }
}

std::optional<Pair> Sampler::DrawOfAll() {
  uint64_t count = 0;
  ForEach([&](const Pair&) { ++count; });
  if (count == 0) return std::nullopt;
  uint64_t left = random_.Below(count);
  std::optional<Pair> drawn;
  ForEach([&](const Pair& pair) {
    if (left-- == 0) drawn = pair;
  });
  return drawn;
}

}  // namespace skep::hash
