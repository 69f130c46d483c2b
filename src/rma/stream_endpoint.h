// stream_endpoint.h: what the endpoints of mem and tcp share: connections, messages, events.
//
//   Connect ----> kConnecting ---- its hello ----+
//                      |                         v
//   Accept  ----> kStranger ------ its hello --> kJoined ------> kLeft
//                      |  refused, junk, too late   the stream ends, junk, Disconnect, too much
//                      +----------------------------------------> kLeft   unsent
//
// The one that connects says its hello first (hello.h). A stranger that says nothing costs a
// descriptor and 16 KiB, and is dropped when kStrangersMax others have come after it; nobody is
// told of it.
//
// A turn of Poll: writes what is queued, one write a peer; waits; reads what is ready, one read a
// peer; writes what that made. Events are collected in `ready_` until Poll hands them out. A peer
// that has left stays until the next Poll, since events may be views of what it sent.
//
// A derived class carries out one-sided operations, and says what else a peer has: its hooks are
// below. Owner: one thread, but for Wake().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/network.h"
#include "rma/fabric.h"
#include "rma/hello.h"
#include "rma/message_stream.h"

namespace skep::rma {

// It has some 30 methods: a peer's life is one state machine, which the fabrics built on it share.
class StreamEndpoint : public Endpoint {
 public:
  static constexpr size_t kStrangersMax = 256;

  Address address() const final { return listener_ == nullptr ? Address() : listener_->address(); }
  Result<PeerId> Connect(const Address& address, int timeout_ms) final;
  void Disconnect(PeerId peer) final;
  uint64_t RegionBytes(PeerId peer, uint32_t region) const final;
  void Call(PeerId peer, uint64_t token, std::string_view request) final;
  void Reply(PeerId peer, uint64_t token, std::string_view reply) final;
  std::span<const Event> Poll(int timeout_ms) final;
  void Wake() final;

 protected:
  class Peer {
   public:
    enum class State : uint8_t { kConnecting, kStranger, kJoined, kLeft };

    explicit Peer(std::unique_ptr<Stream> owned) : stream(std::move(owned)), messages(*stream) {}
    // Messages go over `transport`, which wraps the stream.
    Peer(std::unique_ptr<Stream> owned, Stream& transport)
        : stream(std::move(owned)), messages(transport) {}
    virtual ~Peer() = default;

    PeerId id = 0;
    State state = State::kStranger;
    bool is_accepted = false;
    bool is_queued = false;         // in to_send_
    bool waits_to_write = false;    // in the poller
    bool is_viewed = false;         // events of this Poll have views of its messages
    uint64_t deadline_ms = kNever;  // of a Connect
    std::unique_ptr<Stream> stream;
    MessageStream messages;
    Hello hello;                         // the peer's, once it has joined
    std::map<uint64_t, uint64_t> calls;  // the tokens of the caller, by those of the messages
    uint64_t last_call = 0;
  };

  struct Setup {
    Network& network;
    Clock& clock;
    FabricKind kind;
    std::string_view address_prefix;  // of its addresses
    size_t post_bytes_max;            // of a kPost and a kPosted
    uint32_t polls_between_waits;     // that hand out events without looking at the network
    size_t own_bytes_max = 0;         // Hello::own
  };

  StreamEndpoint(const Setup& setup, const EndpointOptions& options);

  // Listens, if that is asked for.
  //   as Fabric::Open
  Status Begin();

  // A peer of the derived class.
  virtual std::unique_ptr<Peer> NewPeer(std::unique_ptr<Stream> stream) = 0;
  // The hello is about to be sent: may set its `own`. Not ok: the connection ends.
  virtual Status BeforeHello(Peer&, Hello&) { return {}; }
  // The peer's hello has come: `peer.hello`. Not ok: the connection ends.
  virtual Status Join(Peer&) { return {}; }
  // Carries out a message that is none of this class. Not ok: the connection ends.
  virtual Status Take(Peer&, const Message& message);
  // Adds what waits to be sent and may be now.
  virtual void AddWaiting(Peer&) {}
  // Moves on, once before a wait and once after it, what is no stream of a peer. What wakes the
  // poller for it was added to that with the tag null.
  virtual void CarryOn() {}
  // How long the poller may wait of the time that is left, after which CarryOn is due again.
  virtual int BeforeWait(int wait_ms) { return wait_ms; }
  // The transport has not taken everything (`waits`), or has: when it takes more, Send is due.
  virtual Status WaitToWrite(Peer& peer, bool waits) {
    return poller_->Change(*peer.stream, &peer, true, waits);
  }
  // The connection has ended: adds the events of the peer's operations.
  virtual void EndOperations(Peer&) {}
  // And then, when it is no longer polled: may take the stream, which is closed otherwise.
  virtual void Leave(Peer&) {}

  // Null if it is not joined.
  Peer* FindJoined(PeerId peer) const;
  void AddEvent(const Event& event) { ready_.push_back(event); }
  // Sends in this turn what is queued for the peer, or waits for it. Disconnects the peer if too
  // much is.
  void QueueToSend(Peer& peer);
  // Sends what is queued for the peer, as far as its transport takes it.
  void Send(Peer& peer);
  // Reads once, and takes the messages that have come whole. Nothing, if that has brought events
  // since the last Poll: another read would move their bytes.
  void Receive(Peer& peer);
  void Disconnect(Peer& peer, Status why);

  Poller& poller() { return *poller_; }

  const EndpointOptions& options() const { return options_; }
  const std::vector<RegionExtent>& regions() const { return hello_.regions; }

  static Status Gone() { return Status(Code::kUnavailable, "the peer is not connected"); }
  static Status NoMessage() {
    return Status(Code::kCorrupt, "the peer sent a message that nobody asked for");
  }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};

  Status CheckAddress(const Address& address) const;
  Result<Peer*> AddPeer(std::unique_ptr<Stream> stream, Peer::State state);
  Status SayHello(Peer& peer);
  size_t CallBytesMax(const Peer& peer) const;

  void Turn(int timeout_ms);
  int WaitMs(int timeout_ms) const;
  void EndLate();
  void SendQueued();
  void Serve(const ReadyEvent& ready);
  void Accept();
  void StopListening();
  Status TakeMessages(Peer& peer);
  Status TakeMessage(Peer& peer, const Message& message);
  Status TakeHello(Peer& peer, const Message& message);
  Status Admit(Peer& peer);
  Status TakeReply(Peer& peer, const Message& message);
  void MarkJoined(Peer& peer);

  const Setup setup_;
  const EndpointOptions options_;
  Hello hello_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Listener> listener_;
  uint64_t listen_again_ms_ = kNever;
  std::map<PeerId, std::unique_ptr<Peer>> peers_;  // but those that have left
  std::vector<std::unique_ptr<Peer>> left_;        // since the last Poll
  std::set<PeerId> strangers_;
  std::set<PeerId> connecting_;
  PeerId last_peer_ = 0;
  uint32_t accepted_ = 0;  // and joined
  std::vector<Peer*> to_send_;
  std::vector<Peer*> viewed_;
  std::vector<Event> ready_;
  std::vector<Event> returned_;
  uint32_t polls_ = 0;  // since the last one that waited
  std::atomic<bool> is_woken_ = false;
};

}  // namespace skep::rma
