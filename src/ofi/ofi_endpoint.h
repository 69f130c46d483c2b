// ofi_endpoint.h: an endpoint of ofi_fabric.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ofi/link_stream.h"
#include "ofi/ofi_domain.h"
#include "ofi/ofi_link.h"
#include "ofi/stand_in.h"
#include "rma/stream_endpoint.h"

namespace skep::rma {

class OfiEndpoint final : public StreamEndpoint {
 public:
  // How often a Poll that waits looks at once for what has no descriptor.
  static constexpr int kSpins = 200;

  OfiEndpoint(const std::string& provider, uint64_t post_bytes_max, const EndpointOptions& options);
  ~OfiEndpoint() override;

  Status Open() { return Begin(); }

  const Capabilities& capabilities() const override { return capabilities_; }
  void Post(PeerId peer, uint64_t token, std::span<const Operation> operations) override;
  bool Fence(PeerId peer) override {
    Disconnect(peer);
    return true;
  }

 private:
  struct OfiPeer final : Peer {
    OfiPeer(std::unique_ptr<Stream> owned, std::unique_ptr<LinkStream> passing)
        : Peer(std::move(owned), *passing), link_stream(std::move(passing)) {}

    std::unique_ptr<LinkStream> link_stream;
    std::unique_ptr<OfiLink> link;
  };

  using StreamEndpoint::Disconnect;

  std::unique_ptr<Peer> NewPeer(std::unique_ptr<Stream> stream) override;
  Status BeforeHello(Peer& peer, Hello& hello) override;
  Status Join(Peer& peer) override;
  void CarryOn() override;
  int BeforeWait(int wait_ms) override;
  Status WaitToWrite(Peer& peer, bool waits) override;
  void EndOperations(Peer& peer) override;

  Status OpenDomain(const Address& local);
  Status OpenLink(OfiPeer& peer);
  Status Check(const OfiPeer* peer, std::span<const Operation> operations) const;
  std::vector<OfiPeer*> TakeNews();
  void Deliver(OfiPeer& peer);
  void AddDone(PeerId peer, uint64_t token, Status status) {
    AddEvent({.kind = Event::Kind::kDone, .peer = peer, .token = token, .status = status});
  }

  const std::string provider_;
  const std::string name_;  // "ofi:PROVIDER"
  const Capabilities capabilities_;
  // From the first link on.
  std::shared_ptr<OfiDomain> domain_;
  std::optional<SocketStream> queue_stream_;  // the descriptor of its queues, for the poller
  std::unique_ptr<StandIn> stand_in_;
  std::vector<OfiPeer*> linked_;
  bool has_failed_ = false;
  int spins_ = 0;
};

}  // namespace skep::rma
