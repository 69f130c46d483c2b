// leaf_session.h: a client's connection to a server that shares its leaves, made again when it has
// broken.
//
// A server that has died. Over `mem` its memory stays mapped here, as it was. So after the reads of
// a call the session looks whether the connection is still there, and drops what was read if not.
//   (1) The kernel closes the connections of a process before its parent learns of its end
//       (wait(2)), and whoever starts the next server has waited for that: a supervisor, a shell.
//       A server that stops by itself ends its share before another one can have its address or
//       its directory (leaf_share.h).
//   (2) So if the look finds the connection, no other server has answered a write before it. All
//       reads came before the look, and hence before any such write.
// Over `tcp` a server that has died reads nothing, and whatever it read before lies within the
// call, as the reads were asked for within it.
//
// Another server at the same place is told by its number (ServerHello::instance): what is read has
// to be the memory of the server that the client's calls go to.
//
// Owner: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "netindex/leaves/leaf_reader.h"
#include "rma/fabric.h"
#include "skep/status.h"

namespace skep::leaves {

class LeafSession {
 public:
  // After a connection has ended, or could not be made, the next try is so much later.
  static constexpr uint64_t kPauseMs = 250;
  // A Read is held up so long at most by making a connection.
  static constexpr int kConnectMs = 50;

  // `fabric` and `clock` must outlive it. `timeout_ms`: the longest wait for the answer to a read.
  //   kNotSupported  the fabric is not coherent (Capabilities::coherent)
  //   kIo            as Fabric::Open
  static Result<std::unique_ptr<LeafSession>> Make(rma::Fabric& fabric, Address address,
                                                   int timeout_ms, Clock& clock);

  // Connects, and waits for it.
  //   kUnavailable   nobody shares leaves there
  //   kNotSupported  they are none that this code can read
  Status Connect() { return ConnectWithin(timeout_ms_); }

  // Answers what it can of the questions (leaf_reader.h); kAsk for the others, and for all if there
  // is no connection to the server `instance`. A connection that has ended is made again.
  void Read(std::span<LeafQuestion> questions, uint64_t instance);

  // Returns the sums over all connections that the session has had.
  LeafReaderStatistics statistics() const;

 private:
  LeafSession(Address address, int timeout_ms, Clock& clock)
      : address_(std::move(address)), timeout_ms_(timeout_ms), clock_(clock) {}

  Status ConnectWithin(int timeout_ms);
  bool TakeEvents(int timeout_ms);
  void TakeEvent(const rma::Event& event);
  void End();
  bool TryRead(std::span<LeafQuestion> questions);
  bool IsThere();

  const Address address_;
  const int timeout_ms_;
  Clock& clock_;
  std::unique_ptr<rma::Endpoint> endpoint_;
  rma::PeerId peer_ = 0;              // 0: none
  std::optional<LeafReader> reader_;  // while the peer is joined
  bool is_readable_ = false;          // its board is one that the reader knows
  uint64_t next_try_ms_ = 0;
  LeafReaderStatistics before_;  // of the readers before this one
};

}  // namespace skep::leaves
