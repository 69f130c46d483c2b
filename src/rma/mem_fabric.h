// mem_fabric.h: a fabric of one machine: the memory of peers is mapped.
//
//   connecting endpoint                                listening endpoint, "unix:PATH"
//     hello, descriptors of its regions ------------->   maps them
//     maps them <---------------------------------------  hello, descriptors of its regions
//     Post: loads and stores of the peer's memory, no code of the peer, no system call
//     Call, Reply: messages over the socket (message_stream.h)
//
// A region that peers may only read is sent as a descriptor that cannot be mapped to write. Peers
// that may write a region are trusted with its bytes, not with its size: see shared_memory.h.
//
// Post copies at once. It asks for the lines of up to kAhead operations before it copies the first
// one, so that their cache misses overlap; its kDone is handed out by the next Poll without a
// system call. Messages are looked at when nothing else is there, something is to be sent, or 64
// Polls have gone by without.
//
// What is written comes to lie on huge pages, whatever the kernel's setting (lazy_huge_pages.h).
//
// Fence: mem_fence.h. Both ends may be in one process, of which one can wait for the other to poll.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/network.h"
#include "rma/fabric.h"

namespace skep::rma {

class MemFabric final : public Fabric {
 public:
  // SocketNetwork(), or what passes its streams, listeners and pollers on. Both outlive its
  // endpoints.
  explicit MemFabric(Network& network = SocketNetwork(), Clock& clock = SystemClock())
      : network_(network), clock_(clock) {}

  // Also kIo: descriptors that can only be read need /proc.
  Result<std::unique_ptr<Endpoint>> Open(const EndpointOptions& options) override;

 private:
  Network& network_;
  Clock& clock_;
};

}  // namespace skep::rma
