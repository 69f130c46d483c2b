// ofi_link.h: what an endpoint of ofi has of libfabric for one peer, and for no other.
//
//   fid_ep     an endpoint of libfabric, whose name is told to this peer alone
//   fid_cq     its completion queue
//   fid_av     with one address: the peer's
//   fid_mr     each region, registered for this peer under a key of its own
//
// So that an end is an end, whatever the provider. Close() takes the registrations away: what the
// peer's provider asks for from now on has a key that nobody knows. And it closes the fid_ep, with
// its connections, receives and buffers: what was half arrived is never finished, and no completion
// comes, so that memory of this side that the peer's answers were to be written to is its owner's
// again. The other peers have fid_eps of their own, and notice nothing.
//
// The price: registrations and fid_eps are as many as peers. Both cost a software provider next to
// nothing; a NIC keeps page tables for each registration, and a queue pair for each peer anyway.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/network_address.h"
#include "ofi/introduction.h"
#include "ofi/ofi_domain.h"
#include "ofi/operation_queue.h"
#include "ofi/packet_channel.h"

namespace skep::rma {

// Thread safety: the domain's mutex is held, for all methods, the destructor included.
class OfiLink {
 public:
  // The memory of the regions outlives it. `local`: this side's address, where the
  // provider's addresses are such; else null.
  //   kIo  as libfabric says
  static Result<std::unique_ptr<OfiLink>> Open(const std::shared_ptr<OfiDomain>& domain,
                                               std::span<const Region> regions,
                                               const SocketAddress* local);
  ~OfiLink() { Close(); }

  const Introduction& introduction() const { return introduction_; }
  // From now on messages and operations reach the peer.
  //   kIo  as libfabric says
  Status Connect(Introduction peer);
  void Close();

  PacketChannel& channel() { return channel_; }
  OperationQueue& operations() { return operations_; }
  // Does what the provider had no room for, if it has now.
  void MoveOn();
  bool Waits() const { return channel_.Waits() || operations_.Waits(); }
  // 0, or what has gone wrong.
  int error() const { return channel_.error() != 0 ? channel_.error() : operations_.error(); }

 private:
  explicit OfiLink(const std::shared_ptr<OfiDomain>& domain)
      : domain_(*domain),
        opened_(std::make_unique<Opened>()),
        channel_(*domain),
        operations_(*domain) {
    opened_->domain = domain;
  }

  struct Opened {
    ~Opened();

    std::shared_ptr<OfiDomain> domain;
    std::unique_ptr<OfiQueue> queue;
    OfiHandle<fid_av> addresses;
    OfiHandle<fid_ep> ep;
  };

  Status OpenEndpoint(const SocketAddress* local);
  Status LearnName();
  Status RegisterRegions(std::span<const Region> regions);

  OfiDomain& domain_;
  std::unique_ptr<Opened> opened_;
  std::string peer_name_;
  std::vector<OfiHandle<fid_mr>> registrations_;
  Introduction introduction_;
  PacketChannel channel_;
  OperationQueue operations_;
  bool is_connected_ = false;
};

}  // namespace skep::rma
