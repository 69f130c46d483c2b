#include "pool/client_session.h"

#include <algorithm>

#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr int kPollMs = 10;

}  // namespace

ClientSession::ClientSession(std::unique_ptr<rma::Endpoint> endpoint, Clock& clock,
                             MapSource source)
    : endpoint_(std::move(endpoint)),
      clock_(clock),
      source_(std::move(source)),
      map_(source_()),
      index_servers_(*endpoint_),
      memory_servers_(*endpoint_) {}

ClientSession::~ClientSession() = default;

void ClientSession::RefreshMap() {
  const uint64_t epoch = map_.epoch;
  map_ = source_();
  if (map_.epoch == epoch) PollOnce();
}

rma::PeerId ClientSession::PeerOf(To to) {
  const bool wants_sorted = to == To::kSortedServer && map_.sorted_server != 0;
  const uint32_t server = wants_sorted ? map_.sorted_server : map_.hash_server;
  const auto at = map_.index_servers.find(server);
  if (at == map_.index_servers.end()) return 0;
  const rma::PeerId peer = index_servers_.Find(server, at->second, now_ns());
  if (server == map_.hash_server && peer != 0 && peer != hash_peer_) {
    hash_peer_ = peer;
    ++table_;
    lease_until_ns_ = 0;
    buckets_ = 1;
  }
  return peer;
}

rma::PeerId ClientSession::MemoryPeer(uint32_t server) {
  const auto at = map_.memory_servers.find(server);
  if (at == map_.memory_servers.end()) return 0;
  return memory_servers_.Find(server, at->second, now_ns());
}

template <typename Find>
rma::PeerId ClientSession::Await(Find find) {
  for (;;) {
    const rma::PeerId peer = find();
    if (peer != 0) return peer;
    if (IsLate()) return 0;
    PollOnce();
    map_ = source_();
  }
}

void ClientSession::PollOnce() {
  for (const rma::Event& event : endpoint_->Poll(kPollMs)) Handle(event);
}

void ClientSession::Handle(const rma::Event& event) {
  switch (event.kind) {
    case rma::Event::Kind::kJoined:
    case rma::Event::Kind::kLeft:
      index_servers_.Handle(event);
      memory_servers_.Handle(event);
      if (event.kind == rma::Event::Kind::kLeft) greeted_.erase(event.peer);
      break;
    case rma::Event::Kind::kDone:
      if (event.token < first_post_) break;
      --posts_;
      if (!event.status.ok()) post_failed_ = true;
      break;
    case rma::Event::Kind::kReply:
      if (event.token != call_token_) break;
      reply_.has_come = true;
      reply_.is_good = event.status.ok();
      reply_.bytes.assign(event.bytes);
      break;
    case rma::Event::Kind::kRequest:
      break;
  }
}

// In as many posts as the fabric's limits want.
void ClientSession::Post(rma::PeerId peer, std::span<const rma::Operation> operations) {
  const rma::Capabilities& can = endpoint_->capabilities();
  for (auto left = operations; !left.empty();) {
    size_t count = 0;
    uint64_t bytes = 0;
    while (count < left.size() && count < can.post_operations_max &&
           (count == 0 || bytes + left[count].bytes <= can.post_bytes_max)) {
      bytes += left[count++].bytes;
    }
    endpoint_->Post(peer, next_token_++, left.first(count));
    left = left.subspan(count);
    ++posts_;
  }
  posted_to_.push_back(peer);
  for (const rma::Operation& operation : operations) {
    const bool is_read = operation.kind == rma::Operation::Kind::kRead;
    ++(is_read ? statistics_.reads : statistics_.writes);
    (is_read ? statistics_.read_bytes : statistics_.written_bytes) += operation.bytes;
  }
}

bool ClientSession::Run(const Round& round) {
  ++statistics_.rounds;
  for (const auto& [server, operations] : round.memory_) {
    const bool writes =
        !operations.empty() && operations.front().kind == rma::Operation::Kind::kWrite;
    if (writes && !Greet(server)) return false;
  }
  first_post_ = next_token_;
  post_failed_ = false;
  posted_to_.clear();
  if (!round.index_.empty()) {
    const rma::PeerId peer = PeerOf(To::kHashServer);
    if (peer == 0) return false;
    Post(peer, round.index_);
  }
  for (const auto& [server, operations] : round.memory_) {
    if (operations.empty()) continue;
    const rma::PeerId peer = MemoryPeer(server);
    if (peer != 0) Post(peer, operations);
    if (peer == 0) post_failed_ = true;
  }
  while (posts_ > 0) {
    // The bytes are the caller's again only when each post has ended, and ending the connection
    // ends those that are still under way.
    const auto events = endpoint_->Poll(kPollMs);
    for (const rma::Event& event : events) Handle(event);
    if (events.empty() && (IsLate() || HasOtherMap())) {
      for (const rma::PeerId peer : posted_to_) endpoint_->Disconnect(peer);
    }
  }
  if (post_failed_) ++statistics_.retries_lost;
  return !post_failed_;
}

std::optional<std::string_view> ClientSession::Call(To to, std::string_view request,
                                                    ReplyCode* code) {
  return Call(Await([&] { return PeerOf(to); }), request, code);
}

std::optional<std::string_view> ClientSession::Call(rma::PeerId peer, std::string_view request,
                                                    ReplyCode* code) {
  *code = ReplyCode::kNotServing;
  if (peer == 0) return std::nullopt;
  ++statistics_.calls;
  reply_ = {};
  call_token_ = next_token_++;
  endpoint_->Call(peer, call_token_, request);
  while (!reply_.has_come && !IsLate() && !HasOtherMap()) PollOnce();
  call_token_ = 0;
  if (!reply_.has_come || !reply_.is_good || reply_.bytes.empty()) return std::nullopt;
  *code = static_cast<ReplyCode>(reply_.bytes[0]);
  if (*code != ReplyCode::kOk) return std::nullopt;
  return std::string_view(reply_.bytes).substr(1);
}

std::optional<PoolStatus> ClientSession::AskForStatus() {
  const char request = static_cast<char>(MessageKind::kStatus);
  ReplyCode code;
  const auto fields = Call(To::kHashServer, {&request, 1}, &code);
  PoolStatus status;
  if (!fields || !DecodeStatus(*fields, &status)) return std::nullopt;
  return status;
}

bool ClientSession::AskToJoin() {
  const char request = static_cast<char>(MessageKind::kJoin);
  ReplyCode code;
  auto fields = Call(To::kHashServer, {&request, 1}, &code);
  uint32_t client = 0;
  uint64_t epoch = 0;
  if (!fields || !TakeNumber(*fields, &client) || !TakeVarint(*fields, &epoch)) return false;
  for (uint64_t* word : {&keys_.index[0], &keys_.index[1], &keys_.tag[0], &keys_.tag[1]}) {
    if (!TakeWord(*fields, word)) return false;
  }
  if (!TakeVarint(*fields, &times_.read_ns_max) || !TakeVarint(*fields, &times_.lease_ns)) {
    return false;
  }
  client_ = client;
  greeted_.clear();
  ++statistics_.joins;
  return epoch == map_.epoch;
}

bool ClientSession::Join() {
  while (client_ == 0) {
    if (IsLate()) return false;
    if (!AskToJoin()) RefreshMap();
  }
  return true;
}

bool ClientSession::Renew() {
  std::string request(1, static_cast<char>(MessageKind::kRenew));
  AppendVarint(request, map_.epoch);
  AppendVarint(request, client_);
  const uint64_t sent_ns = now_ns();
  ReplyCode code;
  auto fields = Call(To::kHashServer, request, &code);
  uint64_t lease_ns = 0;
  if (fields && TakeVarint(*fields, &lease_ns) && TakeVarint(*fields, &buckets_)) {
    lease_until_ns_ = sent_ns + lease_ns;
    ++statistics_.renewals;
    return true;
  }
  if (code == ReplyCode::kUnknownClient) ForgetClient();
  return false;
}

bool ClientSession::TakeLease() {
  if (!Join()) return false;
  return now_ns() + times_.lease_ns / 4 < lease_until_ns_ || Renew() || HasLease();
}

bool ClientSession::Greet(uint32_t server) {
  const rma::PeerId peer = Await([&] { return MemoryPeer(server); });
  if (peer == 0 || greeted_.contains(peer)) return peer != 0;
  std::string request(1, static_cast<char>(MessageKind::kHello));
  AppendVarint(request, client_);
  AppendVarint(request, server);
  ReplyCode code;
  if (Call(peer, request, &code)) {
    greeted_.insert(peer);
    return true;
  }
  // The pool has forgotten this client, and has given its chunks to others.
  if (code == ReplyCode::kUnknownClient) ForgetClient();
  return false;
}

bool ClientSession::LearnRanges() {
  const char request = static_cast<char>(MessageKind::kRanges);
  ReplyCode code;
  auto fields = Call(To::kHashServer, {&request, 1}, &code);
  ChunkRanges ranges;
  if (!fields || !ChunkRanges::Decode(*fields, &ranges)) return false;
  ranges_ = std::move(ranges);
  return true;
}

std::optional<ChunkPlace> ClientSession::PlaceOf(uint32_t chunk) {
  if (chunk >= ranges_.end() && !LearnRanges()) return std::nullopt;
  return ranges_.PlaceOf(chunk);
}

}  // namespace skep::pool
