#include "pool/free_space.h"

#include <algorithm>
#include <tuple>

namespace skep::pool {

uint32_t FreeSpace::ReserveOf(uint32_t chunks) {
  if (chunks < 4) return 0;
  return chunks < 16 ? 1 : std::clamp(chunks / 128, 2u, 16u);
}

uint32_t FreeSpace::WantedOf(uint32_t chunks) {
  if (chunks == 0) return 0;
  return ReserveOf(chunks) + std::max(1u, chunks / 64);
}

bool FreeSpace::MayLease(LeaseFor purpose, size_t entered) const {
  const uint32_t kept = purpose == LeaseFor::kCleaning ? 0 : ReserveOf(chunk_count());
  return free_count() > kept + entered;
}

ReplyCode FreeSpace::Refusal(LeaseFor purpose) const {
  if (!context_.state.chunks().empty().empty()) return ReplyCode::kCleaning;
  const bool has_hope =
      !found_nothing_ || context_.state.chunks().live_units() < found_nothing_units_;
  const bool is_at_work =
      has_hope && context_.now_ns() <= heard_ns_ + kCleanerLeases * context_.times.lease_ns;
  return is_at_work && purpose == LeaseFor::kWrites ? ReplyCode::kCleaning : ReplyCode::kPoolFull;
}

uint32_t FreeSpace::Missing() const {
  const Chunks& chunks = context_.state.chunks();
  const size_t coming = free_count() + chunks.empty().size();
  const uint32_t wanted = std::max(WantedOf(chunk_count()), context_.free_chunks_min);
  return coming >= wanted ? 0 : wanted - static_cast<uint32_t>(coming);
}

std::vector<Victim> FreeSpace::Choose(const VictimsRequest& request) const {
  std::vector<Victim> found;
  const auto& all = context_.state.chunks().all();
  const auto rank = [&](const Victim& victim) {
    return std::tuple(request.by_age ? victim.sealed_index : victim.live_units, victim.chunk);
  };
  const auto begin = std::tuple(request.from_rank, request.from_chunk);
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Chunks::Chunk& chunk = all[i];
    const bool may_gain = request.by_age || MayGainBy(chunk.live_units);
    if (chunk.state != Chunks::State::kSealed || chunk.items == 0 || chunk.is_lost() || !may_gain) {
      continue;
    }
    const Victim victim = {.chunk = i,
                           .gen = chunk.gen,
                           .live_units = chunk.live_units,
                           .sealed_index = chunk.sealed_index};
    if (rank(victim) >= begin) found.push_back(victim);
  }
  const size_t count = std::min(found.size(), kVictimsMax);
  const auto end = found.begin() + static_cast<ptrdiff_t>(count);
  std::ranges::partial_sort(found, end, {}, rank);
  found.resize(count);
  return found;
}

bool FreeSpace::TellVictims(std::string_view fields, std::string* answer) {
  VictimsRequest request;
  if (!DecodeVictimsRequest(fields, &request)) return false;
  heard_ns_ = context_.now_ns();
  if (request.found_nothing && !found_nothing_) {
    found_nothing_units_ = context_.state.chunks().live_units();
  }
  found_nothing_ = request.found_nothing;
  figures_ = request.figures;
  const uint32_t missing = Missing();
  EncodeVictims(
      {.missing = missing, .victims = missing == 0 ? std::vector<Victim>() : Choose(request)},
      *answer);
  return true;
}

}  // namespace skep::pool
