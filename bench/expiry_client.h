// expiry_client.h: commands sent to a server at a steady pace, and how long each of them took.
//
// One thread serves all connections. Which commands are sent was decided beforehand (op_stream.h);
// while it runs, the client allocates nothing once its buffers have grown.
//
//   closed loop  each connection has `depth` commands on their way: a reply makes room for the next
//                command. A command's latency counts from when it was sent. A server that stalls is
//                asked less meanwhile, so a stall is one slow command a slot, however long it is.
//   open loop    `rate` commands a second of all connections together, each at an instant fixed in
//                advance. A command's latency counts from that instant, whether or not it could be
//                sent then: a stall is felt by all commands that were meant to be sent during it.
//
// How late the client itself was (its thread woke late, or replies kept it busy) is part of an open
// loop's latency, and told apart as lateness.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/histogram.h"
#include "bench/expiry_timeline.h"
#include "bench/op_stream.h"
#include "bench/ycsb_target.h"
#include "skep/status.h"

namespace skep::bench {

struct ExpiryMeasured {
  std::array<Histogram, kExpiryParts> latency_ns;  // by ExpiryPart
  Histogram late_ns;                               // open loop: sent after it was meant to be
  Tally tally;
};

// Thread safety: none; one owner at a time.
class ExpiryClient {
 public:
  // Of an open loop: commands on their way on one connection; more wait for their turn.
  static constexpr uint32_t kInFlightMax = 1 << 16;

  struct Pace {
    uint32_t connections = 1;  // > 0
    uint32_t depth = 1;        // 1..kInFlightMax; of a closed loop
    uint64_t rate = 0;         // commands a second; 0: a closed loop
  };

  // Reads and updates of `stream` (not empty), again and again. It and `values` outlive the client.
  // Errors: as StreamConnection::Connect.
  static Result<ExpiryClient> Connect(const std::string& host, uint16_t port, const Pace& pace,
                                      const OpStream& stream, const ValuePool& values);
  ExpiryClient(ExpiryClient&&) noexcept;
  ~ExpiryClient();

  // Sends until the timeline ends, then waits for the last replies. A GET must find a value of the
  // right size, a SET must be done; what is not so is an error in the tally.
  //   kUnavailable, kIo  a connection broke, or was silent for StreamConnection::kTimeoutMs
  //   kCorrupt           what the server sent is not RESP
  Status Run(const ExpiryTimeline& timeline, ExpiryMeasured& measured);

 private:
  class Impl;
  explicit ExpiryClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace skep::bench
