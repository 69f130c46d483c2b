#include "pool/map_follower.h"

#include <algorithm>
#include <charconv>

#include "pool/fields.h"

namespace skep::pool {
namespace {

// The number that a name is; 0: it is none.
uint32_t IdOf(std::string_view name) {
  uint32_t id = 0;
  const auto end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, id);
  return error == std::errc() && at == end ? id : 0;
}

}  // namespace

MapFollower::MapFollower(CoordinatorSession& session, std::string_view pool, uint64_t first_token)
    : session_(session), paths_(pool), next_token_(first_token) {}

bool MapFollower::Handle(const CoordinatorEvent& event) {
  if (event.kind == CoordinatorEvent::Kind::kConnected) {
    Refresh();
    return false;
  }
  const auto at = asked_.find(event.token);
  if (at == asked_.end()) return false;
  const Asked asked = at->second;
  if (event.kind == CoordinatorEvent::Kind::kChanged) {
    asked_.erase(at);
    Ask(asked.what, asked.id);
    return false;
  }
  if (event.kind != CoordinatorEvent::Kind::kAnswer) return false;
  --unanswered_;
  // Only what was read has a watch.
  if (event.outcome != CoordinatorOutcome::kDone) asked_.erase(at);
  Take(asked, event);
  return true;
}

// Watches that were left before a connection was lost may fire yet; what they ask for is then read
// once more.
void MapFollower::Refresh() {
  if (session_.state() != CoordinatorSession::State::kConnected) return;
  asked_.clear();
  known_.clear();
  unanswered_ = 0;
  has_root_ = false;
  Ask(What::kRoot);
}

void MapFollower::Ask(What what, uint32_t id) {
  const uint64_t token = next_token_++;
  asked_[token] = {.what = what, .id = id};
  ++unanswered_;
  switch (what) {
    case What::kRoot:
      return session_.Children(token, paths_.root, CoordinatorWatch::kWatch);
    case What::kKeys:
      return session_.Get(token, paths_.keys(), CoordinatorWatch::kNone);
    case What::kRoles:
      return session_.Get(token, paths_.roles(), CoordinatorWatch::kWatch);
    case What::kIndexIds:
      return session_.Children(token, paths_.index(), CoordinatorWatch::kWatch);
    case What::kMemoryIds:
      return session_.Children(token, paths_.memory(), CoordinatorWatch::kWatch);
    case What::kIndexAddress:
      return session_.Get(token, paths_.index(id), CoordinatorWatch::kNone);
    case What::kMemoryAddress:
      return session_.Get(token, paths_.memory(id), CoordinatorWatch::kNone);
  }
}

void MapFollower::Take(const Asked& asked, const CoordinatorEvent& event) {
  const bool is_done = event.outcome == CoordinatorOutcome::kDone;
  switch (asked.what) {
    case What::kRoot:
      if (is_done) TakeRoot(event);
      return;
    case What::kKeys: {
      std::string_view bytes = event.bytes;
      DigestKeys& keys = map_.keys;
      has_keys_ = is_done && TakeWord(bytes, &keys.index[0]) && TakeWord(bytes, &keys.index[1]) &&
                  TakeWord(bytes, &keys.tag[0]) && TakeWord(bytes, &keys.tag[1]);
      return;
    }
    case What::kRoles: {
      PoolRoles roles;
      if (!is_done || !PoolRoles::Decode(event.bytes, &roles)) return;
      roles_ = roles;
      roles_version_ = event.version;
      map_.epoch = roles.epoch;
      map_.hash_server = roles.hash_server;
      map_.sorted_server = roles.sorted_server;
      return LeaveOutTheGone();
    }
    case What::kIndexIds:
    case What::kMemoryIds:
      if (is_done) TakeIds(asked, event);
      return;
    case What::kIndexAddress:
      if (is_done) map_.index_servers[asked.id] = event.bytes;
      return LeaveOutTheGone();
    case What::kMemoryAddress:
      if (is_done) map_.memory_servers[asked.id] = event.bytes;
      return;
  }
}

void MapFollower::TakeRoot(const CoordinatorEvent& event) {
  static constexpr std::pair<std::string_view, What> kChildren[] = {{"keys", What::kKeys},
                                                                    {"roles", What::kRoles},
                                                                    {"index", What::kIndexIds},
                                                                    {"memory", What::kMemoryIds}};
  has_root_ = true;
  for (const auto& [name, what] : kChildren) {
    const bool is_there = std::ranges::find(event.children, name) != event.children.end();
    if (is_there && known_.emplace(name).second) Ask(what);
  }
}

void MapFollower::TakeIds(const Asked& asked, const CoordinatorEvent& event) {
  const bool is_index = asked.what == What::kIndexIds;
  std::set<uint32_t> ids;
  for (const std::string& name : event.children) {
    const uint32_t id = IdOf(name);
    if (id == 0) continue;
    ids.insert(id);
    Ask(is_index ? What::kIndexAddress : What::kMemoryAddress, id);
  }
  if (!is_index) {
    map_.live_memory_servers = std::move(ids);
    return;
  }
  live_index_ = std::move(ids);
  LeaveOutTheGone();
}

// Index servers whose node is gone and that have no role.
void MapFollower::LeaveOutTheGone() {
  std::erase_if(map_.index_servers, [this](const auto& server) {
    const uint32_t id = server.first;
    return id != roles_.hash_server && id != roles_.sorted_server && !live_index_.contains(id);
  });
}

}  // namespace skep::pool
