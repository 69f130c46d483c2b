#include "rma/testing/sim_endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace skep::rma {
namespace {

constexpr uint32_t kOperationsMax = 256;
constexpr uint64_t kPostBytesMax = 8 << 20;

constexpr Status kGone(Code::kUnavailable, "the peer is not connected");

uint64_t UntilNs(uint64_t now_ns, int timeout_ms) {
  return timeout_ms < 0 ? UINT64_MAX : now_ns + static_cast<uint64_t>(timeout_ms) * 1'000'000;
}

}  // namespace

SimEndpoint::SimEndpoint(SimFabric& fabric, const EndpointOptions& options)
    : fabric_(fabric),
      options_(options),
      capabilities_({.name = "sim",
                     .one_sided = true,
                     .coherent = fabric.options_.stale_ns_max == 0,
                     .post_operations_max = kOperationsMax,
                     .post_bytes_max = kPostBytesMax}) {
  for (const Region& region : options_.regions) {
    regions_.push_back({region.memory->size(), region.access});
  }
}

SimEndpoint::~SimEndpoint() {
  for (const auto& [peer, end] : peers_) end.link->sides[end.side].endpoint = nullptr;
  for (const auto& [peer, end] : peers_) fabric_.End(end.link, end.side, kGone);
  if (!options_.listen.empty()) fabric_.listeners_.erase(options_.listen);
  for (const Item& item : inbox_) {
    if (!item.is_connecting) continue;
    item.link->sides[1].endpoint = nullptr;
    fabric_.End(item.link, 1, kGone);
  }
}

Result<PeerId> SimEndpoint::Connect(const Address& address, int timeout_ms) {
  if (!address.starts_with("sim:")) {
    return Fail(Code::kInvalidArgument, "the address is not one of this fabric");
  }
  if (fabric_.FindListener(address) == nullptr) {
    return Fail(Code::kUnavailable, "nobody listens at the address", ECONNREFUSED);
  }
  const Link link(new SimLink{.sides = {}, .address = address});
  link->sides[0].state = SimLink::State::kConnecting;
  const PeerId peer = Add(link, 0);
  const uint64_t now_ns = fabric_.clock_.MonotonicNs();
  fabric_.Schedule(now_ns + fabric_.DelayNs(), [&fabric = fabric_, link] {
    SimEndpoint* const listener = fabric.FindListener(link->address);
    if (listener == nullptr) return fabric.End(link, 0, kGone);
    link->sides[1].endpoint = listener;
    listener->inbox_.push_back({.link = link, .is_connecting = true});
    fabric.trace_.Note(Trace::Event::kFabric);
  });
  if (timeout_ms < 0) return peer;
  fabric_.Schedule(UntilNs(now_ns, timeout_ms), [&fabric = fabric_, link] {
    if (link->sides[0].state != SimLink::State::kConnecting) return;
    fabric.End(link, 0, Status(Code::kUnavailable, "the peer did not answer in time", ETIMEDOUT));
  });
  return peer;
}

PeerId SimEndpoint::Add(const Link& link, int side) {
  link->sides[side].endpoint = this;
  link->sides[side].peer = ++last_peer_;
  peers_.emplace(last_peer_, End{link, side});
  return last_peer_;
}

void SimEndpoint::Accept(const Link& link) {
  if (!link->IsSound()) return;
  if (accepted_ >= options_.peers_max) {
    link->sides[1].state = SimLink::State::kLeft;
    return fabric_.EndLater(
        link, 0, fabric_.DelayNs(),
        Status(Code::kUnavailable, "the endpoint there has as many peers as it may"));
  }
  const PeerId peer = Add(link, 1);
  link->sides[1].state = SimLink::State::kJoined;
  ++accepted_;
  Push({.kind = Event::Kind::kJoined, .peer = peer});
  fabric_.TellJoined(link);
}

SimEndpoint::End* SimEndpoint::Find(PeerId peer) {
  const auto at = peers_.find(peer);
  return at == peers_.end() ? nullptr : &at->second;
}

SimEndpoint::End* SimEndpoint::FindJoined(PeerId peer) {
  End* const end = Find(peer);
  const bool is_joined =
      end != nullptr && end->link->sides[end->side].state == SimLink::State::kJoined;
  return is_joined ? end : nullptr;
}

void SimEndpoint::Disconnect(PeerId peer) {
  const End* const end = Find(peer);
  if (end == nullptr) return;
  fabric_.End(end->link, end->side,
              Status(Code::kUnavailable, "this endpoint has disconnected the peer"));
}

uint64_t SimEndpoint::RegionBytes(PeerId peer, uint32_t region) const {
  const End* const end = const_cast<SimEndpoint*>(this)->FindJoined(peer);
  if (end == nullptr) return 0;
  const SimEndpoint* const other = end->link->sides[1 - end->side].endpoint;
  return other == nullptr || region >= other->regions_.size() ? 0 : other->regions_[region].bytes;
}

Status SimEndpoint::Check(const End* end, std::span<const Operation> operations) const {
  if (end == nullptr) return kGone;
  if (operations.size() > kOperationsMax) {
    return Status(Code::kTooLarge, "a Post has too many operations", kOperationsMax);
  }
  const SimEndpoint* const target = end->link->sides[1 - end->side].endpoint;
  uint64_t bytes = 0;
  for (const Operation& operation : operations) {
    bytes += operation.bytes;
    // Of a target that is gone nobody knows yet.
    if (target == nullptr || Allow(target->regions_, operation)) continue;
    return Status(Code::kInvalidArgument, "an operation is not within the peer's regions");
  }
  if (bytes <= kPostBytesMax) return {};
  return Status(Code::kTooLarge, "a Post moves too many bytes", kPostBytesMax);
}

std::shared_ptr<SimPost> SimEndpoint::MakePost(uint64_t token,
                                               std::span<const Operation> operations) {
  Random& random = fabric_.random_;
  auto post = std::make_shared<SimPost>(
      SimPost{.token = token, .operations = {operations.begin(), operations.end()}});
  for (const Operation& operation : operations) {
    post->bytes += operation.bytes;
    if (operation.kind != Operation::Kind::kWrite) continue;
    const auto* const local = static_cast<const std::byte*>(operation.local);
    post->written.insert(post->written.end(), local, local + operation.bytes);
  }
  post->seed = random.Next();
  if (random.Chance(1, 8)) post->unit_bytes = 8;
  const uint64_t units = (post->bytes + post->unit_bytes - 1) / post->unit_bytes;
  post->groups =
      1 + static_cast<uint32_t>(random.Below(std::min<uint64_t>(units, SimFabric::kGroupsMax)));
  post->groups_left = post->groups;
  return post;
}

void SimEndpoint::Post(PeerId peer, uint64_t token, std::span<const Operation> operations) {
  fabric_.TakeTime();
  const End* const end = FindJoined(peer);
  const Status status = Check(end, operations);
  if (!status.ok() || operations.empty()) return PushDone(peer, token, status);
  fabric_.Begin(end->link, end->side, MakePost(token, operations));
}

bool SimEndpoint::Abandon(PeerId peer, uint64_t token) {
  const End* const end = Find(peer);
  if (end == nullptr) return true;
  for (const auto& post : end->link->sides[end->side].posts) {
    if (post->token == token) post->Abandon();
  }
  return true;
}

size_t SimEndpoint::MessageBytesMax(const End& end) const {
  const SimEndpoint* const other = end.link->sides[1 - end.side].endpoint;
  const size_t bytes_max = options_.message_bytes_max;
  return other == nullptr ? bytes_max : std::min(bytes_max, other->options_.message_bytes_max);
}

void SimEndpoint::Call(PeerId peer, uint64_t token, std::string_view request) {
  fabric_.TakeTime();
  End* const end = FindJoined(peer);
  const auto refuse = [&](Status status) {
    Push({.kind = Event::Kind::kReply, .peer = peer, .token = token, .status = status});
  };
  if (end == nullptr) return refuse(kGone);
  const size_t bytes_max = MessageBytesMax(*end);
  if (request.size() > bytes_max) {
    return refuse(Status(Code::kTooLarge, "the message is too long", bytes_max));
  }
  const uint64_t number = ++fabric_.last_call_;
  end->link->sides[end->side].calls[number] = token;
  fabric_.Send(end->link, 1 - end->side,
               {.server = end->link->address,
                .is_to_server = end->side == 0,
                .is_reply = false,
                .call = number,
                .bytes = std::string(request)},
               {});
}

void SimEndpoint::Reply(PeerId peer, uint64_t token, std::string_view reply) {
  fabric_.TakeTime();
  End* const end = FindJoined(peer);
  if (end == nullptr) return;
  const size_t bytes_max = MessageBytesMax(*end);
  const bool is_short = reply.size() <= bytes_max;
  fabric_.Send(end->link, 1 - end->side,
               {.server = end->link->address,
                .is_to_server = end->side == 0,
                .is_reply = true,
                .call = token,
                .bytes = std::string(is_short ? reply : std::string_view())},
               is_short ? Status() : Status(Code::kTooLarge, "the reply is too long", bytes_max));
}

void SimEndpoint::Push(const Event& event, std::string bytes, const Link& link) {
  inbox_.push_back({.event = event, .bytes = std::move(bytes), .link = link});
}

void SimEndpoint::PushDone(PeerId peer, uint64_t token, Status status) {
  Push({.kind = Event::Kind::kDone, .peer = peer, .token = token, .status = status});
}

std::span<const Event> SimEndpoint::Poll(int timeout_ms) {
  fabric_.RunDue();
  if (!HasEvents() && timeout_ms != 0) {
    fabric_.Wait(UntilNs(fabric_.clock_.MonotonicNs(), timeout_ms), [this] { return HasEvents(); });
  }
  is_woken_ = false;
  returned_items_.clear();
  returned_.clear();
  for (; !inbox_.empty(); inbox_.pop_front()) {
    Item& item = inbox_.front();
    if (item.is_connecting) {
      Accept(Link(item.link));
    } else {
      returned_items_.push_back(std::move(item));
    }
  }
  for (Item& item : returned_items_) {
    if (item.link != nullptr) {
      item.link->sides[Find(item.event.peer)->side].unsent_bytes -= item.bytes.size();
    }
    item.event.bytes = item.bytes;
    returned_.push_back(item.event);
  }
  return returned_;
}

bool SimEndpoint::Fence(PeerId peer) {
  Disconnect(peer);
  const End* const end = Find(peer);
  if (end == nullptr) return true;
  SimLink::Side& side = end->link->sides[end->side];
  const uint64_t now_ns = fabric_.clock_.MonotonicNs();
  if (side.fence_ns == 0) {
    side.fence_ns = now_ns;
    if (fabric_.random_.Chance(1, 2)) side.fence_ns += fabric_.NoticeNs();
    fabric_.clock_.Remind(side.fence_ns);
  }
  return now_ns >= side.fence_ns;
}

}  // namespace skep::rma
