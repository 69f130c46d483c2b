#include "pool/role_keeper.h"

#include "pool/fields.h"

namespace skep::pool {

RoleKeeper::RoleKeeper(Coordinator& coordinator, Clock& clock, Random& random,
                       RoleKeeperOptions options)
    : random_(random),
      options_(std::move(options)),
      paths_(options_.pool),
      session_(coordinator, clock, {.timeout_ms = options_.session_ms, .wake = options_.wake},
               [this](CoordinatorSession* session) { FollowSession(session); }) {}

void RoleKeeper::FollowSession(CoordinatorSession* session) {
  follower_.reset();
  registration_.reset();
  is_setting_ = false;
  if (session == nullptr) return;
  registration_ = std::make_unique<Registration>(*session, paths_.index(options_.id),
                                                 options_.address, kRegister);
  follower_ = std::make_unique<MapFollower>(*session, options_.pool, kFollow);
}

bool RoleKeeper::Turn() {
  const bool is_due = session_.Turn();
  if (session_.get() == nullptr) return false;
  for (const CoordinatorEvent& event : session_.get()->TakeEvents()) Handle(event);
  if (!session_.is_connected()) return false;
  if (is_due) registration_->Want();
  if (is_due && follower_->wants_refresh()) follower_->Refresh();
  if (is_due && follower_->is_complete() && !follower_->has_keys()) MakeKeys();
  if (registration_->is_done() && follower_->is_complete()) WantRoles();
  return TakeMap();
}

void RoleKeeper::Handle(const CoordinatorEvent& event) {
  follower_->Handle(event);
  registration_->Handle(event);
  if (event.kind == CoordinatorEvent::Kind::kDisconnected) is_setting_ = false;
  if (event.kind != CoordinatorEvent::Kind::kAnswer) return;
  if (event.token == kSetRoles) {
    is_setting_ = false;
    follower_->Refresh();
  }
}

// Those of another server, which were made first, stay as they are.
void RoleKeeper::MakeKeys() {
  std::string keys;
  for (int i = 0; i < 4; ++i) AppendWord(keys, random_.Next());
  session_.get()->Create(kMakeKeys, paths_.keys(), keys, CoordinatorNode::kPersistent);
}

void RoleKeeper::WantRoles() {
  if (is_setting_) return;
  const auto& live = follower_->live_index_servers();
  const PoolRoles& roles = follower_->roles();
  if (follower_->roles_version() < 0) {
    if (live.size() < 2 || *live.begin() != options_.id) return;
    const PoolRoles first = {
        .epoch = 1, .hash_server = options_.id, .sorted_server = *std::next(live.begin())};
    is_setting_ = true;
    return session_.get()->Create(kSetRoles, paths_.roles(), first.Encode(),
                                  CoordinatorNode::kPersistent);
  }
  const bool is_hash = roles.hash_server == options_.id;
  const bool is_sorted = roles.sorted_server == options_.id;
  const bool is_over = !live.contains(roles.hash_server) && !live.contains(roles.sorted_server);
  const bool may_set = is_hash || (!is_sorted && is_over);
  if (may_set && wanted_ && wanted_->epoch == roles.epoch + 1) return SetRoles(*wanted_);
  if (!is_hash && !is_sorted) return;
  const uint32_t other = is_hash ? roles.sorted_server : roles.hash_server;
  if (other == 0 || live.contains(other)) return;
  SetRoles({.epoch = roles.epoch + 1, .hash_server = options_.id, .sorted_server = 0});
}

void RoleKeeper::SetRoles(const PoolRoles& roles) {
  is_setting_ = true;
  session_.get()->Set(kSetRoles, paths_.roles(), roles.Encode(), follower_->roles_version());
}

bool RoleKeeper::TakeMap() {
  if (!follower_->is_complete() || !follower_->has_keys() || follower_->map().epoch == 0 ||
      follower_->map() == map_) {
    return false;
  }
  map_ = follower_->map();
  return true;
}

}  // namespace skep::pool
