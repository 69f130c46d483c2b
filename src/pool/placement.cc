#include "pool/placement.h"

#include <algorithm>
#include <vector>

namespace skep::pool {
namespace {

double FreeShare(const Chunks::Server& server) {
  return static_cast<double>(server.free) / server.range.count;
}

// The weight of one of `count` servers, so that it gets no more than its turns; `others` is the
// weight of the other ones together.
double CappedWeight(double weight, double others, size_t count) {
  const double turns_max = Placement::kTurnsMax / static_cast<double>(count);
  return turns_max >= 1 ? weight : std::min(weight, others * turns_max / (1 - turns_max));
}

}  // namespace

Placement::Choice Placement::Choose(size_t replicas, const std::set<uint32_t>& avoid,
                                    const std::set<uint32_t>& taken) {
  const size_t wanted = std::min<size_t>(replicas, chunks_.CountOpen());
  Choice choice;
  std::set<uint32_t> chosen;
  const auto may = [&](const Chunks::Server& server) {
    return server.is_open() && !avoid.contains(server.range.server) &&
           !chosen.contains(server.range.server);
  };
  for (size_t i = 0; i < wanted; ++i) {
    const auto frame = ChooseFrame(may, taken);
    if (!frame) {
      choice.frames = kNoFrames;
      if (!avoid.empty()) choice.problem = Problem::kAway;
      return choice;
    }
    choice.frames[i] = *frame;
    chosen.insert(chunks_.ServerOf(*frame).range.server);
  }
  return choice;
}

// The server whose turn it is gives what all have got.
std::optional<uint32_t> Placement::ChooseFrame(
    const std::function<bool(const Chunks::Server&)>& may, const std::set<uint32_t>& taken) {
  struct Candidate {
    uint32_t server;
    uint32_t frame;
    double share;
  };
  std::vector<Candidate> candidates;
  double shares = 0;
  for (const Chunks::Server& server : chunks_.servers()) {
    if (!may(server)) continue;
    const auto frame =
        chunks_.FindFreeFrame(server, [&](uint32_t at) { return taken.contains(at); });
    if (!frame) continue;
    candidates.push_back({server.range.server, *frame, FreeShare(server)});
    shares += FreeShare(server);
  }
  if (candidates.empty()) return std::nullopt;
  double sum = 0;
  const Candidate* best = &candidates.front();
  for (const Candidate& at : candidates) {
    const double weight = CappedWeight(at.share, shares - at.share, candidates.size());
    credits_[at.server] += weight;
    sum += weight;
    if (credits_[at.server] > credits_[best->server]) best = &at;
  }
  credits_[best->server] -= sum;
  return best->frame;
}

}  // namespace skep::pool
