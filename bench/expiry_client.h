// expiry_client.h: sends commands to a server at a steady pace, and measures how long each takes.
//
// One thread serves all connections. The commands were chosen beforehand (op_stream.h); while it
// runs, the client allocates nothing once its buffers have grown.
//
//   closed loop  each connection has `depth` commands under way: a reply makes room for the next
//                command. A command's latency counts from when it was sent. A server that stalls
//                gets fewer commands, so a stall is one slow command a slot, however long it is.
//   open loop    `rate` commands a second on all connections together, each at an instant fixed in
//                advance. A command's latency counts from that instant, whether or not it could be
//                sent then: a stall slows all commands that were meant to be sent during it.
//
// The client's own lateness (its thread woke late, or replies kept it busy) is part of an open
// loop's latency, and reported separately.
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
  // In an open loop: commands under way on one connection; more wait for their turn.
  static constexpr uint32_t kInFlightMax = 1 << 16;

  struct Pace {
    uint32_t connections = 1;  // > 0
    uint32_t depth = 1;        // 1..kInFlightMax; in a closed loop
    uint64_t rate = 0;         // commands a second; 0: a closed loop
  };

  // Sends the reads and updates of `stream` (not empty), again and again. The stream and `values`
  // must outlive the client. Errors: as StreamConnection::Connect.
  static Result<ExpiryClient> Connect(const std::string& host, uint16_t port, const Pace& pace,
                                      const OpStream& stream, const ValuePool& values);
  ExpiryClient(ExpiryClient&&) noexcept;
  ~ExpiryClient();

  // Sends until the timeline ends, then waits for the last replies. A GET must find a value of the
  // right size, and a SET must succeed; any other reply counts as an error in the tally.
  //   kUnavailable, kIo  a connection broke, or was silent for StreamConnection::kTimeoutMs
  //   kCorrupt           the server sent bytes that are not RESP
  Status Run(const ExpiryTimeline& timeline, ExpiryMeasured& measured);

 private:
  class Impl;
  explicit ExpiryClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace skep::bench
