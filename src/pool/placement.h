// placement.h: which memory servers a chunk gets its frames of.
//
// Servers take turns by weight: a server's weight is the share of its frames that are free, but no
// server gets more than kTurnsMax times as many turns as the average, so that one that has just
// come, and is empty, gets more chunks than the others and not all of them. Replicas lie on
// different servers.
//
// Only the hash server chooses, and the log tells what it chose: this is no part of the state.
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "pool/chunks.h"

namespace skep::pool {

class Placement {
 public:
  static constexpr double kTurnsMax = 2;

  // `chunks` outlives it.
  explicit Placement(const Chunks& chunks) : chunks_(chunks) {}

  enum class Problem : uint8_t {
    kFull,  // there are no free frames of enough servers
    kAway,  // there are, on servers that are to be avoided
  };
  struct Choice {
    ChunkFrames frames = kNoFrames;
    Problem problem = Problem::kFull;  // if there is no frame
    explicit operator bool() const { return frames[0] != kNoFrame; }
  };
  // Frames of `replicas` servers, or of as many as are open and not in `avoid`, if those are fewer
  // than that; none of `taken`. Cost: linear in servers, and in frames where few are free.
  Choice Choose(size_t replicas, const std::set<uint32_t>& avoid, const std::set<uint32_t>& taken);

 private:
  std::optional<uint32_t> ChooseFrame(const std::function<bool(const Chunks::Server&)>& may,
                                      const std::set<uint32_t>& taken);

  const Chunks& chunks_;
  std::map<uint32_t, double> credits_;  // by server
};

}  // namespace skep::pool
