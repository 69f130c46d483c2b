// tcp_fabric.h: a fabric of any network: everything is messages (message_stream.h).
//
//   caller: Post(64 reads) -- kPost (post_message.h) --> target: its Poll copies from its regions
//   caller: copies, kDone <-- kPosted ------------------ into the answer
//
// Many operations are one message, many messages one write: a system call costs more than hundreds
// of copies. The target carries out a peer's Posts in the order in which they came.
//
// Flow: what a Post writes goes into the stream's buffer, and what it reads comes back through the
// target's. A Post waits with its caller while half of the caller's unsent_bytes_max is in the
// first or half of the target's in the second one, so that neither side is disconnected for its
// Posts.
//
// Fence: a target writes only what it reads from its peer's stream, which Disconnect closes.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/network.h"
#include "rma/fabric.h"

namespace skep::rma {

class TcpFabric final : public Fabric {
 public:
  // Both outlive its endpoints. Connect of an endpoint is as quick as the network's.
  TcpFabric(Network& network, Clock& clock) : network_(network), clock_(clock) {}

  Result<std::unique_ptr<Endpoint>> Open(const EndpointOptions& options) override;

 private:
  Network& network_;
  Clock& clock_;
};

}  // namespace skep::rma
