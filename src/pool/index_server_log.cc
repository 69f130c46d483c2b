// The part of an index server that begins with what its log has, and writes to it (index_log.h).
#include <string>

#include "base/varint.h"
#include "pool/index_server.h"
#include "pool/state_pieces.h"

namespace skep::pool {
namespace {

IndexLog::Kind KindOf(StateReceiver::Result result) {
  switch (result) {
    case StateReceiver::Result::kBegun:
      return IndexLog::Kind::kStateBegin;
    case StateReceiver::Result::kWhole:
      return IndexLog::Kind::kStateEnd;
    default:
      return IndexLog::Kind::kState;
  }
}

}  // namespace

// A log without a state gets its owner before any roles can name this server.
Status IndexServer::TakeFound() {
  if (options_.log == nullptr) return {};
  found_ = options_.log->TakeFound();
  if (found_->state != nullptr || AppendOwner(true)) return {};
  return options_.log->status();
}

// False: the log cannot take it.
bool IndexServer::AppendOwner(bool goes_on) {
  std::string owner;
  AppendVarint(owner, options_.id);
  owner.push_back(goes_on ? 1 : 0);
  const IndexLog::Ticket ticket = options_.log->Append(IndexLog::Kind::kOwner, owner);
  if (ticket == 0) return false;
  base_ = {.logged = ticket, .synced = ticket};
  options_.log->Flush(true);
  return true;
}

// What becomes of what the log has, now that there are roles.
void IndexServer::LookAtFound(const PoolMap& map) {
  if (map.epoch == 0 || !problem_.empty()) return;
  const bool has_state = found_->state != nullptr;
  if (has_state && !(found_->state->keys() == map.keys)) {
    problem_ = "the directory is that of another pool";
    return;
  }
  if (claim_ && map.hash_server == options_.id) return ComeBack(map);
  const bool is_named = found_->IsOwner(map.hash_server) || found_->IsOwner(map.sorted_server);
  // A server of the first epoch that has logged nothing has acknowledged nothing.
  if (!is_named || (!has_state && map.epoch != 1)) return DropFound();
  const PoolRoles claim = {.epoch = map.epoch + 1, .hash_server = options_.id};
  if (claim_ || !has_state || AppendOwner(true)) claim_ = claim;
}

// The state may not be taken for one of this server's number.
void IndexServer::DropFound() {
  if (found_->state != nullptr && !AppendOwner(false)) return;
  claim_.reset();
  found_.reset();
}

// Both servers that had the roles are gone, and the roles are this server's.
void IndexServer::ComeBack(const PoolMap& map) {
  claim_.reset();
  FoundState found = std::move(*found_);
  found_.reset();
  if (found.state == nullptr) return BeginNew(map);
  state_ = std::move(found.state);
  tree_ = std::move(found.tree);
  Begin(map);
}

// False: the log cannot take it. It has no keys yet.
bool IndexServer::LogState() {
  if (options_.log == nullptr) return true;
  StatePieces pieces(*state_, {.epoch = context_->map.epoch, .hash_server = options_.id});
  while (!pieces.IsDone()) {
    const bool is_first = pieces.part() == StatePart::kBegin;
    std::string piece;
    pieces.Next(piece);
    const auto kind = is_first          ? IndexLog::Kind::kStateBegin
                      : pieces.IsDone() ? IndexLog::Kind::kStateEnd
                                        : IndexLog::Kind::kState;
    const IndexLog::Ticket ticket = options_.log->Append(kind, piece);
    if (ticket == 0) return false;
  }
  return AppendOwner(true);
}

// A state that comes over the connection is logged as it is, and its owner behind it, since what is
// before the state is dropped. False: the log cannot take it, and nothing is left of the state.
bool IndexServer::AppendPiece(StateReceiver::Result result, rma::PeerId peer,
                              std::string_view piece) {
  if (options_.log == nullptr) return true;
  const IndexLog::Ticket ticket = options_.log->Append(KindOf(result), piece);
  if (ticket == 0) {
    receiver_.HandleLeft(peer);
    return false;
  }
  options_.log->Flush(false);
  return result != StateReceiver::Result::kWhole || AppendOwner(true);
}

}  // namespace skep::pool
