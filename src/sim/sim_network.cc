#include "sim/sim_network.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "base/network_address.h"

namespace skep {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

// Equal addresses have one text: "[0:0::1]:80" becomes "[::1]:80".
Result<Address> Canonical(const Address& address) {
  Result<SocketAddress> parsed = ParseAddress(address);
  if (!parsed) return Fail(parsed.error());
  return FormatAddress(*parsed);
}

bool IsUnix(const Address& address) { return address.starts_with(kUnixPrefix); }

// "127.0.0.1:" of "127.0.0.1:80".
Address HostOf(const Address& address) { return address.substr(0, address.rfind(':') + 1); }
Address PortOf(const Address& address) { return address.substr(address.rfind(':') + 1); }

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

Result<std::unique_ptr<Stream>> SimNetwork::Connect(const Address& address) {
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
  const bool is_v6 = address.starts_with('[');
  const Address any_host = (is_v6 ? "[::]:" : "0.0.0.0:") + PortOf(address);
  for (const Address& candidate : {address, IsUnix(address) ? address : any_host}) {
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
