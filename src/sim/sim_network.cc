#include "sim/sim_network.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/network_address.h"

namespace skep {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

// Returns the one text of equal addresses: "[0:0::1]:80" becomes "[::1]:80".
Result<Address> Canonical(const Address& address) {
  Result<SocketAddress> parsed = ParseAddress(address);
  if (!parsed) return Fail(parsed.error());
  return FormatAddress(*parsed);
}

bool IsUnix(const Address& address) { return address.starts_with(kUnixPrefix); }

// Returns the address without its port: "127.0.0.1:" of "127.0.0.1:80".
Address HostOf(const Address& address) { return address.substr(0, address.rfind(':') + 1); }
Address PortOf(const Address& address) { return address.substr(address.rfind(':') + 1); }

// Returns the address of a listener that takes connections to any host of this port and family.
Address AnyHost(const Address& address) {
  if (IsUnix(address)) return address;
  return (address.starts_with('[') ? "[::]:" : "0.0.0.0:") + PortOf(address);
}

DatagramPeer PeerOf(const Address& address) {
  const Result<SocketAddress> parsed = ParseAddress(address);
  DatagramPeer peer;
  peer.size = static_cast<uint8_t>(parsed->length);
  std::memcpy(peer.bytes.data(), &parsed->storage, peer.size);
  return peer;
}

Address AddressOfPeer(const DatagramPeer& peer) {
  SocketAddress address;
  std::memcpy(&address.storage, peer.bytes.data(), peer.size);
  address.length = peer.size;
  return FormatAddress(address);
}

}  // namespace

SimStream::SimStream(std::shared_ptr<SimConnection> connection, SimConnection::Side side,
                     Address local, Address peer)
    : connection_(std::move(connection)),
      side_(side),
      local_(std::move(local)),
      peer_(std::move(peer)) {}

SimListener::~SimListener() {
  network_.listeners_.erase(address_);
  for (const Waiting& waiting : waiting_) waiting.stream->ResetConnection();
}

bool SimListener::Readable() const {
  return !waiting_.empty() && waiting_.front().arrival_ns <= network_.context_.clock.MonotonicNs();
}

std::unique_ptr<Stream> SimListener::Accept(int* error) {
  *error = Readable() ? network_.TakeAcceptError() : EAGAIN;
  if (*error != 0) return nullptr;
  std::unique_ptr<SimStream> stream = std::move(waiting_.front().stream);
  waiting_.pop_front();
  network_.context_.trace.Note(Trace::Event::kAccept, Trace::Of(address_));
  return stream;
}

SimDatagrams::~SimDatagrams() { std::erase(network_.datagram_sockets_, this); }

bool SimDatagrams::Readable() const {
  return !arriving_.empty() && arriving_.begin()->first <= network_.context_.clock.MonotonicNs();
}

std::span<const Datagram> SimDatagrams::Receive() {
  received_.clear();
  datagrams_.clear();
  while (Readable()) received_.push_back(std::move(arriving_.extract(arriving_.begin()).mapped()));
  for (const Packet& packet : received_) {
    datagrams_.push_back({.peer = PeerOf(packet.from), .bytes = packet.bytes});
  }
  return datagrams_;
}

void SimDatagrams::Send(std::span<const Datagram> datagrams) {
  for (const Datagram& datagram : datagrams) {
    network_.Carry(address_, peer_.empty() ? AddressOfPeer(datagram.peer) : peer_, datagram.bytes);
  }
}

SimNetwork::SimNetwork(uint64_t seed, SimClock& clock, Trace& trace,
                       const SimNetworkOptions& options)
    : context_{clock, trace, SeededRandom(seed), options} {}

Result<std::unique_ptr<Listener>> SimNetwork::Listen(const Address& address) {
  Result<Address> canonical = Canonical(address);
  if (!canonical) return Fail(canonical.error());
  if (!IsUnix(*canonical) && PortOf(*canonical) == "0") canonical = DrawPort(*canonical);
  if (listeners_.contains(*canonical)) {
    return Fail(Code::kIo, "cannot bind a socket to its address", EADDRINUSE);
  }
  auto listener = std::make_unique<SimListener>(*this, *canonical);
  listeners_[*canonical] = listener.get();
  return listener;
}

Result<std::unique_ptr<Stream>> SimNetwork::Connect(const Address& address, int /*timeout_ms*/) {
  Result<Address> server = Canonical(address);
  if (!server) return Fail(server.error());
  SimListener* const listener = FindListener(*server);
  if (listener == nullptr) {
    return Fail(Code::kIo, "cannot connect",
                static_cast<uint64_t>(IsUnix(*server) ? ENOENT : ECONNREFUSED));
  }

  auto connection = std::make_shared<SimConnection>(context_, ++last_connection_);
  std::erase_if(connections_, [](const auto& other) { return other.expired(); });
  connections_.push_back(connection);
  context_.trace.Note(Trace::Event::kConnect, connection->id(), Trace::Of(*server));

  const Address client = NewClientAddress(*server);
  uint64_t arrival = context_.DrawArrival();
  if (!listener->waiting_.empty()) {
    arrival = std::max(arrival, listener->waiting_.back().arrival_ns);
  }
  context_.clock.Remind(arrival);
  listener->waiting_.push_back(
      {arrival, std::make_unique<SimStream>(connection, SimConnection::kServer, *server, client)});
  return std::make_unique<SimStream>(connection, SimConnection::kClient, client, *server);
}

Result<std::unique_ptr<DatagramSocket>> SimNetwork::BindDatagrams(const Address& address) {
  return OpenDatagrams(address, {});
}

Result<std::unique_ptr<DatagramSocket>> SimNetwork::ConnectDatagrams(const Address& address) {
  Result<Address> peer = Canonical(address);
  if (!peer) return Fail(peer.error());
  return OpenDatagrams(HostOf(NewClientAddress(*peer)) + "0", *peer);
}

Result<std::unique_ptr<DatagramSocket>> SimNetwork::OpenDatagrams(const Address& address,
                                                                  Address peer) {
  Result<Address> canonical = Canonical(address);
  if (!canonical) return Fail(canonical.error());
  if (IsUnix(*canonical)) {
    return Fail(Code::kInvalidArgument, "a unix socket takes no datagrams");
  }
  if (PortOf(*canonical) == "0") canonical = DrawPort(*canonical);
  auto socket = std::make_unique<SimDatagrams>(*this, *canonical, std::move(peer));
  datagram_sockets_.push_back(socket.get());
  return socket;
}

// Datagrams for which there is no socket are lost too.
void SimNetwork::Carry(const Address& from, const Address& to, std::string_view bytes) {
  constexpr uint64_t kMillion = 1'000'000;
  SimDatagrams* const socket = FindDatagrams(to);
  if (socket == nullptr || (!socket->peer_.empty() && socket->peer_ != from)) return;
  if (bytes.size() > kDatagramBytesMax) return;
  if (context_.random.Below(kMillion) < context_.options.datagram_losses_ppm) return;
  const bool doubled = context_.random.Below(kMillion) < context_.options.datagram_doubles_ppm;
  for (int i = 0; i <= (doubled ? 1 : 0); ++i) {
    const uint64_t arrival = context_.DrawArrival();
    context_.clock.Remind(arrival);
    socket->arriving_.emplace(arrival, SimDatagrams::Packet{from, std::string(bytes)});
  }
}

SimDatagrams* SimNetwork::FindDatagrams(const Address& address) const {
  const Address any_host = AnyHost(address);
  const auto found = std::ranges::find_if(datagram_sockets_, [&](const SimDatagrams* socket) {
    return socket->address_ == address || socket->address_ == any_host;
  });
  return found == datagram_sockets_.end() ? nullptr : *found;
}

std::unique_ptr<Poller> SimNetwork::NewPoller() { return std::make_unique<SimPoller>(context_); }

void SimNetwork::ResetAll() {
  for (const std::weak_ptr<SimConnection>& connection : connections_) {
    if (const auto alive = connection.lock()) alive->Reset();
  }
}

void SimNetwork::FailAccepts(int error, uint64_t count) {
  accept_error_ = error;
  accept_errors_left_ = count;
}

int SimNetwork::TakeAcceptError() {
  if (accept_errors_left_ == 0) return 0;
  --accept_errors_left_;
  context_.trace.Note(Trace::Event::kFault, static_cast<uint64_t>(accept_error_));
  return accept_error_;
}

SimListener* SimNetwork::FindListener(const Address& address) const {
  for (const Address& candidate : {address, AnyHost(address)}) {
    const auto found = listeners_.find(candidate);
    if (found != listeners_.end()) return found->second;
  }
  return nullptr;
}

Address SimNetwork::DrawPort(const Address& address) {
  return HostOf(address) + std::to_string(next_port_++);
}

Address SimNetwork::NewClientAddress(const Address& server) {
  if (IsUnix(server)) return Address(kUnixPrefix);
  const Address host = server.starts_with('[') ? "[::1]:" : "127.0.0.1:";
  return host + std::to_string(32'768 + last_connection_ % 28'000);
}

}  // namespace skep
