#include "pool/cleaner_messages.h"

#include "pool/fields.h"

namespace skep::pool {
namespace {

enum VictimsFlag : uint8_t { kByAge = 1, kFoundNothing = 2, kVictimsFlags = 3 };

}  // namespace

void AppendFigures(std::string& to, const UpkeepFigures& figures) {
  for (const uint64_t number :
       {figures.items_moved, figures.bytes_moved, figures.chunks_cleaned, figures.items_evicted,
        figures.chunks_evicted, figures.chunks_copied, figures.keys_removed}) {
    AppendVarint(to, number);
  }
}

bool TakeFigures(std::string_view& from, UpkeepFigures* figures) {
  return TakeVarint(from, &figures->items_moved) && TakeVarint(from, &figures->bytes_moved) &&
         TakeVarint(from, &figures->chunks_cleaned) && TakeVarint(from, &figures->items_evicted) &&
         TakeVarint(from, &figures->chunks_evicted) && TakeVarint(from, &figures->chunks_copied) &&
         TakeVarint(from, &figures->keys_removed);
}

void EncodeVictimsRequest(const VictimsRequest& request, std::string& to) {
  to.push_back(static_cast<char>((request.by_age ? kByAge : 0) |
                                 (request.found_nothing ? kFoundNothing : 0)));
  AppendVarint(to, request.from_rank);
  AppendVarint(to, request.from_chunk);
  AppendFigures(to, request.figures);
}

bool DecodeVictimsRequest(std::string_view from, VictimsRequest* request) {
  if (from.empty()) return false;
  const auto flags = static_cast<uint8_t>(from[0]);
  from.remove_prefix(1);
  request->by_age = (flags & kByAge) != 0;
  request->found_nothing = (flags & kFoundNothing) != 0;
  return (flags & ~kVictimsFlags) == 0 && TakeVarint(from, &request->from_rank) &&
         TakeNumber(from, &request->from_chunk) && TakeFigures(from, &request->figures) &&
         from.empty();
}

void EncodeVictims(const Victims& victims, std::string& to) {
  AppendVarint(to, victims.missing);
  for (const Victim& victim : victims.victims) {
    AppendVarint(to, victim.chunk);
    AppendVarint(to, victim.gen);
    AppendVarint(to, victim.live_units);
    AppendVarint(to, victim.sealed_index);
  }
}

bool DecodeVictims(std::string_view from, Victims* victims) {
  *victims = {};
  if (!TakeNumber(from, &victims->missing)) return false;
  while (!from.empty()) {
    Victim victim;
    if (!TakeNumber(from, &victim.chunk) || !TakeNumber(from, &victim.gen) ||
        !TakeNumber(from, &victim.live_units) || !TakeVarint(from, &victim.sealed_index)) {
      return false;
    }
    victims->victims.push_back(victim);
  }
  return true;
}

}  // namespace skep::pool
