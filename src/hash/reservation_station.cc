#include "hash/reservation_station.h"

#include <functional>

namespace skep::hash {
namespace {

bool IsPartOf(std::string_view part, std::string_view whole) {
  const std::less<const char*> before;
  return !part.empty() && !before(part.data(), whole.data()) &&
         before(part.data(), whole.data() + whole.size());
}

}  // namespace

void ReservationStation::Do(Entry& entry, const Request& request, uint32_t slot, uint64_t now_ms,
                            const EngineTraits& traits, const MemoryBudget& budget,
                            BatchWriter& out) {
  const PointEffect effect = ApplyPoint(request, entry.state(), now_ms, traits, out, slot);
  const bool stores = effect.action == PointEffect::Action::kStore && request.op != Op::kExpire;
  if (stores && !budget.HasRoomFor(0)) return out.RefuseMemory(slot, budget);
  Apply(entry, effect, request, slot, out.scratch());
}

void ReservationStation::Apply(Entry& entry, const PointEffect& effect, const Request& request,
                               uint32_t slot, Scratch& scratch) {
  if (effect.action == PointEffect::Action::kKeep) return;
  entry.is_written = true;
  if (effect.action == PointEffect::Action::kErase) {
    entry.is_present = false;
    return;
  }
  const bool keeps_value = entry.is_present && effect.value.data() == entry.value.data() &&
                           effect.value.size() == entry.value.size();
  if (!keeps_value) {
    // The value is copied: writing other entries may move the table's bytes.
    entry.value = IsPartOf(effect.value, entry.value) ? scratch.Copy(effect.value) : effect.value;
    entry.has_new_value = true;
  }
  if (request.op != Op::kExpire) entry.last_store = slot;
  entry.is_present = true;
  entry.deadline_ms = effect.deadline_ms;
}

}  // namespace skep::hash
