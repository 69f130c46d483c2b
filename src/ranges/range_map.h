// range_map.h: which ranges of an ordered keyspace are where.
//
// It is a node of the coordinator, /skep-ranges/NAME, as lines of text:
//
//   skep-ranges 1
//   0x pool:users-a                         the lower bound in hexadecimal (base/hex.h); the place
//   0x6d 10.0.0.7:6379 copying 10.0.0.8:6379
//   0x74 10.0.0.8:6379
//
// A range has the keys from its lower bound to that of the next one. Its place is "pool:NAME", a
// pool of the same coordinator (docs/pool.md), or "HOST:PORT", the keyspace 0 of a skep-server.
//
// A map changes by versioned sets only: its version is the node's. Servers that know the map
// (range_owner.h) move a range by three changes:
//
//   A                  A serves the range
//   A copying B        A only answers reads, and B copies the range
//   B opening A        B has all of it; nobody serves it until A certainly does not
//   B                  B serves it
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/coordinator.h"
#include "skep/status.h"

namespace skep::ranges {

inline constexpr size_t kRangesMax = 256;
inline constexpr std::string_view kPoolTarget = "pool:";

struct RangeMap {
  enum class Phase : uint8_t { kServed, kCopying, kOpening };

  struct Entry {
    std::string lower;
    std::string target;
    Phase phase = Phase::kServed;
    std::string peer = {};  // kCopying: who copies the range; kOpening: who served it
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;
  int32_t version = 0;  // of the node it was read from

  //   kInvalidArgument  no entry or too many, the first lower bound is not empty, they do not rise
  //                     or are too long, a target is none, or a pool or a peer of itself is a peer
  Status Check() const;
  std::string Encode() const;
  // False: the bytes are no map that Check() takes.
  static bool Decode(std::string_view bytes, RangeMap* map);

  // The entry that has the key.
  size_t IndexOf(std::string_view key) const;
  // The upper bound of an entry; nothing: it has all keys from its lower bound on.
  std::optional<std::string_view> UpperOf(size_t index) const;
  // The keys from `lower` to the next border are to be moved from the server that has them to
  // `target`; changes the map by the first of the three steps.
  //   kInvalidArgument  they are there already; one of the two is a pool
  //   kUnavailable      they are being moved
  Status BeginMove(std::string_view lower, std::string_view target);
  // The keys stay where they are.
  //   kInvalidArgument  they are not being copied
  Status CancelMove(std::string_view lower);
  // Makes one entry of neighbours of one target that are served.
  void Merge();

  // Without the version.
  friend bool operator==(const RangeMap& a, const RangeMap& b) { return a.entries == b.entries; }
};

// "", "copying", "opening".
std::string_view NameOf(RangeMap::Phase phase);

// Whether a map can have this name.
bool IsMapName(std::string_view name);

// The node of a map, and the nodes that say which servers there are (range_owner.h).
std::string MapPathOf(std::string_view name);
std::string ServerPathOf(std::string_view name, std::string_view address);

}  // namespace skep::ranges
