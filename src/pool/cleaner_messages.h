// cleaner_messages.h: what a cleaner and the hash server say to each other (cleaner.h,
// free_space.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool/slot.h"

namespace skep::pool {

// A chunk of less garbage is not moved.
inline constexpr uint32_t kGarbageUnitsMin = kChunkUnits / 64;
// Whether a chunk can be worth a look of which so many units, or more, are live.
inline bool MayGainBy(uint64_t live_units) { return live_units + kGarbageUnitsMin <= kChunkUnits; }

// What the upkeep agents of one process have done since its start.
struct UpkeepFigures {
  uint64_t items_moved = 0;
  uint64_t bytes_moved = 0;
  uint64_t chunks_cleaned = 0;
  uint64_t items_evicted = 0;
  uint64_t chunks_evicted = 0;
  uint64_t chunks_copied = 0;  // by the repairer
  uint64_t keys_removed = 0;   // of lost items
};

// Numbers are varints.
void AppendFigures(std::string& to, const UpkeepFigures& figures);
bool TakeFigures(std::string_view& from, UpkeepFigures* figures);

// Asks for chunks that are sealed and have items, in the order of their live units, only those that
// may be worth a look, or all of them in the order in which they were sealed; from that rank on,
// and at that rank from that chunk on.
//   flags 1, rank, chunk, figures
struct VictimsRequest {
  bool by_age = false;
  uint64_t from_rank = 0;
  uint32_t from_chunk = 0;
  bool found_nothing = false;  // the cleaner's last pass over all of them has gained nothing
  UpkeepFigures figures = {};
};

struct Victim {
  uint32_t chunk = 0;
  uint8_t gen = 0;
  uint32_t live_units = 0;
  uint64_t sealed_index = 0;
};

// How many chunks more are to become free, and if there are any, the first victims: kVictimsMax of
// them, if there are so many.
//   missing, then of each to the end: chunk, gen, live units, sealed index
inline constexpr size_t kVictimsMax = 1024;
struct Victims {
  uint32_t missing = 0;
  std::vector<Victim> victims;
};

void EncodeVictimsRequest(const VictimsRequest& request, std::string& to);
bool DecodeVictimsRequest(std::string_view from, VictimsRequest* request);
void EncodeVictims(const Victims& victims, std::string& to);
bool DecodeVictims(std::string_view from, Victims* victims);

}  // namespace skep::pool
