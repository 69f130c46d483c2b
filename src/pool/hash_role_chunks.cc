// What the hash server answers about chunks and memory servers.
#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"
#include "pool/hash_role.h"

namespace skep::pool {
namespace {

constexpr uint32_t kLeasedChunksMax = 64;  // by one request
constexpr size_t kSealsMax = 4096;
constexpr uint32_t kPlacesMax = 4096;  // chunks of one answer

}  // namespace

void HashRole::LeaseChunks(const rma::Event& event, std::string_view fields) {
  uint32_t client = 0;
  uint32_t count = 0;
  if (!CanLog(event) || !TakeClient(event, &fields, &client)) return;
  if (!TakeNumber(fields, &count) || count == 0 || count > kLeasedChunksMax || fields.empty() ||
      static_cast<uint8_t>(fields[0]) > static_cast<uint8_t>(LeaseFor::kCleaning)) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  const auto purpose = static_cast<LeaseFor>(fields[0]);
  fields.remove_prefix(1);
  std::set<uint32_t> avoid;
  while (!fields.empty()) {
    uint32_t server = 0;
    if (!TakeNumber(fields, &server)) {
      return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
    }
    avoid.insert(server);
  }
  // No memory server has answered yet, or not those that there are.
  const Chunks& chunks = context_.state.chunks();
  const bool is_early = chunks.CountOpen() < context_.replicas && memory_watch_.AwaitsNewcomer();
  if (chunks.ranges().all().empty() || is_early) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kNotServing);
  }
  Group& group = OpenGroup(count, 0);
  const size_t begin = group.entries.size();
  Placement::Choice choice;
  for (uint32_t i = 0; i < count && free_space_.MayLease(purpose, leasing_.size()); ++i) {
    choice = placement_.Choose(context_.replicas, avoid, leasing_frames_);
    if (!choice) break;
    EnterLease(group, client, choice.frames);
  }
  if (begin == group.entries.size()) {
    const bool is_full = choice.problem == Placement::Problem::kFull;
    return context_.Refuse(event.peer, event.token,
                           is_full ? free_space_.Refusal(purpose) : ReplyCode::kNotServing);
  }
  Await(group, event, MessageKind::kLease, begin);
}

// There are as many chunks as frames, and no more of them are leased, or lost, than frames are.
uint32_t HashRole::EnterLease(Group& group, uint32_t client, const ChunkFrames& frames) {
  const auto chunk =
      context_.state.chunks().FindFree([this](uint32_t at) { return leasing_.contains(at); });
  SKEP_CHECK(chunk.has_value());
  leasing_.insert(*chunk);
  leasing_frames_.insert(frames.begin(), std::ranges::find(frames, kNoFrame));
  Enter(group,
        {.kind = LogEntry::Kind::kLease, .client = client, .chunk = *chunk, .frames = frames});
  return *chunk;
}

// A copier that asks does not know of an earlier chunk of its own, if there is one: an answer was
// lost.
void HashRole::OfferCopy(const rma::Event& event, std::string_view fields) {
  uint32_t client = 0;
  if (!TakeClient(event, &fields, &client)) return;
  for (const uint32_t target : copies_.TargetsOf(client)) {
    Enter({.kind = LogEntry::Kind::kSeal, .client = client, .chunk = target});
  }
  auto copy = copies_.Next(leasing_frames_);
  if (!copy) return context_.Answer(event.peer, event.token, {});
  copy->client = client;
  copy->is_entered = true;
  Group& group = OpenGroup(1, 0);
  const size_t begin = group.entries.size();
  copies_.Begin(EnterLease(group, client, {copy->frame, kNoFrame}), *copy);
  Await(group, event, MessageKind::kCopy, begin);
}

// No field, if there is nothing to be copied any more.
void HashRole::EncodeCopy(const LogEntry& lease) {
  copies_.HandleApplied(lease.chunk);
  const auto copy = copies_.Of(lease.chunk);
  if (!copy || copy->client != lease.client) return;
  for (const uint64_t field : {uint64_t{copy->chunk}, uint64_t{copy->gen}, uint64_t{lease.chunk},
                               uint64_t{lease.frames[0]}}) {
    AppendVarint(fields_, field);
  }
}

void HashRole::Adopt(const rma::Event& event, std::string_view fields) {
  LogEntry entry = {.kind = LogEntry::Kind::kAdopt};
  if (!TakeClient(event, &fields, &entry.client)) return;
  if (!TakeNumber(fields, &entry.chunk) || !TakeNumber(fields, &entry.gen) ||
      !TakeNumber(fields, &entry.from) || !fields.empty() ||
      std::max(entry.chunk, entry.from) >= kChunksMax) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  Group& group = OpenGroup(1, 0);
  const size_t begin = group.entries.size();
  Enter(group, entry);
  Await(group, event, MessageKind::kAdopt, begin);
}

void HashRole::Drain(const rma::Event& event, std::string_view fields) {
  uint32_t server = 0;
  if (!TakeNumber(fields, &server) || !fields.empty()) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  // Chunks::Drain looks again at whether there is another one.
  const Chunks& chunks = context_.state.chunks();
  const Chunks::Server* const known = chunks.FindServer(server);
  const bool is_open = known != nullptr && known->is_open();
  if (known == nullptr || !known->is_there() ||
      (is_open && chunks.CountOpen() <= context_.replicas)) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kRefused);
  }
  Group& group = OpenGroup(1, 0);
  const size_t begin = group.entries.size();
  Enter(group, {.kind = LogEntry::Kind::kDrain, .range = {.server = server}});
  Await(group, event, MessageKind::kDrain, begin);
}

void HashRole::TellServers(const rma::Event& event) {
  fields_.clear();
  EncodeServers(context_.state.chunks(), fields_);
  context_.Answer(event.peer, event.token, fields_);
}

void HashRole::ShedDrained() {
  const auto is_draining = [](const Chunks::Server& server) {
    return server.state == Chunks::ServerState::kDraining;
  };
  if (!std::ranges::any_of(context_.state.chunks().servers(), is_draining)) return;
  constexpr size_t kChunksShed = 64;
  while (shedding_.size() < kChunksShed) {
    const auto chunk = copies_.FindShedding();
    if (!chunk || !shedding_.insert(*chunk).second) return;
    Enter({.kind = LogEntry::Kind::kShed, .chunk = *chunk});
  }
}

void HashRole::SealChunks(const rma::Event& event, std::string_view fields) {
  uint32_t client = 0;
  if (!TakeClient(event, &fields, &client)) return;
  std::vector<uint32_t> chunks;
  while (!fields.empty()) {
    uint32_t chunk = 0;
    if (!TakeNumber(fields, &chunk) || chunk >= kChunksMax || chunks.size() == kSealsMax) {
      return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
    }
    chunks.push_back(chunk);
  }
  Group& group = OpenGroup(chunks.size(), 0);
  const size_t begin = group.entries.size();
  for (const uint32_t chunk : chunks) {
    Enter(group, {.kind = LogEntry::Kind::kSeal, .client = client, .chunk = chunk});
  }
  Await(group, event, MessageKind::kSeal, begin);
}

void HashRole::TellPlaces(const rma::Event& event, std::string_view fields) {
  const Chunks& chunks = context_.state.chunks();
  uint32_t begin = 0;
  uint32_t count = 0;
  if (!TakeNumber(fields, &begin) || !TakeNumber(fields, &count) || !fields.empty()) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  begin = std::min(begin, chunks.ranges().end());
  count = std::min({count, kPlacesMax, chunks.ranges().end() - begin});
  fields_.assign(1, context_.removes_lost ? 1 : 0);
  chunks.ranges().EncodeTo(fields_);
  chunks.EncodePlaces(begin, begin + count, fields_);
  context_.Answer(event.peer, event.token, fields_);
}

void HashRole::EncodeLeases(const Group& group, const WaitingCall& call) {
  std::string leases;
  uint64_t count = 0;
  for (size_t i = call.begin; i < call.end; ++i) {
    const LogEntry entry = group.entries.entry(i);
    const Chunks::Chunk& chunk = context_.state.chunks().all()[entry.chunk];
    if (chunk.state != Chunks::State::kLeased || chunk.client != entry.client) continue;
    AppendVarint(leases, entry.chunk);
    AppendVarint(leases, chunk.gen);
    AppendFrames(leases, chunk.frames);
    ++count;
  }
  AppendVarint(fields_, count);
  fields_.append(leases);
  AppendVarint(fields_, context_.state.chunks().version());
}

void HashRole::TellVictims(const rma::Event& event, std::string_view fields) {
  if (!TakeEpoch(event, &fields)) return;
  fields_.clear();
  if (!free_space_.TellVictims(fields, &fields_)) {
    return context_.Refuse(event.peer, event.token, ReplyCode::kMalformed);
  }
  context_.Answer(event.peer, event.token, fields_);
}

}  // namespace skep::pool
