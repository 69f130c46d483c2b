// cursor_scanner.h: executes one step of kWalk.
//
//   cursor      partition, 8 bits | position in its table, 47 bits (position.h)
//
// A step goes on at the cursor: the chain that has this position now gives those of its keys that
// are at or above it, in the order of positions; the cursor is then where the step stopped, or the
// end of the chain's interval. All keys of one position come in one step.
//
// Why a key that stays is given exactly once. Its partition and position never change (position.h).
// The cursor only rises, and passes the key's position in the step in which the key's chain gives
// it: a chain has all keys of its interval, and the cursor passes no part of an interval whose keys
// were not looked at. A key that was deleted and stored again does not come twice either: to come
// again it would have to be above the cursor, and it is below.
//
// One partition is locked at a time, for kChainsALock chains, whose keys and wanted values are
// copied: a microsecond or two if only keys are wanted.
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

  // Fills in the outcome. The request must be well-formed.
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
