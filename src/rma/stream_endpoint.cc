#include "rma/stream_endpoint.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/check.h"

namespace skep::rma {
namespace {

constexpr int kAcceptsMax = 64;                // in a turn
constexpr uint64_t kListenAgainAfterMs = 100;  // where the system has no more descriptors

Status ConnectError(const Status& error) {
  if (error.code() != Code::kIo) return error;
  switch (error.detail()) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOENT:
    case ETIMEDOUT:
      return Status(Code::kUnavailable, "nobody listens at the address", error.detail());
    default:
      return error;
  }
}

}  // namespace

StreamEndpoint::StreamEndpoint(const Setup& setup, const EndpointOptions& options)
    : setup_(setup), options_(options), poller_(setup.network.NewPoller()) {}

Status StreamEndpoint::Begin() {
  if (const Status s = CheckRegions(options_.regions); !s.ok()) return s;
  hello_ = {.fabric = setup_.kind,
            .message_bytes_max = options_.message_bytes_max,
            .unsent_bytes_max = options_.unsent_bytes_max,
            .regions = {},
            .own = {}};
  for (const Region& region : options_.regions) {
    hello_.regions.push_back({region.memory->size(), region.access});
  }
  if (options_.listen.empty()) return {};
  if (const Status s = CheckAddress(options_.listen); !s.ok()) return s;
  auto listener = setup_.network.Listen(options_.listen);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  return poller_->Add(*listener_, this);
}

Status StreamEndpoint::CheckAddress(const Address& address) const {
  if (address.starts_with(setup_.address_prefix)) return {};
  return Status(Code::kInvalidArgument, "the address is not one of this fabric");
}

Result<PeerId> StreamEndpoint::Connect(const Address& address, int timeout_ms) {
  if (const Status s = CheckAddress(address); !s.ok()) return Fail(s);
  auto stream = setup_.network.Connect(address, timeout_ms);
  if (!stream) return Fail(ConnectError(stream.error()));
  const auto peer = AddPeer(std::move(*stream), Peer::State::kConnecting);
  if (!peer) return Fail(peer.error());
  if (timeout_ms >= 0) {
    (*peer)->deadline_ms = setup_.clock.MonotonicMs() + static_cast<uint64_t>(timeout_ms);
  }
  connecting_.insert((*peer)->id);
  if (const Status s = SayHello(**peer); !s.ok()) Disconnect(**peer, s);
  return (*peer)->id;
}

void StreamEndpoint::Disconnect(PeerId peer) {
  const auto at = peers_.find(peer);
  if (at == peers_.end()) return;
  Disconnect(*at->second, Status(Code::kUnavailable, "this endpoint has disconnected the peer"));
}

uint64_t StreamEndpoint::RegionBytes(PeerId peer, uint32_t region) const {
  const Peer* const joined = FindJoined(peer);
  if (joined == nullptr || region >= joined->hello.regions.size()) return 0;
  return joined->hello.regions[region].bytes;
}

size_t StreamEndpoint::CallBytesMax(const Peer& peer) const {
  constexpr size_t kLengthMax = std::numeric_limits<uint32_t>::max();
  return std::min({options_.message_bytes_max, peer.hello.message_bytes_max, kLengthMax});
}

void StreamEndpoint::Call(PeerId peer, uint64_t token, std::string_view request) {
  Peer* const joined = FindJoined(peer);
  const auto refuse = [&](Status status) {
    AddEvent({.kind = Event::Kind::kReply, .peer = peer, .token = token, .status = status});
  };
  if (joined == nullptr) return refuse(Gone());
  const size_t bytes_max = CallBytesMax(*joined);
  if (request.size() > bytes_max) {
    return refuse(Status(Code::kTooLarge, "the message is too long", bytes_max));
  }
  joined->calls.emplace(++joined->last_call, token);
  joined->messages.Add({.kind = MessageKind::kCall, .token = joined->last_call, .body = request});
  QueueToSend(*joined);
}

// A reply that is too long is told to the caller instead of it.
void StreamEndpoint::Reply(PeerId peer, uint64_t token, std::string_view reply) {
  Peer* const joined = FindJoined(peer);
  if (joined == nullptr) return;
  if (reply.size() > CallBytesMax(*joined)) {
    joined->messages.Add({.kind = MessageKind::kReply, .code = Code::kTooLarge, .token = token});
  } else {
    joined->messages.Add({.kind = MessageKind::kReply, .token = token, .body = reply});
  }
  QueueToSend(*joined);
}

std::span<const Event> StreamEndpoint::Poll(int timeout_ms) {
  returned_.clear();
  for (Peer* const peer : std::exchange(viewed_, {})) peer->is_viewed = false;
  left_.clear();
  const bool has_enough = !ready_.empty() && to_send_.empty();
  if (!has_enough || ++polls_ >= setup_.polls_between_waits) {
    polls_ = 0;
    Turn(timeout_ms);
  }
  returned_.swap(ready_);
  return returned_;
}

void StreamEndpoint::Wake() {
  is_woken_.store(true, std::memory_order_relaxed);
  poller_->Wake();
}

// Waits again where what was ready made no event: a part of a message, operations of a peer.
void StreamEndpoint::Turn(int timeout_ms) {
  const uint64_t begin_ms = timeout_ms > 0 ? setup_.clock.MonotonicMs() : 0;
  int left_ms = timeout_ms;
  for (;;) {
    SendQueued();
    EndLate();
    CarryOn();
    const int wait_ms = WaitMs(left_ms);
    const int part_ms = BeforeWait(wait_ms);
    const auto ready = poller_->Wait(part_ms);
    for (const ReadyEvent& event : ready) Serve(event);
    CarryOn();
    SendQueued();
    EndLate();
    if (is_woken_.exchange(false, std::memory_order_relaxed)) return;
    if (!ready_.empty() || timeout_ms == 0 || (ready.empty() && part_ms == wait_ms)) return;
    if (timeout_ms < 0) continue;
    const uint64_t passed_ms = setup_.clock.MonotonicMs() - begin_ms;
    if (passed_ms >= static_cast<uint64_t>(timeout_ms)) return;
    left_ms = timeout_ms - static_cast<int>(passed_ms);
  }
}

// No longer than the next thing that this endpoint has to do by itself.
int StreamEndpoint::WaitMs(int timeout_ms) const {
  if (!ready_.empty()) return 0;
  uint64_t next_ms = listen_again_ms_;
  for (const PeerId id : connecting_) next_ms = std::min(next_ms, peers_.at(id)->deadline_ms);
  if (next_ms == kNever) return timeout_ms;
  const uint64_t now_ms = setup_.clock.MonotonicMs();
  const uint64_t until_ms = next_ms - std::min(now_ms, next_ms);
  if (timeout_ms >= 0 && until_ms >= static_cast<uint64_t>(timeout_ms)) return timeout_ms;
  return static_cast<int>(std::min<uint64_t>(until_ms, std::numeric_limits<int>::max()));
}

// Ends connects that are late, and listens again once it is time.
void StreamEndpoint::EndLate() {
  if (connecting_.empty() && listen_again_ms_ == kNever) return;
  const uint64_t now_ms = setup_.clock.MonotonicMs();
  const std::vector<PeerId> connecting(connecting_.begin(), connecting_.end());
  for (const PeerId id : connecting) {
    Peer& peer = *peers_.at(id);
    if (peer.deadline_ms > now_ms) continue;
    Disconnect(peer, Status(Code::kUnavailable, "the peer did not answer in time", ETIMEDOUT));
  }
  if (listen_again_ms_ > now_ms) return;
  listen_again_ms_ = kNever;
  if (!poller_->Add(*listener_, this).ok()) listen_again_ms_ = now_ms + kListenAgainAfterMs;
}

StreamEndpoint::Peer* StreamEndpoint::FindJoined(PeerId peer) const {
  const auto at = peers_.find(peer);
  if (at == peers_.end() || at->second->state != Peer::State::kJoined) return nullptr;
  return at->second.get();
}

Result<StreamEndpoint::Peer*> StreamEndpoint::AddPeer(std::unique_ptr<Stream> stream,
                                                      Peer::State state) {
  std::unique_ptr<Peer> peer = NewPeer(std::move(stream));
  if (const Status s = poller_->Add(*peer->stream, peer.get(), true, false); !s.ok()) {
    return Fail(s);
  }
  peer->id = ++last_peer_;
  peer->state = state;
  peer->messages.set_limits({.hello_bytes_max = kHelloBytesMax});
  Peer* const added = peer.get();
  peers_.emplace(added->id, std::move(peer));
  return added;
}

Status StreamEndpoint::SayHello(Peer& peer) {
  Hello hello = hello_;
  if (const Status s = BeforeHello(peer, hello); !s.ok()) return s;
  peer.messages.Add({.kind = MessageKind::kHello, .body = EncodeHello(hello)});
  QueueToSend(peer);
  return {};
}

void StreamEndpoint::QueueToSend(Peer& peer) {
  if (peer.messages.unsent_bytes() > options_.unsent_bytes_max) {
    Send(peer);
    if (peer.messages.unsent_bytes() > options_.unsent_bytes_max) {
      return Disconnect(peer, Status(Code::kTooLarge, "the peer let too many bytes wait",
                                     options_.unsent_bytes_max));
    }
  }
  if (peer.is_queued || peer.waits_to_write || peer.state == Peer::State::kLeft) return;
  peer.is_queued = true;
  to_send_.push_back(&peer);
}

void StreamEndpoint::SendQueued() {
  for (Peer* const peer : std::exchange(to_send_, {})) {
    peer->is_queued = false;
    Send(*peer);
  }
}

// What the stream does not take waits until it is writable.
void StreamEndpoint::Send(Peer& peer) {
  if (peer.state == Peer::State::kLeft) return;
  for (;;) {
    AddWaiting(peer);
    if (peer.messages.unsent_bytes() == 0) break;
    if (const Status s = peer.messages.Send(); !s.ok()) return Disconnect(peer, s);
    if (peer.messages.unsent_bytes() > 0) break;
  }
  const bool waits = peer.messages.unsent_bytes() > 0;
  if (waits == peer.waits_to_write) return;
  peer.waits_to_write = waits;
  if (const Status s = WaitToWrite(peer, waits); !s.ok()) Disconnect(peer, s);
}

void StreamEndpoint::Serve(const ReadyEvent& ready) {
  if (ready.tag == this) return Accept();
  if (ready.tag == nullptr) return;  // something of the derived class, which CarryOn looks at
  Peer& peer = *static_cast<Peer*>(ready.tag);
  if (ready.writable && peer.waits_to_write) Send(peer);
  if (ready.readable && peer.state != Peer::State::kLeft) Receive(peer);
}

void StreamEndpoint::Accept() {
  for (int i = 0; i < kAcceptsMax; ++i) {
    int error = 0;
    auto stream = listener_->Accept(&error);
    if (stream == nullptr && error != EAGAIN) StopListening();
    if (stream == nullptr) return;
    const auto peer = AddPeer(std::move(stream), Peer::State::kStranger);
    if (!peer) return;
    strangers_.insert((*peer)->id);
    if (strangers_.size() <= kStrangersMax) continue;
    Disconnect(*peers_.at(*strangers_.begin()),
               Status(Code::kUnavailable, "the peer did not say hello"));
  }
}

// What waits to be accepted would be ready all the time.
void StreamEndpoint::StopListening() {
  poller_->Remove(*listener_);
  listen_again_ms_ = setup_.clock.MonotonicMs() + kListenAgainAfterMs;
}

void StreamEndpoint::Receive(Peer& peer) {
  if (peer.is_viewed) return;
  const auto more = peer.messages.Receive();
  if (!more) return Disconnect(peer, more.error());
  const size_t events = ready_.size();
  const Status status = TakeMessages(peer);
  if (ready_.size() > events) {
    peer.is_viewed = true;
    viewed_.push_back(&peer);
  }
  if (!status.ok()) return Disconnect(peer, status);
  if (*more || peer.state == Peer::State::kLeft) return;
  Disconnect(peer, Status(Code::kUnavailable, "the peer has closed the connection"));
}

Status StreamEndpoint::TakeMessages(Peer& peer) {
  while (peer.state != Peer::State::kLeft) {
    const auto message = peer.messages.Next();
    if (!message) return message.error();
    if (!*message) return {};
    if (const Status s = TakeMessage(peer, **message); !s.ok()) return s;
  }
  return {};
}

Status StreamEndpoint::TakeMessage(Peer& peer, const Message& message) {
  if (peer.state != Peer::State::kJoined) return TakeHello(peer, message);
  switch (message.kind) {
    case MessageKind::kCall:
      AddEvent({.kind = Event::Kind::kRequest,
                .peer = peer.id,
                .token = message.token,
                .bytes = message.body});
      return {};
    case MessageKind::kReply:
      return TakeReply(peer, message);
    default:
      return Take(peer, message);
  }
}

Status StreamEndpoint::Take(Peer&, const Message&) { return NoMessage(); }

Status StreamEndpoint::TakeHello(Peer& peer, const Message& message) {
  if (message.kind == MessageKind::kRefuse && peer.state == Peer::State::kConnecting) {
    return Status(Code::kUnavailable, "the endpoint there has as many peers as it may");
  }
  if (message.kind != MessageKind::kHello) return NoMessage();
  auto hello = DecodeHello(message.body);
  if (!hello) return Status(Code::kCorrupt, "the peer sent no hello of this version");
  if (hello->fabric != setup_.kind) {
    return Status(Code::kUnavailable, "the endpoint there is one of another fabric");
  }
  if (hello->own.size() > setup_.own_bytes_max) {
    return Status(Code::kCorrupt, "the peer's hello is too long");
  }
  peer.hello = std::move(*hello);
  if (peer.state == Peer::State::kStranger) return Admit(peer);
  if (const Status s = Join(peer); !s.ok()) return s;
  MarkJoined(peer);
  return {};
}

Status StreamEndpoint::Admit(Peer& peer) {
  if (accepted_ >= options_.peers_max) {
    peer.messages.Add({.kind = MessageKind::kRefuse});
    Send(peer);
    return Status(Code::kUnavailable, "as many peers as there may be are here");
  }
  if (const Status s = Join(peer); !s.ok()) return s;
  if (const Status s = SayHello(peer); !s.ok()) return s;
  ++accepted_;
  peer.is_accepted = true;
  MarkJoined(peer);
  return {};
}

void StreamEndpoint::MarkJoined(Peer& peer) {
  peer.state = Peer::State::kJoined;
  strangers_.erase(peer.id);
  connecting_.erase(peer.id);
  peer.messages.set_limits(
      {.call_bytes_max = options_.message_bytes_max, .post_bytes_max = setup_.post_bytes_max});
  AddEvent({.kind = Event::Kind::kJoined, .peer = peer.id});
}

Status StreamEndpoint::TakeReply(Peer& peer, const Message& message) {
  const auto call = peer.calls.find(message.token);
  if (call == peer.calls.end()) return NoMessage();
  Status status;
  if (message.code != Code::kOk) {
    status = Status(message.code, "the reply is too long", CallBytesMax(peer));
  }
  AddEvent({.kind = Event::Kind::kReply,
            .peer = peer.id,
            .token = call->second,
            .status = status,
            .bytes = message.body});
  peer.calls.erase(call);
  return {};
}

void StreamEndpoint::Disconnect(Peer& peer, Status why) {
  if (peer.state == Peer::State::kLeft) return;
  const bool is_stranger = peer.state == Peer::State::kStranger;
  peer.state = Peer::State::kLeft;
  poller_->Remove(*peer.stream);
  strangers_.erase(peer.id);
  connecting_.erase(peer.id);
  std::erase(to_send_, &peer);
  if (peer.is_accepted) --accepted_;
  EndOperations(peer);
  for (const auto& [message_token, token] : peer.calls) {
    AddEvent({.kind = Event::Kind::kReply, .peer = peer.id, .token = token, .status = Gone()});
  }
  if (!is_stranger) AddEvent({.kind = Event::Kind::kLeft, .peer = peer.id, .status = why});
  Leave(peer);
  peer.stream.reset();
  left_.push_back(std::move(peers_.extract(peer.id).mapped()));
}

}  // namespace skep::rma
