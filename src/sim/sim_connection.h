// sim_connection.h: a simulated connection: two pipes and the state of each side.
//
// Follows Linux's TCP where a server can tell the difference:
//   C1  A side that closes with bytes unread, or is sent bytes after it closed, resets the other.
//   C2  A reset loses what is in flight. Bytes that have arrived can still be read; then Read or
//       Write reports the error once, as -ECONNRESET; afterwards Read is at its end and Write is
//       -EPIPE.
//   C3  A side that read the peer's end learns of a reset only from Write, as -EPIPE.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/random.h"
#include "sim/sim_clock.h"
#include "sim/sim_pipe.h"
#include "sim/trace.h"

namespace skep {

struct SimNetworkOptions {
  // Size of the buffer of each direction of a connection: a Write beyond it is -EAGAIN.
  size_t buffer_bytes = 64 * 1024;
  // Every segment, end, reset and new connection arrives after a seeded time in this range.
  uint64_t delay_ns_min = 5'000;
  uint64_t delay_ns_max = 200'000;
  // Writes are cut into segments of 1 to this many bytes, each delayed on its own.
  size_t segment_bytes_max = 16 * 1024;
  // How many of a million writes take less than there is room for.
  uint32_t short_writes_ppm = 100'000;
  // How many of a million writes reset the connection instead.
  uint32_t resets_ppm = 0;
  // How many of a million writes part the ends of their connection first: for 1 to partition_ns_max
  // nothing leaves in either direction.
  uint32_t partitions_ppm = 0;
  uint64_t partition_ns_max = 5'000'000;
  // How many of a million partitions end with a reset.
  uint32_t partition_resets_ppm = 0;
  // How many of a million datagrams are lost, and how many come twice. Each has a delay of its own,
  // so they overtake each other.
  uint32_t datagram_losses_ppm = 0;
  uint32_t datagram_doubles_ppm = 0;
};

// What all parts of a simulated network share.
struct SimNetworkContext {
  SimClock& clock;
  Trace& trace;
  SeededRandom random;
  SimNetworkOptions options;

  // Draws the instant at which something sent now arrives. The caller leaves the reminder.
  uint64_t DrawArrival();
};

class SimConnection {
 public:
  enum Side : uint8_t { kClient = 0, kServer = 1 };

  SimConnection(SimNetworkContext& context, uint64_t id);

  ssize_t Read(Side side, char* to, size_t bytes);
  ssize_t Write(Side side, std::string_view bytes);
  void FinishSending(Side side);
  // Called when the side's stream is destroyed.
  void Close(Side side);
  // Makes both sides lose the connection, each after its own delay.
  void Reset();

  bool Readable(Side side) const;
  bool Writable(Side side) const;
  bool Broken(Side side) const;

  uint64_t id() const { return id_; }

 private:
  struct End {
    SimPipe sent;
    bool closed = false;
    bool reset_told = false;
    uint64_t reset_ns = SimPipe::kNever;  // when this side learns of it
  };

  static Side Other(Side side) { return side == kClient ? kServer : kClient; }
  SimPipe& Received(Side side) { return ends_[Other(side)].sent; }
  const SimPipe& Received(Side side) const { return ends_[Other(side)].sent; }
  uint64_t Now() const { return context_.clock.MonotonicNs(); }
  bool KnowsReset(Side side) const { return ends_[side].reset_ns <= Now(); }
  bool AtEnd(Side side) const { return Received(side).Ended(Now()); }
  uint64_t DrawArrival();
  void Part();
  ssize_t TellReset(Side side, ssize_t afterwards);
  void ResetSide(Side side);
  size_t DrawWriteSize(size_t wanted, size_t room);
  void SendSegments(Side side, std::string_view bytes);

  SimNetworkContext& context_;
  uint64_t id_;
  std::array<End, 2> ends_;
  uint64_t parted_until_ns_ = 0;
};

}  // namespace skep
