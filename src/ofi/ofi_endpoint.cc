#include "ofi/ofi_endpoint.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace skep::rma {
namespace {

constexpr uint32_t kOperationsMax = 4096;

bool IsOverIp(const fi_info& info) {
  return info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6 ||
         info.addr_format == FI_SOCKADDR;
}

// "10.0.0.1" of "10.0.0.1:7000"; empty of a path.
std::string HostOf(const Address& address) {
  if (address.starts_with("unix:")) return "";
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

OfiEndpoint::OfiEndpoint(const std::string& provider, uint64_t post_bytes_max,
                         const EndpointOptions& options)
    : StreamEndpoint({.network = SocketNetwork(),
                      .clock = SystemClock(),
                      .kind = FabricKind::kOfi,
                      .address_prefix = provider == "shm" ? "unix:" : "",
                      .post_bytes_max = 0,
                      .polls_between_waits = 1,
                      .own_bytes_max = kHelloOwnBytesMax},
                     options),
      provider_(provider),
      name_("ofi:" + provider),
      capabilities_({.name = name_,
                     .one_sided = true,
                     .post_operations_max = kOperationsMax,
                     .post_bytes_max = post_bytes_max}) {}

// The stand-in is stopped first: it uses the domain.
OfiEndpoint::~OfiEndpoint() {
  stand_in_.reset();
  if (domain_ == nullptr) return;
  const MutexLock lock(domain_->mutex);
  for (OfiPeer* const peer : linked_) {
    peer->link_stream->Leave();
    peer->link.reset();
  }
}

std::unique_ptr<OfiEndpoint::Peer> OfiEndpoint::NewPeer(std::unique_ptr<Stream> stream) {
  auto passing = std::make_unique<LinkStream>(static_cast<SocketStream&>(*stream));
  return std::make_unique<OfiPeer>(std::move(stream), std::move(passing));
}

Status OfiEndpoint::OpenDomain(const Address& local) {
  if (domain_ != nullptr) return {};
  auto info = OfiDomain::Find(provider_, "");
  if (info && IsOverIp(**info)) info = OfiDomain::Find(provider_, HostOf(local));
  if (!info) return info.error();
  auto domain = OfiDomain::Open(std::move(*info));
  if (!domain) return domain.error();
  domain_ = std::move(*domain);
  queue_stream_.emplace(FileDescriptor(dup(domain_->wait_fd())), "");
  if (const Status s = poller().Add(*queue_stream_, nullptr, true, false); !s.ok()) return s;
  if (!options().regions.empty()) stand_in_ = std::make_unique<StandIn>(*domain_);
  return {};
}

Status OfiEndpoint::OpenLink(OfiPeer& peer) {
  if (peer.link != nullptr) return {};
  const Address local = peer.stream->local();
  if (const Status s = OpenDomain(local); !s.ok()) return s;
  const auto address = ParseAddress(local);
  const bool is_ip = IsOverIp(domain_->info()) && address && address->family() != AF_UNIX;
  const MutexLock lock(domain_->mutex);
  auto link = OfiLink::Open(domain_, options().regions, is_ip ? &*address : nullptr);
  if (!link) return link.error();
  peer.link = std::move(*link);
  linked_.push_back(&peer);
  return {};
}

Status OfiEndpoint::BeforeHello(Peer& greeted, Hello& hello) {
  auto& peer = static_cast<OfiPeer&>(greeted);
  if (const Status s = OpenLink(peer); !s.ok()) return s;
  hello.own = EncodeIntroduction(peer.link->introduction());
  peer.link_stream->set_socket_bytes(MessageStream::kHeaderBytes + EncodeHello(hello).size());
  return {};
}

Status OfiEndpoint::Join(Peer& joining) {
  auto& peer = static_cast<OfiPeer&>(joining);
  auto introduction = DecodeIntroduction(peer.hello.own, peer.hello.regions.size());
  if (!introduction) return Status(Code::kCorrupt, "the peer sent no introduction");
  if (const Status s = OpenLink(peer); !s.ok()) return s;
  const MutexLock lock(domain_->mutex);
  if (const Status s = peer.link->Connect(std::move(*introduction)); !s.ok()) return s;
  peer.link_stream->Join(*domain_, *peer.link);
  return {};
}

Status OfiEndpoint::Check(const OfiPeer* peer, std::span<const Operation> operations) const {
  if (peer == nullptr) return Gone();
  if (operations.size() > kOperationsMax) {
    return Status(Code::kTooLarge, "a Post has too many operations", kOperationsMax);
  }
  uint64_t bytes = 0;
  for (const Operation& operation : operations) {
    bytes += operation.bytes;
    if (Allow(peer->hello.regions, operation)) continue;
    return Status(Code::kInvalidArgument, "an operation is not within the peer's regions");
  }
  if (bytes > capabilities_.post_bytes_max) {
    return Status(Code::kTooLarge, "a Post moves too many bytes", capabilities_.post_bytes_max);
  }
  return {};
}

void OfiEndpoint::Post(PeerId id, uint64_t token, std::span<const Operation> operations) {
  auto* const peer = static_cast<OfiPeer*>(FindJoined(id));
  const Status status = Check(peer, operations);
  if (!status.ok() || operations.empty()) return AddDone(id, token, status);
  const MutexLock lock(domain_->mutex);
  peer->link->operations().Add(token, operations);
  peer->link->operations().MoveOn();
}

void OfiEndpoint::CarryOn() {
  if (domain_ == nullptr) return;
  if (stand_in_ != nullptr) stand_in_->OwnerHasWaited();
  const std::vector<OfiPeer*> news = TakeNews();
  if (!news.empty()) spins_ = 0;
  for (OfiPeer* const peer : news) Deliver(*peer);
}

std::vector<OfiEndpoint::OfiPeer*> OfiEndpoint::TakeNews() {
  std::vector<OfiPeer*> news;
  const MutexLock lock(domain_->mutex);
  has_failed_ = !domain_->Drain() || has_failed_;
  for (OfiPeer* const peer : linked_) {
    OfiLink& link = *peer->link;
    link.MoveOn();
    const bool is_joined = peer->state == Peer::State::kJoined;
    if (has_failed_ || link.error() != 0 || link.operations().HasDone() ||
        (is_joined && link.channel().CanRead()) ||
        (peer->waits_to_write && link.channel().CanWrite())) {
      news.push_back(peer);
    }
  }
  return news;
}

// The peer stays until the next Poll, whatever its state becomes.
void OfiEndpoint::Deliver(OfiPeer& peer) {
  if (peer.state == Peer::State::kLeft) return;
  int error = 0;
  std::vector<uint64_t> done;
  {
    const MutexLock lock(domain_->mutex);
    error = has_failed_ ? EIO : peer.link->error();
    done = peer.link->operations().TakeDone();
  }
  for (const uint64_t token : done) AddDone(peer.id, token, {});
  if (error != 0) {
    return Disconnect(
        peer, Status(Code::kIo, "libfabric has lost the peer", static_cast<uint64_t>(error)));
  }
  const auto can = [&](auto what) {
    if (peer.state != Peer::State::kJoined) return false;
    const MutexLock lock(domain_->mutex);
    return what(peer.link->channel());
  };
  while (!peer.is_viewed && can([](PacketChannel& channel) { return channel.CanRead(); })) {
    Receive(peer);
  }
  if (peer.waits_to_write && can([](PacketChannel& channel) { return channel.CanWrite(); })) {
    Send(peer);
  }
}

int OfiEndpoint::BeforeWait(int wait_ms) {
  if (domain_ == nullptr || wait_ms == 0) return wait_ms;
  if (stand_in_ != nullptr) stand_in_->OwnerWaits();
  const MutexLock lock(domain_->mutex);
  if (!domain_->MayWait()) return 0;
  const bool is_woken = domain_->CanBeWaitedFor() && std::ranges::none_of(linked_, [](auto* peer) {
                          return peer->link->Waits();
                        });
  if (linked_.empty() || is_woken) return wait_ms;
  if (++spins_ < kSpins) return 0;
  return 1;
}

// The socket can be written all the time once the hello has gone.
Status OfiEndpoint::WaitToWrite(Peer& waiting, bool waits) {
  auto& peer = static_cast<OfiPeer&>(waiting);
  return StreamEndpoint::WaitToWrite(peer, waits && peer.link_stream->is_on_socket());
}

void OfiEndpoint::EndOperations(Peer& left) {
  auto& peer = static_cast<OfiPeer&>(left);
  if (peer.link == nullptr) return;
  std::erase(linked_, &peer);
  peer.link_stream->Leave();
  const MutexLock lock(domain_->mutex);
  peer.link->Close();
  for (const uint64_t token : peer.link->operations().TakeDone()) AddDone(peer.id, token, {});
  for (const uint64_t token : peer.link->operations().TakeUndone()) {
    AddDone(peer.id, token, Gone());
  }
  peer.link.reset();
}

}  // namespace skep::rma
