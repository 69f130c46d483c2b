#include "pool/copy_plan.h"

#include <algorithm>

namespace skep::pool {
size_t CopyPlan::Wanted() const { return std::min<size_t>(replicas_, chunks_.CountOpen()); }

size_t CopyPlan::OpenFrames(const Chunks::Chunk& chunk) const {
  return static_cast<size_t>(std::ranges::count_if(chunk.frames, [this](uint32_t frame) {
    return frame != kNoFrame && chunks_.ServerOf(frame).is_open();
  }));
}

bool CopyPlan::IsLive(uint32_t to, const Copy& copy) const {
  if (copy.is_entered) return true;
  const Chunks::Chunk& at = chunks_.all()[to];
  return at.state == Chunks::State::kLeased && at.client == copy.client &&
         chunks_.all()[copy.chunk].gen == copy.gen;
}

std::optional<CopyPlan::Copy> CopyPlan::Of(uint32_t to) const {
  const auto at = copies_.find(to);
  return at != copies_.end() && IsLive(to, at->second) ? std::optional(at->second) : std::nullopt;
}

std::vector<uint32_t> CopyPlan::TargetsOf(uint32_t client) const {
  std::vector<uint32_t> targets;
  for (const auto& [to, copy] : copies_) {
    if (copy.client == client && !copy.is_entered && IsLive(to, copy)) targets.push_back(to);
  }
  return targets;
}

bool CopyPlan::IsUnderWay(uint32_t chunk) const {
  return std::ranges::any_of(copies_, [&](const auto& copy) {
    return copy.second.chunk == chunk && IsLive(copy.first, copy.second);
  });
}

// The next chunk behind that which was found last.
template <typename Is>
std::optional<uint32_t> CopyPlan::Look(uint32_t& next, Is is_wanted) const {
  const auto count = static_cast<uint32_t>(chunks_.all().size());
  for (uint32_t i = 0; i < std::min(count, kChunksAtOnce); ++i) {
    const uint32_t chunk = next % count;
    next = chunk + 1;
    const Chunks::Chunk& at = chunks_.all()[chunk];
    if (at.state == Chunks::State::kSealed && !at.is_lost() && is_wanted(chunk, at)) return chunk;
  }
  return std::nullopt;
}

std::optional<uint32_t> CopyPlan::FrameFor(const Chunks::Chunk& chunk,
                                           const std::set<uint32_t>& taken) {
  std::set<uint32_t> its_servers;
  for (const uint32_t frame : chunk.frames) {
    if (frame != kNoFrame) its_servers.insert(chunks_.ServerOf(frame).range.server);
  }
  const Placement::Choice choice = placement_.Choose(1, its_servers, taken);
  return choice ? std::optional(choice.frames[0]) : std::nullopt;
}

std::optional<CopyPlan::Copy> CopyPlan::Next(const std::set<uint32_t>& taken) {
  std::erase_if(copies_, [this](const auto& copy) { return !IsLive(copy.first, copy.second); });
  if (vain_version_ != chunks_.version()) vain_ = 0;
  vain_version_ = chunks_.version();
  if (vain_ >= chunks_.all().size() && ++rests_ % kRests != 0) return std::nullopt;
  const size_t wanted = Wanted();
  const auto chunk = Look(next_copy_, [&](uint32_t at, const Chunks::Chunk& it) {
    return it.items > 0 && OpenFrames(it) < wanted && !IsUnderWay(at);
  });
  vain_ = chunk ? 0 : vain_ + kChunksAtOnce;
  if (!chunk) return std::nullopt;
  const auto frame = FrameFor(chunks_.all()[*chunk], taken);
  if (!frame || chunks_.ServerOf(*frame).free <= KeptOf(chunks_.ServerOf(*frame))) {
    return std::nullopt;
  }
  return Copy{.chunk = *chunk, .gen = chunks_.all()[*chunk].gen, .frame = *frame};
}

uint64_t CopyPlan::CountUnderReplicated() const {
  const size_t wanted = Wanted();
  uint64_t count = 0;
  for (uint32_t i = 0; i < chunks_.all().size(); ++i) {
    const Chunks::Chunk& chunk = chunks_.all()[i];
    const bool is_filled = chunk.state == Chunks::State::kLeased && !Of(i);
    const bool counts = chunk.items > 0 || is_filled;
    if (counts && !chunk.is_lost() && OpenFrames(chunk) < wanted) ++count;
  }
  return count;
}

std::optional<uint32_t> CopyPlan::FindShedding() {
  const auto is_draining = [this](uint32_t frame) {
    return frame != kNoFrame && chunks_.ServerOf(frame).state == Chunks::ServerState::kDraining;
  };
  const size_t wanted = std::max<size_t>(Wanted(), 1);
  return Look(next_shedding_, [&](uint32_t, const Chunks::Chunk& it) {
    return std::ranges::any_of(it.frames, is_draining) && OpenFrames(it) >= wanted;
  });
}

}  // namespace skep::pool
