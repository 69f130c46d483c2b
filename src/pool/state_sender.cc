#include "pool/state_sender.h"

#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"

namespace skep::pool {

bool StateSender::Step(rma::PeerId peer) {
  if (IsDone() || pieces_sent_ >= kUnackedMax) return false;
  SKEP_CHECK(peer_ == 0 || peer == peer_);
  peer_ = peer;
  BeginMessage();
  pieces_.Next(fields_);
  Send(true);
  return true;
}

void StateSender::BeginMessage() { fields_.assign(1, static_cast<char>(MessageKind::kState)); }

void StateSender::Send(bool is_piece) {
  if (is_piece) ++pieces_sent_;
  sent_.push_back({.token = next_token_, .at_ns = context_.now_ns(), .is_piece = is_piece});
  context_.endpoint.Call(peer_, next_token_++, fields_);
}

void StateSender::SendChanges(const LogBatch& entries) {
  BeginMessage();
  if (pieces_.AddChanges(entries, fields_)) Send(false);
}

bool StateSender::HandleReply(uint64_t token) {
  const auto at = std::ranges::find(sent_, token, &Sent::token);
  if (at == sent_.end()) return false;
  if (at->is_piece) --pieces_sent_;
  sent_.erase(at);
  return true;
}

}  // namespace skep::pool
