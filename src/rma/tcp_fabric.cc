#include "rma/tcp_fabric.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prefetch.h"
#include "rma/post_message.h"
#include "rma/stream_endpoint.h"
#include "rma/word_copy.h"

namespace skep::rma {
namespace {

using Kind = Operation::Kind;

class TcpEndpoint final : public StreamEndpoint {
 public:
  TcpEndpoint(Network& network, Clock& clock, const EndpointOptions& options)
      : StreamEndpoint({.network = network,
                        .clock = clock,
                        .kind = FabricKind::kTcp,
                        .post_bytes_max = kPostBodyBytesMax,
                        .polls_between_waits = 1},
                       options) {}

  Status Open() { return Begin(); }

  const Capabilities& capabilities() const override { return capabilities_; }
  void Post(PeerId peer, uint64_t token, std::span<const Operation> operations) override;
  bool Abandon(PeerId peer, uint64_t token) override;
  bool Fence(PeerId peer) override {
    Disconnect(peer);
    return true;
  }

 private:
  struct PendingPost {
    uint64_t token = 0;
    std::vector<Operation> operations;
    bool is_abandoned = false;  // what is read goes nowhere
    size_t sent_bytes = 0;      // the body of its message
    size_t answer_bytes = 0;    // the message that comes back
  };

  struct TcpPeer final : Peer {
    using Peer::Peer;

    std::deque<PendingPost> posts;  // the first sent_posts of them are with the target
    size_t sent_posts = 0;
    size_t answer_bytes = 0;  // that these will bring
    uint64_t last_post = 0;
    uint64_t last_posted = 0;
  };

  using StreamEndpoint::Disconnect;

  std::unique_ptr<Peer> NewPeer(std::unique_ptr<Stream> stream) override {
    return std::make_unique<TcpPeer>(std::move(stream));
  }
  Status Take(Peer& peer, const Message& message) override;
  void AddWaiting(Peer& peer) override;
  void EndOperations(Peer& peer) override;

  uint64_t PostBytesMax(const Peer& peer) const;
  Status Check(const Peer* peer, std::span<const Operation> operations) const;
  bool HasRoomFor(const TcpPeer& peer, const PendingPost& post) const;
  Status CarryOut(Peer& peer, const Message& post);
  Status Finish(TcpPeer& peer, const Message& posted);
  std::byte* At(const Operation& operation) const {
    return options().regions[operation.region].memory->begin() + operation.offset;
  }
  void AddDone(PeerId peer, uint64_t token, Status status) {
    AddEvent({.kind = Event::Kind::kDone, .peer = peer, .token = token, .status = status});
  }

  const Capabilities capabilities_ = {
      .name = "tcp",
      .needs_target_progress = true,
      .post_operations_max = kPostOperationsMax,
      .post_bytes_max = std::min<uint64_t>(kPostBytesMax, options().unsent_bytes_max / 2)};
  std::vector<Operation> carried_out_;  // memory that CarryOut uses again
};

uint64_t TcpEndpoint::PostBytesMax(const Peer& peer) const {
  return std::min(capabilities_.post_bytes_max, peer.hello.unsent_bytes_max / 2);
}

Status TcpEndpoint::Check(const Peer* peer, std::span<const Operation> operations) const {
  if (peer == nullptr) return Gone();
  if (operations.size() > kPostOperationsMax) {
    return Status(Code::kTooLarge, "a Post has too many operations", kPostOperationsMax);
  }
  for (const Operation& operation : operations) {
    if (Allow(peer->hello.regions, operation)) continue;
    return Status(Code::kInvalidArgument, "an operation is not within the peer's regions");
  }
  if (PostBytesOf(operations) > PostBytesMax(*peer)) {
    return Status(Code::kTooLarge, "a Post moves too many bytes", PostBytesMax(*peer));
  }
  return {};
}

void TcpEndpoint::Post(PeerId id, uint64_t token, std::span<const Operation> operations) {
  auto* const peer = static_cast<TcpPeer*>(FindJoined(id));
  const Status status = Check(peer, operations);
  if (!status.ok() || operations.empty()) return AddDone(id, token, status);
  peer->posts.push_back(
      {.token = token,
       .operations = {operations.begin(), operations.end()},
       .sent_bytes = EncodedPostBytes(operations),
       .answer_bytes = MessageStream::kHeaderBytes + BytesOf(operations, Kind::kRead)});
  QueueToSend(*peer);
}

bool TcpEndpoint::Abandon(PeerId id, uint64_t token) {
  auto* const peer = static_cast<TcpPeer*>(FindJoined(id));
  if (peer == nullptr) return true;
  for (PendingPost& post : peer->posts) {
    if (post.token == token) post.is_abandoned = true;
  }
  return true;
}

bool TcpEndpoint::HasRoomFor(const TcpPeer& peer, const PendingPost& post) const {
  const size_t unsent = peer.messages.unsent_bytes();
  if (unsent > 0 && unsent + post.sent_bytes > options().unsent_bytes_max / 2) return false;
  return peer.answer_bytes == 0 ||
         peer.answer_bytes + post.answer_bytes <= peer.hello.unsent_bytes_max / 2;
}

void TcpEndpoint::AddWaiting(Peer& to) {
  auto& peer = static_cast<TcpPeer&>(to);
  while (peer.sent_posts < peer.posts.size()) {
    const PendingPost& post = peer.posts[peer.sent_posts];
    if (!HasRoomFor(peer, post)) return;
    char* const body =
        peer.messages.Add({.kind = MessageKind::kPost, .token = ++peer.last_post}, post.sent_bytes);
    EncodePost(post.operations, body);
    peer.answer_bytes += post.answer_bytes;
    ++peer.sent_posts;
  }
}

Status TcpEndpoint::Take(Peer& peer, const Message& message) {
  if (message.kind == MessageKind::kPost) return CarryOut(peer, message);
  if (message.kind == MessageKind::kPosted) return Finish(static_cast<TcpPeer&>(peer), message);
  return NoMessage();
}

// As the target. A peer knows the regions, and asks for nothing that they do not allow.
Status TcpEndpoint::CarryOut(Peer& peer, const Message& post) {
  if (!DecodePost(post.body, regions(), carried_out_)) {
    return Status(Code::kCorrupt, "the peer sent operations that are not within the regions");
  }
  for (const Operation& operation : carried_out_) FetchLine(At(operation));
  char* to = peer.messages.Add({.kind = MessageKind::kPosted, .token = post.token},
                               BytesOf(carried_out_, Kind::kRead));
  for (const Operation& operation : carried_out_) {
    if (operation.kind == Kind::kWrite) {
      WriteWords(operation.local, At(operation), operation.bytes);
    } else {
      ReadWords(At(operation), to, operation.bytes);
      to += operation.bytes;
    }
  }
  QueueToSend(peer);
  return {};
}

Status TcpEndpoint::Finish(TcpPeer& peer, const Message& posted) {
  if (peer.sent_posts == 0 || posted.token != ++peer.last_posted) return NoMessage();
  const PendingPost& post = peer.posts.front();
  if (MessageStream::kHeaderBytes + posted.body.size() != post.answer_bytes) return NoMessage();
  const char* from = posted.body.data();
  for (const Operation& operation : post.operations) {
    if (operation.kind == Kind::kWrite || post.is_abandoned) continue;
    std::memcpy(operation.local, from, operation.bytes);
    from += operation.bytes;
  }
  AddDone(peer.id, post.token, {});
  peer.answer_bytes -= post.answer_bytes;
  --peer.sent_posts;
  peer.posts.pop_front();
  if (peer.sent_posts < peer.posts.size()) QueueToSend(peer);
  return {};
}

void TcpEndpoint::EndOperations(Peer& left) {
  auto& peer = static_cast<TcpPeer&>(left);
  for (const PendingPost& post : peer.posts) AddDone(peer.id, post.token, Gone());
  peer.posts.clear();
}

}  // namespace

Result<std::unique_ptr<Endpoint>> TcpFabric::Open(const EndpointOptions& options) {
  auto endpoint = std::make_unique<TcpEndpoint>(network_, clock_, options);
  if (const Status s = endpoint->Open(); !s.ok()) return Fail(s);
  return endpoint;
}

}  // namespace skep::rma
