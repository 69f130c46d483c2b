#include "pool/hash_role.h"

#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr uint64_t kUpkeepNs = 20'000'000;
constexpr size_t kCommitsMax = 4096;  // entries of one request
constexpr size_t kCommitBytesMax = 4 << 20;

bool IsCommit(const LogEntry& entry) {
  return entry.kind == LogEntry::Kind::kPut || entry.kind == LogEntry::Kind::kDelete;
}

// Whether these are entries that the client may send; counts all, and those that store.
bool AreCommits(std::string_view fields, uint32_t client, const DigestKeys& keys, size_t* count,
                uint64_t* puts) {
  for (; !fields.empty(); ++*count) {
    LogEntry entry;
    if (!DecodeEntry(fields, &entry) || !IsCommit(entry) || entry.client != client) return false;
    if (entry.kind != LogEntry::Kind::kPut) continue;
    ++*puts;
    const uint64_t index = SipHash(keys.index, entry.key);
    if (entry.slot.signature() != KeyDigest::SignatureOf(index)) return false;
  }
  return true;
}

}  // namespace

HashRole::HashRole(IndexContext& context, std::atomic<uint64_t>& applied)
    : context_(context),
      applied_(applied),
      next_index_(context.state.applied() + 1),
      next_client_(context.state.next_client()),
      placement_(context.state.chunks()),
      copies_(context.state.chunks(), placement_, context.replicas),
      transfer_(context),
      sorted_servers_(context.endpoint),
      memory_calls_(context),
      memory_watch_(context, memory_calls_, [this](const LogEntry& entry) { Enter(entry); }),
      chunks_(context, memory_calls_, [this](const LogEntry& entry) { Enter(entry); }),
      free_space_(context) {}

void HashRole::MapChanged() {
  if (context_.map.epoch != epoch_) {
    epoch_ = context_.map.epoch;
    transfer_.HandleEpoch();
    if (is_solo()) ShipAgain();
  }
  const uint32_t newcomer = transfer_.newcomer();
  if (newcomer != 0 && !context_.map.index_servers.contains(newcomer)) EndTransfer();
  if (is_solo()) authority_until_ns_ = UINT64_MAX;
  // A client is taken to have been heard of now.
  const uint64_t now = context_.now_ns();
  context_.state.sessions().ForEach([&](uint32_t client) { seen_ns_.try_emplace(client, now); });
  applied_.store(AppliedWord(context_.map.epoch, context_.state.applied()).bits(),
                 std::memory_order_release);
  memory_watch_.Turn();
}

bool HashRole::Handle(const rma::Event& event, MessageKind kind, std::string_view fields) {
  switch (kind) {
    case MessageKind::kJoin:
      Join(event);
      return true;
    case MessageKind::kCommit:
      Commit(event, fields);
      return true;
    case MessageKind::kRenew:
      Renew(event, fields);
      return true;
    case MessageKind::kLease:
      LeaseChunks(event, fields);
      return true;
    case MessageKind::kSeal:
      SealChunks(event, fields);
      return true;
    case MessageKind::kPlaces:
      TellPlaces(event, fields);
      return true;
    case MessageKind::kFind:
      Find(event, fields);
      return true;
    case MessageKind::kCopy:
      OfferCopy(event, fields);
      return true;
    case MessageKind::kAdopt:
      Adopt(event, fields);
      return true;
    case MessageKind::kDrain:
      Drain(event, fields);
      return true;
    case MessageKind::kServers:
      TellServers(event);
      return true;
    case MessageKind::kStatus:
      TellStatus(event);
      return true;
    case MessageKind::kVictims:
      TellVictims(event, fields);
      return true;
    default:
      return false;
  }
}

bool HashRole::TakeEpoch(const rma::Event& event, std::string_view* fields) {
  uint64_t epoch = 0;
  if (!TakeVarint(*fields, &epoch)) {
    context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
    return false;
  }
  if (epoch != context_.map.epoch) {
    context_.Refuse(event.peer, event.token, ReplyCode::kWrongEpoch);
    return false;
  }
  return true;
}

bool HashRole::TakeClient(const rma::Event& event, std::string_view* fields, uint32_t* client) {
  if (!TakeEpoch(event, fields)) return false;
  if (!TakeNumber(*fields, client)) {
    context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
    return false;
  }
  if (!context_.state.sessions().Knows(*client)) {
    context_.Refuse(event.peer, event.token, ReplyCode::kUnknownClient);
    return false;
  }
  seen_ns_[*client] = context_.now_ns();
  return true;
}

bool HashRole::CanLog(const rma::Event& event) {
  if (context_.log == nullptr || context_.log->status().ok()) return true;
  context_.Refuse(event.peer, event.token, ReplyCode::kCannotLog);
  return false;
}

void HashRole::Join(const rma::Event& event) {
  if (!CanLog(event)) return;
  Group& group = OpenGroup(1, 0);
  const size_t begin = group.entries.size();
  Enter(group, {.kind = LogEntry::Kind::kJoin, .client = next_client_++});
  Await(group, event, MessageKind::kJoin, begin);
}

void HashRole::Await(Group& group, const rma::Event& event, MessageKind kind, size_t begin) {
  group.calls.push_back({.peer = event.peer,
                         .token = event.token,
                         .kind = kind,
                         .begin = begin,
                         .end = group.entries.size()});
}

void HashRole::RefuseWaiting() {
  for (const Group& group : groups_) {
    for (const WaitingCall& call : group.calls) {
      context_.Refuse(call.peer, call.token, ReplyCode::kNotServing);
    }
  }
  groups_.clear();
}

void HashRole::Commit(const rma::Event& event, std::string_view fields) {
  uint32_t client = 0;
  if (!TakeClient(event, &fields, &client)) return;
  size_t count = 0;
  uint64_t puts = 0;
  const size_t bytes = fields.size();
  if (bytes > kCommitBytesMax ||
      !AreCommits(fields, client, context_.state.keys(), &count, &puts) || count > kCommitsMax) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  if (!CanLog(event)) return;
  if (pending() + count > kPendingMax) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  HashIndex* const hash = context_.state.hash();
  // Deletes need no room.
  if (puts > 0 && hash != nullptr && !hash->Reserve(pending() + puts)) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kPoolFull);
  }
  Group& group = OpenGroup(count, bytes);
  const size_t begin = group.entries.size();
  LogEntry entry;
  while (DecodeEntry(fields, &entry)) Enter(group, entry);
  Await(group, event, MessageKind::kCommit, begin);
}

void HashRole::Renew(const rma::Event& event, std::string_view fields) {
  uint32_t client = 0;
  if (!TakeClient(event, &fields, &client)) return;
  if (!HasAuthority() || context_.state.hash() == nullptr) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  fields_.clear();
  AppendVarint(fields_, std::min(context_.times.lease_ns, authority_until_ns_ - context_.now_ns()));
  AppendVarint(fields_, context_.state.hash()->buckets());
  AppendVarint(fields_, context_.state.chunks().version());
  for (const uint32_t chunk : context_.state.chunks().LeasedBy(client)) {
    AppendVarint(fields_, chunk);
  }
  context_.Answer(event.peer, event.token, fields_);
}

void HashRole::Find(const rma::Event& event, std::string_view fields) {
  size_t count = 0;
  if (!TakeEpoch(event, &fields)) return;
  if (!TakeNumber(fields, &count) || count > kFindsMax) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  if (!HasAuthority()) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  asked_.resize(count);
  for (std::string_view& key : asked_) {
    if (!TakeBytes(fields, &key)) {
      return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
    }
  }
  context_.state.Find(asked_, &found_);
  fields_.clear();
  for (const Slot slot : found_) AppendSlot(fields_, slot);
  context_.Answer(event.peer, event.token, fields_);
}

void HashRole::TellStatus(const rma::Event& event) {
  const IndexState& state = context_.state;
  fields_.clear();
  EncodeStatus({.items = state.items(),
                .chunks = state.chunks().capacity(),
                .free_chunks = state.chunks().free_count(),
                .clients = state.sessions().size(),
                .live_units = state.chunks().LiveUnitsOfFrames(),
                .under_replicated_chunks = copies_.CountUnderReplicated(),
                .lost_chunks = state.chunks().CountLost(),
                .cleaner = free_space_.figures()},
               fields_);
  context_.Answer(event.peer, event.token, fields_);
}

HashRole::Group& HashRole::OpenGroup(size_t entries, size_t bytes) {
  const bool has_room = !groups_.empty() && !groups_.back().is_closed &&
                        groups_.back().entries.size() + entries <= kGroupEntriesMax &&
                        groups_.back().entries.key_bytes() + bytes <= kGroupBytesMax;
  if (!has_room) groups_.push_back({.entries = LogBatch(next_index_)});
  return groups_.back();
}

void HashRole::Enter(Group& group, const LogEntry& entry) {
  group.entries.Add(entry);
  ++next_index_;
}

void HashRole::Enter(const LogEntry& entry) { Enter(OpenGroup(1, 0), entry); }

bool HashRole::Turn() {
  const uint64_t now = context_.now_ns();
  if (HasAuthority()) {
    without_authority_ns_ = 0;
  } else if (without_authority_ns_ == 0) {
    without_authority_ns_ = now;
  }
  LogGroups();
  bool did = !is_solo() && ShipGroups();
  if (ApplyGroups()) did = true;
  if (!is_paired() && StepTransfer()) did = true;
  if (now >= upkeep_ns_) {
    upkeep_ns_ = now + kUpkeepNs;
    memory_watch_.Turn();
    chunks_.LookForEmptyChunks();
    ForgetSilentClients();
    ShedDrained();
  }
  return chunks_.Recycle() || did;
}

rma::PeerId HashRole::SortedPeer() {
  const auto at = context_.map.index_servers.find(sorted_server());
  if (at == context_.map.index_servers.end()) return 0;
  return sorted_servers_.Find(at->first, at->second, context_.now_ns());
}

// What the log cannot take now waits for a later turn. While some groups are on their way the last
// one grows.
void HashRole::LogGroups() {
  for (size_t i = 0; i < std::min(groups_.size(), kShippedMax); ++i) {
    Group& group = groups_[i];
    if (group.is_appended) continue;
    if (!AppendEntries(context_.log, group.entries, &group.needed)) return;
    group.is_appended = group.is_closed = true;
  }
}

bool HashRole::MayApply(const Group& group) const {
  if (!is_solo() && (!group.is_shipped || group.entries.end_index() - 1 > acknowledged_)) {
    return false;
  }
  return group.is_appended && group.needed.IsReached(context_.log);
}

bool HashRole::ApplyGroups() {
  bool did = false;
  for (; !groups_.empty() && MayApply(groups_.front()); did = true) {
    ApplyFront();
    LogGroups();
  }
  return did;
}

bool HashRole::ShipGroups() {
  const rma::PeerId peer = SortedPeer();
  if (peer == 0 || (!is_paired() && !transfer_.TakesLog())) return false;
  bool did = false;
  for (Group& group : groups_) {
    if (shipments_.size() >= kShippedMax) return did;
    if (group.is_shipped) continue;
    group.is_shipped = true;
    group.is_closed = true;
    Ship(peer, group.entries);
    did = true;
  }
  if (shipments_.empty() && context_.now_ns() >= last_sent_ns_ + context_.times.lease_ns / 4) {
    Ship(peer, LogBatch(next_index_));
    did = true;
  }
  return did;
}

// Of no entries: only to keep the authority.
void HashRole::Ship(rma::PeerId peer, const LogBatch& entries) {
  fields_.assign(1, static_cast<char>(MessageKind::kShip));
  AppendVarint(fields_, context_.map.epoch + (is_paired() ? 0 : 1));
  entries.EncodeTo(fields_);
  last_sent_ns_ = context_.now_ns();
  // T3: from now on another server may come to take over.
  authority_until_ns_ = std::min(authority_until_ns_, last_sent_ns_ + context_.times.lease_ns);
  shipments_.push_back({.token = next_token_, .sent_ns = last_sent_ns_});
  context_.endpoint.Call(peer, next_token_++, fields_);
}

bool HashRole::HandleReply(const rma::Event& event) {
  std::string_view fields = event.bytes;
  const bool is_good =
      event.status.ok() && !fields.empty() && fields[0] == static_cast<char>(ReplyCode::kOk);
  if (is_good) fields.remove_prefix(1);
  const auto told = is_good ? std::optional(fields) : std::nullopt;
  if (memory_calls_.HandleReply(event.token, told)) return true;
  const StateTransfer::Answer answer = transfer_.HandleReply(event);
  if (answer == StateTransfer::Answer::kRefused) context_.endpoint.Disconnect(event.peer);
  if (answer != StateTransfer::Answer::kNotMine) return true;
  const auto shipment = std::ranges::find(shipments_, event.token, &Shipment::token);
  if (shipment == shipments_.end()) return false;
  const uint64_t sent_ns = shipment->sent_ns;
  shipments_.erase(shipment);
  uint64_t end_index = 0;
  if (is_good && TakeVarint(fields, &end_index)) {
    Acknowledge(sent_ns, end_index);
  } else if (event.status.ok()) {
    // The sorted server has another map. Nothing is shipped until the connection is made again.
    context_.endpoint.Disconnect(event.peer);
  }
  return true;
}

void HashRole::HandlePeer(const rma::Event& event) {
  memory_calls_.HandlePeer(event);
  const uint32_t server = sorted_servers_.Handle(event);
  if (server == 0 || event.kind != rma::Event::Kind::kLeft || server != sorted_server()) return;
  ShipAgain();
  if (!is_paired()) EndTransfer();
}

std::optional<PoolRoles> HashRole::wanted_roles() const {
  if (!IsParted()) return transfer_.wanted();
  return PoolRoles{.epoch = context_.map.epoch + 1, .hash_server = context_.map.hash_server};
}

bool HashRole::IsParted() const {
  return is_paired() && without_authority_ns_ != 0 &&
         context_.now_ns() > without_authority_ns_ + kPartedLeases * context_.times.lease_ns;
}

// What was under way is shipped once more.
void HashRole::ShipAgain() {
  shipments_.clear();
  acknowledged_ = 0;
  for (Group& group : groups_) group.is_shipped = false;
}

// A transfer begins, goes on, or has taken too long.
bool HashRole::StepTransfer() {
  if (is_solo() && !transfer_.Begin()) return false;
  const rma::PeerId peer = SortedPeer();
  if (peer == 0) {
    if (!is_solo() || !transfer_.IsOld()) return false;
    EndTransfer();
    return true;
  }
  const bool is_late = !shipments_.empty() &&
                       context_.now_ns() > shipments_.front().sent_ns + context_.times.lease_ns;
  if (!is_late && !transfer_.IsLate()) return transfer_.Step(peer);
  EndTransfer();
  return true;
}

// T4: this server is solo again, if it does not wait for a map.
void HashRole::EndTransfer() {
  sorted_servers_.HangUp(sorted_server());
  transfer_.End();
  ShipAgain();
  if (is_solo()) authority_until_ns_ = UINT64_MAX;
}

void HashRole::Acknowledge(uint64_t sent_ns, uint64_t end_index) {
  if (is_solo()) return;
  transfer_.HandleAcknowledged();
  authority_until_ns_ = std::max(authority_until_ns_, sent_ns + context_.times.lease_ns);
  acknowledged_ = std::max(acknowledged_, end_index);
  ApplyGroups();
}

void HashRole::ApplyFront() {
  const Group group = std::move(groups_.front());
  groups_.pop_front();
  verdicts_.clear();
  context_.state.Apply(group.entries, &verdicts_);
  transfer_.HandleApplied(group.entries);
  applied_.store(AppliedWord(context_.map.epoch, context_.state.applied()).bits(),
                 std::memory_order_release);
  for (const WaitingCall& call : group.calls) AnswerCall(group, call);
  for (size_t i = 0; i < group.entries.size(); ++i) {
    const LogEntry entry = group.entries.entry(i);
    if (entry.kind == LogEntry::Kind::kLease) {
      leasing_.erase(entry.chunk);
      copies_.HandleApplied(entry.chunk);
      for (const uint32_t frame : entry.frames) leasing_frames_.erase(frame);
    }
    if (entry.kind == LogEntry::Kind::kSeal || entry.kind == LogEntry::Kind::kLeave) {
      copies_.HandleSealed();
    }
    if (entry.kind == LogEntry::Kind::kLeave) seen_ns_.erase(entry.client);
    if (entry.kind == LogEntry::Kind::kJoin) seen_ns_[entry.client] = context_.now_ns();
    if (entry.kind == LogEntry::Kind::kShed) shedding_.erase(entry.chunk);
    memory_watch_.HandleApplied(entry);
    chunks_.HandleApplied(entry);
  }
}

void HashRole::AnswerCall(const Group& group, const WaitingCall& call) {
  fields_.clear();
  switch (call.kind) {
    case MessageKind::kJoin: {
      const DigestKeys& keys = context_.state.keys();
      AppendVarint(fields_, group.entries.entry(call.begin).client);
      AppendVarint(fields_, context_.map.epoch);
      for (const uint64_t word : {keys.index[0], keys.index[1], keys.tag[0], keys.tag[1]}) {
        AppendWord(fields_, word);
      }
      AppendVarint(fields_, context_.times.read_ns_max);
      AppendVarint(fields_, context_.times.lease_ns);
      AppendVarint(fields_, context_.state.chunks().version());
      break;
    }
    case MessageKind::kCommit:
      for (size_t i = call.begin; i < call.end; ++i) AppendVerdict(fields_, verdicts_[i]);
      break;
    case MessageKind::kLease:
      EncodeLeases(group, call);
      break;
    case MessageKind::kCopy:
      EncodeCopy(group.entries.entry(call.begin));
      break;
    case MessageKind::kAdopt: {
      // A chunk that has given its frame is free.
      const auto from = group.entries.entry(call.begin).from;
      const auto& all = context_.state.chunks().all();
      const bool is_adopted = from < all.size() && all[from].state == Chunks::State::kFree;
      fields_.push_back(is_adopted ? 1 : 0);
      break;
    }
    default:
      break;
  }
  context_.Answer(call.peer, call.token, fields_);
}

void HashRole::ForgetSilentClients() {
  const uint64_t now = context_.now_ns();
  for (auto& [client, seen_ns] : seen_ns_) {
    if (now - seen_ns <= context_.times.silence_ns_max) continue;
    // Not again before this one is applied.
    seen_ns = now;
    Enter({.kind = LogEntry::Kind::kLeave, .client = client});
  }
}

}  // namespace skep::pool
