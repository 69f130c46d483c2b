#include "server/packed_session.h"

#include <utility>

#include "server/transaction.h"

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

void PackedSession::HoldPins(std::vector<packed::PinnedPart> pins) {
  for (const packed::PinnedPart& pin : pins) held_pinned_bytes_ += pin.value->size();
  held_.back().pins = std::move(pins);
}

bool PackedSession::PassGates(std::string& out, std::vector<packed::PinnedPart>& pins) {
  std::erase_if(held_, [&](Held& held) {
    if (!held.gate->IsReleased(held.ticket)) return false;
    for (packed::PinnedPart& pin : held.pins) {
      held_pinned_bytes_ -= pin.value->size();
      pins.push_back({.at = out.size() + pin.at, .value = std::move(pin.value)});
    }
    out.append(held.bytes);
    return true;
  });
  held_bytes_ = 0;
  for (size_t i = 0; i + 1 < held_.size(); ++i) held_bytes_ += held_[i].bytes.size();
  return held_.empty();
}

void PackedSession::DropHeld() {
  held_.clear();
  held_bytes_ = 0;
  held_pinned_bytes_ = 0;
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

Status PackedSession::Keep(uint32_t keyspace, Watch watch, size_t key_bytes) {
  if (watches_.size() >= kHandlesMax) {
    return {Code::kUnavailable, "the connection has too many watches", kHandlesMax};
  }
  if (watched_bytes_ + key_bytes > kWatchedBytesMax) {
    return {Code::kUnavailable, "the keys that the connection watches are too large",
            kWatchedBytesMax};
  }
  watched_bytes_ += key_bytes;
  const uint64_t number = watch.id();
  watches_.emplace(std::pair(keyspace, number),
                   Watched{.watch = std::move(watch), .key_bytes = key_bytes});
  return {};
}

void PackedSession::Unwatch(uint32_t keyspace, uint64_t number) {
  const auto found = watches_.find({keyspace, number});
  if (found == watches_.end()) return;
  watched_bytes_ -= found->second.key_bytes;
  watches_.erase(found);
}

}  // namespace skep
