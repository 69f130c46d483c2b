#include "pool/placement.h"

#include <algorithm>

namespace skep::pool {
namespace {

bool IsOpen(const Chunks::Server& server) { return server.state == Chunks::ServerState::kOpen; }

double FreeShare(const Chunks::Server& server) {
  return static_cast<double>(server.free) / server.range.count;
}

}  // namespace

Placement::Choice Placement::Choose(size_t replicas, const std::set<uint32_t>& avoid,
                                    const std::set<uint32_t>& taken) {
  const size_t wanted = std::min<size_t>(replicas, chunks_.CountOpen());
  Choice choice;
  std::set<uint32_t> chosen;
  const auto may = [&](const Chunks::Server& server) {
    return IsOpen(server) && !avoid.contains(server.range.server) &&
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

double Placement::WeightOf(const Chunks::Server& server, double average) const {
  return std::min(FreeShare(server), kShareMax * average);
}

// The server whose turn it is gets what all have got.
std::optional<uint32_t> Placement::ChooseFrame(
    const std::function<bool(const Chunks::Server&)>& may, const std::set<uint32_t>& taken) {
  std::map<uint32_t, uint32_t> frames;  // by server
  double shares = 0;
  for (const Chunks::Server& server : chunks_.servers()) {
    if (!may(server)) continue;
    const auto frame =
        chunks_.FindFreeFrame(server, [&](uint32_t at) { return taken.contains(at); });
    if (!frame) continue;
    frames[server.range.server] = *frame;
    shares += FreeShare(server);
  }
  if (frames.empty()) return std::nullopt;
  const double average = shares / static_cast<double>(frames.size());
  double sum = 0;
  uint32_t best = frames.begin()->first;
  for (const auto& [server, frame] : frames) {
    const double weight = WeightOf(*chunks_.FindServer(server), average);
    credits_[server] += weight;
    sum += weight;
    if (credits_[server] > credits_[best]) best = server;
  }
  credits_[best] -= sum;
  return frames[best];
}

}  // namespace skep::pool
