#include "ofi/ofi_link.h"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "ofi/shm_neighbours.h"

namespace skep::rma {
namespace {

// Names the address that the fid_ep is to have; the system gives the port.
void SetSource(fi_info& info, SocketAddress local) {
  if (local.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(local.raw())->sin_port = 0;
  } else {
    reinterpret_cast<sockaddr_in6*>(local.raw())->sin6_port = 0;
  }
  std::free(info.src_addr);
  info.src_addr = std::malloc(local.length);
  if (info.src_addr == nullptr) return;
  std::memcpy(info.src_addr, local.raw(), local.length);
  info.src_addrlen = local.length;
}

}  // namespace

Result<std::unique_ptr<OfiLink>> OfiLink::Open(const std::shared_ptr<OfiDomain>& domain,
                                               std::span<const Region> regions,
                                               const SocketAddress* local) {
  std::unique_ptr<OfiLink> link(new OfiLink(domain));
  Status status = link->OpenEndpoint(local);
  if (status.ok()) status = link->LearnName();
  if (status.ok()) status = link->RegisterRegions(regions);
  if (status.ok()) status = link->channel_.Begin(link->opened_->ep.get());
  if (!status.ok()) return Fail(status);
  link->operations_.Begin(link->opened_->ep.get());
  return link;
}

OfiLink::Opened::~Opened() {
  const MutexLock lock(OfiDomain::SetUpMutex());
  ep.reset();
  addresses.reset();
  queue.reset();
}

Status OfiLink::OpenEndpoint(const SocketAddress* local) {
  const MutexLock lock(OfiDomain::SetUpMutex());
  const OfiInfo info(fi_dupinfo(&domain_.info()));
  if (info == nullptr) return OfiError("libfabric has no memory", FI_ENOMEM);
  auto queue = domain_.AddQueue();
  if (!queue) return queue.error();
  opened_->queue = std::move(*queue);
  if (local != nullptr) SetSource(*info, *local);
  fid_ep* ep = nullptr;
  int code = fi_endpoint(domain_.domain(), info.get(), &ep, nullptr);
  if (code != 0) return OfiError("libfabric opens no endpoint", code);
  opened_->ep.reset(ep);
  fi_av_attr attributes = {};
  attributes.type = info->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
  attributes.count = 1;
  fid_av* addresses = nullptr;
  code = fi_av_open(domain_.domain(), &attributes, &addresses, nullptr);
  if (code != 0) return OfiError("libfabric opens no address vector", code);
  opened_->addresses.reset(addresses);
  code = fi_ep_bind(ep, &addresses->fid, 0);
  if (code == 0) code = fi_ep_bind(ep, &opened_->queue->get()->fid, FI_TRANSMIT | FI_RECV);
  if (code == 0) code = fi_enable(ep);
  return code == 0 ? Status() : OfiError("libfabric enables no endpoint", code);
}

Status OfiLink::LearnName() {
  std::string& name = introduction_.name;
  name.resize(Introduction::kNameBytesMax);
  size_t bytes = name.size();
  const int code = fi_getname(&opened_->ep->fid, name.data(), &bytes);
  if (code != 0) return OfiError("libfabric tells no name of its endpoint", code);
  name.resize(bytes);
  if (domain_.IsShm()) ShmNeighbours::Get().Opened(name);
  return {};
}

Status OfiLink::RegisterRegions(std::span<const Region> regions) {
  for (const Region& region : regions) {
    const uint64_t access =
        FI_REMOTE_READ | (region.access == Access::kReadWrite ? FI_REMOTE_WRITE : 0);
    auto made =
        domain_.Register(region.memory->begin(), region.memory->size(), access, opened_->ep.get());
    if (!made) return made.error();
    const uint64_t base =
        domain_.HasMode(FI_MR_VIRT_ADDR) ? reinterpret_cast<uint64_t>(region.memory->begin()) : 0;
    introduction_.regions.push_back({.base = base, .key = fi_mr_key(made->get())});
    registrations_.push_back(std::move(*made));
  }
  return {};
}

Status OfiLink::Connect(Introduction peer) {
  fi_addr_t address = FI_ADDR_UNSPEC;
  const int code =
      fi_av_insert(opened_->addresses.get(), peer.name.data(), 1, &address, 0, nullptr);
  if (code != 1)
    return OfiError("libfabric does not know the peer's name", code < 0 ? code : EINVAL);
  channel_.set_peer(address);
  operations_.set_peer(address, std::move(peer.regions));
  peer_name_ = std::move(peer.name);
  is_connected_ = true;
  return {};
}

void OfiLink::Close() {
  if (opened_ == nullptr) return;
  registrations_.clear();
  if (opened_->queue != nullptr) domain_.RemoveQueue(*opened_->queue);
  if (domain_.IsShm()) {
    ShmNeighbours::Get().Ended(introduction_.name, peer_name_, std::move(opened_));
  }
  opened_.reset();
}

void OfiLink::MoveOn() {
  if (!is_connected_) return;
  channel_.MoveOn();
  operations_.MoveOn();
}

}  // namespace skep::rma
