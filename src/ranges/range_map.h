// range_map.h: which ranges of an ordered keyspace are where.
//
// It is a node of the coordinator, /skep-ranges/NAME, as lines of text:
//
//   skep-ranges 1
//   0x pool:users-a         the lower bound in hexadecimal (base/hex.h); where the range is
//   0x6d pool:users-b
//   0x74 10.0.0.7:6379
//
// A range has the keys from its lower bound to that of the next one. Where it is: "pool:NAME", a
// pool of the same coordinator (docs/pool.md), or "HOST:PORT", the keyspace 0 of a skep-server.
//
// The map is made when there are no data yet, and stays: nobody moves keys when it is changed, and
// clients read it when they connect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/coordinator.h"
#include "skep/status.h"

namespace skep::ranges {

inline constexpr size_t kRangesMax = 256;
inline constexpr std::string_view kPoolTarget = "pool:";

struct RangeMap {
  struct Entry {
    std::string lower;
    std::string target;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;

  //   kInvalidArgument  no entry or too many, the first lower bound is not empty, they do not rise
  //                     or are too long, a target is none or is there twice
  Status Check() const;
  std::string Encode() const;
  // False: the bytes are no map that Check() takes.
  static bool Decode(std::string_view bytes, RangeMap* map);
  friend bool operator==(const RangeMap&, const RangeMap&) = default;
};

// Whether a map can have this name.
bool IsMapName(std::string_view name);

// Both wait for the coordinator, for so long.
//   kUnavailable      it does not answer
//   kCorrupt          the node is there, and holds no map
//   kInvalidArgument  Read: there is no such map. Write: there is one, and `replaces` is not given
//   kIo               the coordinator refuses
Result<RangeMap> ReadRangeMap(Coordinator& coordinator, std::string_view name, uint32_t timeout_ms);
Status WriteRangeMap(Coordinator& coordinator, std::string_view name, const RangeMap& map,
                     bool replaces, uint32_t timeout_ms);

}  // namespace skep::ranges
