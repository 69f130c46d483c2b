// leaf_session.h: a client's connection to a server that shares its leaves, made again when it has
// broken.
//
// A server that has died. Over `mem` its memory stays as it was, mapped here. So after the reads of
// a call the session looks whether the connection is still there, and forgets what was read if not.
// The kernel closes a process's connections before its parent learns of its end, and whoever starts
// the next server has waited for that (systemd, a shell): so what counts was read before any other
// server could answer a write.
//
// Another server at the same place is told by its number: the one that the client's calls go to has
// to be the one whose memory is read.
//
// Owner: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "netindex/leaves/leaf_reader.h"
#include "netindex/leaves/share_place.h"
#include "rma/fabric.h"
#include "skep/status.h"

namespace skep::leaves {

class LeafSession {
 public:
  // The pause after a connection has ended, or could not be made, before the next try.
  static constexpr uint64_t kPauseMs = 100;
  // How long a Read may be held up by making one.
  static constexpr int kConnectMs = 50;

  // `fabric` and `clock` must outlive it.
  //   kIo  as Fabric::Open
  static Result<std::unique_ptr<LeafSession>> Make(rma::Fabric& fabric, Address address,
                                                   int timeout_ms, Clock& clock);

  // Connects, and waits for it.
  //   kUnavailable   nobody shares leaves there
  //   kNotSupported  they are none that this code can read
  Status Connect();

  // Answers what it can of the questions (leaf_reader.h); kAsk for the others, and for all if there
  // is no connection to the server `instance`. A connection that has ended is made again meanwhile.
  void Read(std::span<LeafQuestion> questions, uint64_t instance);

  // Of all connections.
  LeafReaderStatistics statistics() const;

 private:
  LeafSession(Address address, int timeout_ms, Clock& clock)
      : address_(std::move(address)), timeout_ms_(timeout_ms), clock_(clock) {}

  void Begin(int timeout_ms);
  bool TakeEvents(int timeout_ms);
  void TakeEvent(const rma::Event& event);
  void End();
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
