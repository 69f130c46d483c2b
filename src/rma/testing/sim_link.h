// sim_link.h: a connection of the simulated fabric, and what is under way on it (sim_fabric.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/network.h"
#include "rma/fabric.h"

namespace skep::rma {

class SimEndpoint;

inline constexpr uint32_t kLineBytes = 64;

// A Post that is under way.
struct SimPost {
  uint64_t token = 0;
  std::vector<Operation> operations = {};
  uint64_t bytes = 0;                   // of all operations
  std::vector<std::byte> written = {};  // the bytes of the writes, one behind the other
  uint64_t seed = 0;                    // of the division into groups
  uint32_t unit_bytes = kLineBytes;     // what is read or written whole
  uint32_t groups = 1;
  uint32_t groups_left = 0;
  bool is_over = false;                 // its caller has been told: `local` is the caller's again
  std::vector<std::byte> nowhere = {};  // where an abandoned one reads to

  void Abandon() {
    nowhere.resize(bytes);
    std::byte* to = nowhere.data();
    for (Operation& operation : operations) {
      operation.local = to;
      to += operation.bytes;
    }
  }

  // The group that has this unit of the operation's region.
  uint32_t GroupOf(size_t operation, uint64_t unit) const {
    uint64_t hash = seed + (unit * 0x9e3779b97f4a7c15 ^ operation * 0xc2b2ae3d27d4eb4f);
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9;
    return static_cast<uint32_t>((hash >> 32) * groups >> 32);
  }
};

// A part of an operation that lies within one line.
struct LinePart {
  uint32_t region = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::byte* local = nullptr;
};

struct SimLink {
  enum class State : uint8_t { kConnecting, kStranger, kJoined, kLeft };

  // A line that was read before, which a fabric that is not coherent may give once more.
  struct Copy {
    uint64_t read_ns = 0;
    std::array<std::byte, kLineBytes> bytes = {};
  };

  struct Side {
    SimEndpoint* endpoint = nullptr;  // null: it was destroyed
    PeerId peer = 0;                  // what this side calls the other one
    State state = State::kStranger;
    std::map<uint64_t, uint64_t> calls = {};  // tokens of those without a reply, by number
    std::vector<std::shared_ptr<SimPost>> posts = {};
    std::map<std::pair<uint32_t, uint64_t>, Copy> copies = {};  // by region and line
    uint64_t last_arrival_ns = 0;                               // of what is sent to this side
    uint64_t wire_free_ns = 0;                                  // of its Posts
    size_t unsent_bytes = 0;  // of messages that this side's endpoint has not taken
    bool is_deaf = false;     // a message to this side was lost
    uint64_t fence_ns = 0;    // from then on nothing writes here; 0: nobody has fenced
  };

  // The side that connected, and the one that listens.
  std::array<Side, 2> sides;
  const Address address;
  bool is_cut = false;

  // Nothing that is under way is lost.
  bool IsSound() const {
    return !is_cut && sides[0].state != State::kLeft && sides[1].state != State::kLeft;
  }
};

}  // namespace skep::rma
