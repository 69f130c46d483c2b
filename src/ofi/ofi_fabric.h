// ofi_fabric.h: a fabric of libfabric: reads and writes are its RMA, messages its messages.
//
//   connecting endpoint                                 listening endpoint, HOST:PORT
//     over a socket: hello, name, keys -------------->    opens a link (ofi_link.h)
//     opens a link             <----------------------    hello, name, keys
//     Post: fi_read, fi_writemsg of the peer's memory
//     Call, Reply: packets (packet_channel.h) of fi_send and fi_recv, with the messages of
//                  message_stream.h in them
//
// The provider is named, and its code path is everybody's: tcp (libfabric makes it "tcp;ofi_rxm"),
// shm, verbs, efa, cxi. It gets what it wants of registrations (FI_MR_VIRT_ADDR, PROV_KEY, LOCAL,
// ALLOCATED, ENDPOINT). Addresses are those of sockets; of `shm` paths, "unix:PATH". Where a
// provider's own addresses are IP's, a link has that of the socket's: who reached the one reaches
// the other, by the same NIC. An endpoint uses one NIC, that of its first peer.
//
// F1 is as good as the provider. A NIC moves aligned words whole. `shm` copies with memcpy. `tcp`
// moves bytes of a stream: a word that two packets share may be seen half old and half new, if it
// is being written. Whoever reads what others write has to know it by a checksum there, which
// the pool's items have; its words have none.
//
// Progress: libfabric's software does nothing unless it is called. Poll calls it, and where there
// are regions a thread does while nobody polls (stand_in.h). A Poll waits at the descriptor of the
// completion queue, too; where the provider has none (`shm`), and while something waits for the
// provider to have room, it looks again each millisecond, after kSpins looks at once.
//
// Fence: ofi_link.h; true at once.
#pragma once

#include <memory>
#include <string>

#include "rma/fabric.h"

namespace skep::rma {

class OfiFabric final : public Fabric {
 public:
  // `provider` is libfabric's name of it.
  //   kNotSupported  there is no such provider here, or it lacks something that is needed
  static Result<std::unique_ptr<OfiFabric>> Make(const std::string& provider);

  Result<std::unique_ptr<Endpoint>> Open(const EndpointOptions& options) override;

 private:
  OfiFabric(std::string provider, uint64_t post_bytes_max)
      : provider_(std::move(provider)), post_bytes_max_(post_bytes_max) {}

  const std::string provider_;
  const uint64_t post_bytes_max_;
};

}  // namespace skep::rma
