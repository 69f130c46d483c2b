#include "server/packed_session.h"

#include <utility>

namespace skep {

PackedSession::~PackedSession() {
  if (replies_ != nullptr) replies_->Leave(client_);
}

void PackedSession::EnterClient(ReplyMemory& replies) {
  if (client_ == 0 || replies_ != nullptr) return;
  replies.Enter(client_);
  replies_ = &replies;
}

std::string& PackedSession::Hold(ReleaseGate& gate, Version ticket) {
  held_bytes_ = held_bytes();
  return held_.emplace_back(Held{.gate = &gate, .ticket = ticket, .bytes = {}}).bytes;
}

bool PackedSession::PassGates(std::string& out) {
  std::erase_if(held_, [&](const Held& held) {
    if (!held.gate->IsReleased(held.ticket)) return false;
    out.append(held.bytes);
    return true;
  });
  held_bytes_ = 0;
  for (size_t i = 0; i + 1 < held_.size(); ++i) held_bytes_ += held_[i].bytes.size();
  return held_.empty();
}

Result<uint64_t> PackedSession::Keep(uint32_t keyspace, Snapshot snapshot) {
  if (snapshots_.size() >= kHandlesMax) {
    return Fail(Code::kUnavailable, "the connection has too many snapshots", kHandlesMax);
  }
  snapshots_.emplace(++last_number_, Pinned{keyspace, std::move(snapshot)});
  return last_number_;
}

const Snapshot* PackedSession::Find(uint32_t keyspace, uint64_t number) const {
  const auto found = snapshots_.find(number);
  if (found == snapshots_.end() || found->second.keyspace != keyspace) return nullptr;
  return &found->second.snapshot;
}

Status PackedSession::Keep(uint32_t keyspace, Watch watch) {
  if (watches_.size() >= kHandlesMax) {
    return {Code::kUnavailable, "the connection has too many watches", kHandlesMax};
  }
  const uint64_t number = watch.id();
  watches_.emplace(std::pair(keyspace, number), std::move(watch));
  return {};
}

}  // namespace skep
