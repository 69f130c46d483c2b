#include "pool/state_transfer.h"

namespace skep::pool {

std::optional<PoolRoles> StateTransfer::wanted() const {
  if (!is_wanted_) return std::nullopt;
  return PoolRoles{.epoch = context_.map.epoch + 1,
                   .hash_server = context_.map.hash_server,
                   .sorted_server = newcomer()};
}

// The one behind the last, so that a newcomer that does not come on keeps nobody else waiting.
uint32_t StateTransfer::NextNewcomer() const {
  const auto& servers = context_.map.index_servers;
  const auto find = [&](auto at) {
    if (at != servers.end() && at->first == context_.map.hash_server) ++at;
    return at == servers.end() ? 0 : at->first;
  };
  const uint32_t next = find(servers.upper_bound(last_newcomer_));
  return next != 0 ? next : find(servers.begin());
}

bool StateTransfer::Begin() {
  if (sender_ != nullptr) return true;
  const bool is_whole = context_.state.hash() != nullptr && context_.state.tree() != nullptr;
  if (!is_whole || context_.now_ns() < retry_ns_) return false;
  const uint32_t newcomer = NextNewcomer();
  if (newcomer == 0) return false;
  last_newcomer_ = newcomer;
  began_ns_ = context_.now_ns();
  sender_ = std::make_unique<StateSender>(context_, newcomer, ++attempts_);
  return true;
}

StateTransfer::Answer StateTransfer::HandleReply(const rma::Event& event) {
  if (sender_ == nullptr || !sender_->HandleReply(event.token)) return Answer::kNotMine;
  const bool is_refused = event.status.ok() && event.bytes != std::string_view("\0", 1);
  return is_refused ? Answer::kRefused : Answer::kTaken;
}

void StateTransfer::End() {
  sender_.reset();
  retry_ns_ = context_.now_ns() + kPauseNs;
}

void StateTransfer::HandleEpoch() {
  is_wanted_ = false;
  End();
}

}  // namespace skep::pool
