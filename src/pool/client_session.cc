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
  if (map_.epoch == epoch && !std::exchange(is_hedged_, false)) PollOnce();
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
    no_lease_until_ns_ = 0;
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
rma::PeerId ClientSession::Await(Find find, uint64_t until_ns) {
  for (;;) {
    const rma::PeerId peer = find();
    if (peer != 0) return peer;
    if (IsLate() || now_ns() >= until_ns) return 0;
    PollOnce();
    map_ = source_();
  }
}

void ClientSession::PollOnce() { TakeEvents(kPollMs); }

void ClientSession::TakeEvents(int timeout_ms) {
  for (const rma::Event& event : endpoint_->Poll(timeout_ms)) Handle(event);
}

void ClientSession::Handle(const rma::Event& event) {
  switch (event.kind) {
    case rma::Event::Kind::kJoined:
    case rma::Event::Kind::kLeft:
      index_servers_.Handle(event);
      memory_servers_.Handle(event);
      if (event.kind == rma::Event::Kind::kLeft) {
        greeted_.erase(event.peer);
        recognized_.erase(event.peer);
        hedged_ns_.erase(event.peer);
      }
      break;
    case rma::Event::Kind::kDone:
      if (!hedged_ns_.empty()) hedged_ns_.erase(event.peer);
      if (event.token < first_post_) break;
      if (const auto posted = std::ranges::find(posted_, event.peer, &Posted::peer);
          posted != posted_.end() && posted->posts > 0) {
        --posts_;
        --posted->posts;
        if (event.status.ok()) break;
        post_failed_ = true;
        if (posted->memory_server != 0) Suspect(posted->memory_server);
      }
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
void ClientSession::Post(rma::PeerId peer, uint32_t memory_server,
                         std::span<const rma::Operation> operations) {
  const bool reads = operations.front().kind == rma::Operation::Kind::kRead;
  Posted& posted = posted_.emplace_back(Posted{
      .peer = peer, .memory_server = memory_server, .reads = reads, .first_token = next_token_});
  (reads ? statistics_.reads : statistics_.writes) += operations.size();
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
    (reads ? statistics_.read_bytes : statistics_.written_bytes) += bytes;
    ++posted.posts;
    ++posts_;
  }
  posted.end_token = next_token_;
}

bool ClientSession::Run(const Round& round) {
  ++statistics_.rounds;
  ForgetOldSuspicions();
  for (const auto& [server, operations] : round.memory_) {
    if (operations.empty()) continue;
    const bool writes = operations.front().kind == rma::Operation::Kind::kWrite;
    if (writes ? !Greet(server) : !Recognize(server)) return false;
  }
  first_post_ = next_token_;
  post_failed_ = false;
  is_hedged_ = false;
  posted_.clear();
  if (!round.index_.empty()) {
    const rma::PeerId peer = PeerOf(To::kHashServer);
    if (peer == 0) return false;
    Post(peer, 0, round.index_);
  }
  for (const auto& [server, operations] : round.memory_) {
    if (operations.empty()) continue;
    const rma::PeerId peer = MemoryPeer(server);
    if (peer != 0) Post(peer, server, operations);
    if (peer != 0) continue;
    post_failed_ = true;
    Suspect(server);
  }
  uint64_t progress_ns = posts_ > 0 && places_.has_replicas() ? now_ns() : 0;
  while (posts_ > 0) {
    // The bytes are the caller's again only when each post has ended, and ending the connection
    // ends those that are still under way.
    const auto events = endpoint_->Poll(PatienceMs());
    for (const rma::Event& event : events) Handle(event);
    if (events.empty() && (IsLate() || HasOtherMap())) {
      for (const Posted& posted : posted_) endpoint_->Disconnect(posted.peer);
    } else if (events.empty() && places_.has_replicas()) {
      GiveUpSlow(progress_ns);
    } else if (places_.has_replicas()) {
      progress_ns = now_ns();
    }
  }
  if (post_failed_) {
    ++statistics_.retries_lost;
    places_.Forget();
  } else if (!is_hedged_) {
    hedge_wait_ns_ = kHedgeNs;
    read_wait_ns_ = kReadWaitNs;
    write_wait_ns_ = kWriteWaitNs;
  }
  return !post_failed_ && !is_hedged_;
}

std::optional<std::string_view> ClientSession::Call(To to, std::string_view request,
                                                    ReplyCode* code) {
  const auto fields = Call(Await([&] { return PeerOf(to); }, UINT64_MAX), request, code);
  if (reply_.has_come && reply_.is_good) heard_ns_ = now_ns();
  return fields;
}

std::optional<std::string_view> ClientSession::Call(rma::PeerId peer, std::string_view request,
                                                    ReplyCode* code) {
  *code = ReplyCode::kNotServing;
  reply_ = {};
  if (peer == 0) return std::nullopt;
  ++statistics_.calls;
  call_token_ = next_token_++;
  endpoint_->Call(peer, call_token_, request);
  while (!reply_.has_come && !IsLate() && !HasOtherMap()) PollOnce();
  call_token_ = 0;
  if (!reply_.has_come || !reply_.is_good || reply_.bytes.empty()) return std::nullopt;
  *code = static_cast<ReplyCode>(reply_.bytes[0]);
  if (*code != ReplyCode::kOk) return std::nullopt;
  return std::string_view(reply_.bytes).substr(1);
}

std::string ClientSession::RequestOf(MessageKind kind) const {
  std::string request(1, static_cast<char>(kind));
  AppendVarint(request, map_.epoch);
  AppendVarint(request, client_);
  return request;
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
  may_join_ = code != ReplyCode::kCannotLog;
  uint32_t client = 0;
  uint64_t epoch = 0;
  if (!fields || !TakeNumber(*fields, &client) || !TakeVarint(*fields, &epoch)) return false;
  for (uint64_t* word : {&keys_.index[0], &keys_.index[1], &keys_.tag[0], &keys_.tag[1]}) {
    if (!TakeWord(*fields, word)) return false;
  }
  uint64_t version = 0;
  if (!TakeVarint(*fields, &times_.read_ns_max) || !TakeVarint(*fields, &times_.lease_ns) ||
      !TakeVarint(*fields, &version)) {
    return false;
  }
  TakePlacesVersion(version);
  client_ = client;
  // A memory server knows a connection by one name.
  for (const rma::PeerId peer : greeted_) endpoint_->Disconnect(peer);
  greeted_.clear();
  ++statistics_.joins;
  return epoch == map_.epoch;
}

bool ClientSession::Join() {
  while (client_ == 0) {
    if (IsLate()) return false;
    if (AskToJoin()) return true;
    if (!may_join_) return false;
    RefreshMap();
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
  uint64_t version = 0;
  if (fields && TakeVarint(*fields, &lease_ns) && TakeVarint(*fields, &buckets_) &&
      TakeVarint(*fields, &version)) {
    TakePlacesVersion(version);
    leased_chunks_.clear();
    for (uint32_t chunk = 0; TakeNumber(*fields, &chunk);) leased_chunks_.push_back(chunk);
    lease_until_ns_ = sent_ns + lease_ns;
    ++statistics_.renewals;
    return true;
  }
  if (code == ReplyCode::kUnknownClient) ForgetClient();
  if (code == ReplyCode::kNotServing) no_lease_until_ns_ = now_ns() + times_.lease_ns / 16;
  return false;
}

bool ClientSession::TakeLease(uint64_t* at_ns) {
  if (client_ != 0 && *at_ns + times_.lease_ns / 4 < lease_until_ns_) return true;
  const bool has_lease = Join() && ((now_ns() >= no_lease_until_ns_ && Renew()) || HasLease());
  *at_ns = now_ns();
  return has_lease;
}

// The answer to a hello in the name of this client, before it writes, or of nobody, before it
// reads. A server that does not answer for as long as a write, or a read, may take, or is another
// one than it was taken for, is suspected.
bool ClientSession::SayHello(rma::PeerId peer, uint32_t server, uint32_t client, ReplyCode* code) {
  std::string request(1, static_cast<char>(MessageKind::kHello));
  AppendVarint(request, client);
  AppendVarint(request, server);
  const uint64_t deadline_ns = deadline_ns_;
  const uint64_t wait_ns = client == 0 ? kReadWaitNs : kWriteWaitNs;
  if (places_.has_replicas()) deadline_ns_ = std::min(deadline_ns, now_ns() + wait_ns);
  const bool is_well = Call(peer, request, code).has_value();
  deadline_ns_ = deadline_ns;
  if (is_well) {
    recognized_.insert(peer);
    suspects_.erase(server);
  } else {
    Suspect(server);
    endpoint_->Disconnect(peer);
  }
  return is_well;
}

bool ClientSession::Recognize(uint32_t server) {
  const rma::PeerId peer = MemoryPeer(server);
  ReplyCode code;
  return peer == 0 || recognized_.contains(peer) || SayHello(peer, server, 0, &code);
}

bool ClientSession::Greet(uint32_t server) {
  const uint64_t until_ns = places_.has_replicas() ? now_ns() + kWriteWaitNs : UINT64_MAX;
  const rma::PeerId peer = Await([&] { return MemoryPeer(server); }, until_ns);
  if (peer == 0) Suspect(server);
  if (peer == 0 || greeted_.contains(peer)) return peer != 0;
  ReplyCode code;
  if (SayHello(peer, server, client_, &code)) {
    greeted_.insert(peer);
    return true;
  }
  // The pool has forgotten this client, and has given its chunks to others.
  if (code == ReplyCode::kUnknownClient) ForgetClient();
  return false;
}

bool ClientSession::LearnPlaces(uint32_t chunk) {
  const uint32_t first = chunk - chunk % ClientPlaces::kChunksAtOnce;
  std::string request(1, static_cast<char>(MessageKind::kPlaces));
  AppendVarint(request, first);
  AppendVarint(request, ClientPlaces::kChunksAtOnce);
  ReplyCode code;
  const auto fields = Call(To::kHashServer, request, &code);
  if (!fields || fields->empty()) return false;
  removes_lost_ = fields->front() != 0;
  return places_.Learn(first, fields->substr(1));
}

ClientSession::Where ClientSession::FindPlace(uint32_t chunk, uint8_t gen, FramePlace* place) {
  const ChunkFrames* frames = places_.Find(chunk, gen);
  if (frames == nullptr) {
    if (!LearnPlaces(chunk)) return Where::kStale;
    frames = places_.Find(chunk, gen);
    if (frames == nullptr) {
      return places_.IsWithout(chunk, gen) ? Where::kLost : Where::kStale;
    }
  }
  *place = places_.PlaceOf(suspects_.empty() ? (*frames)[0] : ChooseFrame(*frames));
  return Where::kHere;
}

uint32_t ClientSession::ChooseFrame(const ChunkFrames& frames) const {
  uint32_t chosen = frames[0];
  uint64_t chosen_until_ns = UINT64_MAX;
  for (const uint32_t frame : frames) {
    if (frame == kNoFrame) break;
    const auto suspect = suspects_.find(places_.PlaceOf(frame).server);
    const uint64_t until_ns = suspect == suspects_.end() ? 0 : suspect->second;
    if (until_ns < chosen_until_ns) chosen = frame;
    chosen_until_ns = std::min(chosen_until_ns, until_ns);
  }
  return chosen;
}

void ClientSession::TakePlacesVersion(uint64_t version) {
  if (version != places_version_) places_.Forget();
  places_version_ = version;
}

std::optional<FramePlace> ClientSession::PlaceOf(uint32_t frame) {
  if (!places_.Has(frame) && (!LearnPlaces(0) || !places_.Has(frame))) return std::nullopt;
  return places_.PlaceOf(frame);
}

bool ClientSession::ReadChunk(uint32_t chunk, uint8_t gen, std::byte* to) {
  constexpr uint32_t kPieceBytes = 64 * 1024;
  for (; !IsLate(); RefreshMap()) {
    FramePlace place;
    if (Locate(chunk, gen, &place) != Where::kHere) return false;
    Round reads;
    for (uint32_t at = 0; at < kChunkBytes; at += kPieceBytes) {
      reads.ReadMemory(place, at, kPieceBytes, to + at);
    }
    if (Run(reads)) return true;
  }
  return false;
}

bool ClientSession::LearnLease(uint32_t chunk, uint8_t gen, const ChunkFrames& frames,
                               uint64_t version, std::vector<FramePlace>* places) {
  TakePlacesVersion(version);
  places->clear();
  for (const uint32_t frame : frames) {
    if (frame == kNoFrame) break;
    const auto place = PlaceOf(frame);
    if (!place) return false;
    places->push_back(*place);
  }
  places_.Learn(chunk, gen, frames);
  return !places->empty();
}

void ClientSession::Suspect(uint32_t server, uint64_t for_ns) {
  uint64_t& until_ns = suspects_[server];
  until_ns = std::max(until_ns, now_ns() + for_ns);
}

void ClientSession::ForgetOldSuspicions() {
  if (suspects_.empty()) return;
  std::erase_if(suspects_, [now = now_ns()](const auto& suspect) { return now >= suspect.second; });
}

int ClientSession::PatienceMs() const {
  constexpr uint64_t kNsOfMs = 1'000'000;
  if (!places_.has_replicas()) return kPollMs;
  return static_cast<int>(std::min<uint64_t>(kPollMs, hedge_wait_ns_ / kNsOfMs));
}

void ClientSession::GiveUpSlow(uint64_t progress_ns) {
  ForgetOldSuspicions();
  const uint64_t waited_ns = now_ns() - progress_ns;
  for (Posted& posted : posted_) {
    const uint32_t server = posted.memory_server;
    if (server == 0 || posted.posts == 0 || suspects_.contains(server)) continue;
    uint64_t& wait_ns = posted.reads ? read_wait_ns_ : write_wait_ns_;
    bool gives_up = waited_ns >= wait_ns;
    if (posted.reads && waited_ns >= hedge_wait_ns_) {
      gives_up = gives_up || Hangs(posted.peer);
      if (!gives_up && suspects_.empty() && Hedge(posted)) continue;
    }
    if (!gives_up) continue;
    Suspect(server);
    endpoint_->Disconnect(posted.peer);
    wait_ns = std::min(2 * wait_ns, kWaitNsMax);
  }
}

bool ClientSession::Hangs(rma::PeerId peer) const {
  const auto hedged = hedged_ns_.find(peer);
  return hedged != hedged_ns_.end() && now_ns() - hedged->second >= kReadWaitNs;
}

bool ClientSession::Hedge(Posted& posted) {
  for (uint64_t token = posted.first_token; token < posted.end_token; ++token) {
    if (!endpoint_->Abandon(posted.peer, token)) return false;
  }
  hedged_ns_.try_emplace(posted.peer, now_ns());
  Suspect(posted.memory_server, kSlowNs);
  posts_ -= std::exchange(posted.posts, 0);
  is_hedged_ = true;
  hedge_wait_ns_ = std::min(2 * hedge_wait_ns_, kReadWaitNs);
  ++statistics_.retries_slow;
  return true;
}

void ClientSession::LookAtPlaces() {
  const uint64_t now = now_ns();
  if (now < look_at_places_ns_ || client_ == 0) return;
  look_at_places_ns_ = now + times_.lease_ns;
  if (now + times_.lease_ns / 4 >= lease_until_ns_) Renew();
}

}  // namespace skep::pool
