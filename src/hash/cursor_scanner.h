// cursor_scanner.h: a step of kWalk.
//
//   cursor      partition, 8 bits | position in its table, 47 bits (position.h)
//
// A step goes on at the cursor: the chain that has this position now gives those of its keys that
// are at or above it, in the order of positions; the cursor is then where it stopped, or the end of
// the chain's interval. Keys of one position come together, so a position is done or it is not.
//
// Why a key that stays comes exactly once. Its partition and position never change (position.h).
// The cursor only rises, and passes the key's place in the step in which the key's chain gives it:
// a chain has all keys of its interval, and nothing of the interval is passed without having been
// looked at. Why none comes twice, even if it was deleted and stored again: it would have to be
// above the cursor, and is below.
//
// One partition is locked at a time, for kChainsALock chains, a key's bytes each: a microsecond or
// two if they are keys only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/batch_writer.h"
#include "hash/core.h"

namespace skep::hash {

// Owner: one execution of one batch.
class CursorScanner {
 public:
  CursorScanner(const Core& core, const Batch& batch, uint32_t slot, BatchWriter& out)
      : core_(core), batch_(batch), request_(batch.requests()[slot]), slot_(slot), out_(out) {}

  // Fills in the outcome. The request is well-formed.
  void Scan();

 private:
  static constexpr int kChainsALock = 8;

  struct Found {
    Position position;
    Pair pair;
  };

  bool HasEnough() const {
    return items_ >= std::max(1u, request_.limit) || bytes_ > batch_.scan_bytes_max();
  }
  Position WalkChain(const Table& table, Position from, uint64_t now_ms);
  void Give(const Pair& pair);

  const Core& core_;
  const Batch& batch_;
  const Request& request_;
  const uint32_t slot_;
  BatchWriter& out_;
  std::vector<Found> found_;
  uint64_t items_ = 0;
  uint64_t bytes_ = 0;
  uint64_t visits_ = 0;
};

}  // namespace skep::hash
