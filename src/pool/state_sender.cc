#include "pool/state_sender.h"

#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"

namespace skep::pool {

bool StateSender::Step(rma::PeerId peer) {
  if (is_done_ || pieces_sent_ >= kUnackedMax) return false;
  SKEP_CHECK(peer_ == 0 || peer == peer_);
  peer_ = peer;
  BeginPiece(part_);
  switch (part_) {
    case StatePart::kBegin:
      AddBegin();
      break;
    case StatePart::kKeys:
      AddKeys();
      break;
    case StatePart::kServers:
      context_.state.chunks().EncodeServers(fields_);
      part_ = StatePart::kChunks;
      break;
    case StatePart::kChunks:
      AddChunks();
      break;
    case StatePart::kSessions:
      AddSessions();
      break;
    case StatePart::kEnd:
      AddEnd();
      break;
  }
  Send(true);
  return true;
}

void StateSender::BeginPiece(StatePart part) {
  fields_.assign(1, static_cast<char>(MessageKind::kState));
  AppendVarint(fields_, epoch_);
  AppendVarint(fields_, attempt_);
  AppendVarint(fields_, next_number_++);
  fields_.push_back(static_cast<char>(part));
}

void StateSender::Send(bool is_piece) {
  if (is_piece) ++pieces_sent_;
  sent_.push_back({.token = next_token_, .at_ns = context_.now_ns(), .is_piece = is_piece});
  context_.endpoint.Call(peer_, next_token_++, fields_);
}

void StateSender::AddBegin() {
  const DigestKeys& keys = context_.state.keys();
  AppendVarint(fields_, context_.map.hash_server);
  for (const uint64_t word : {keys.index[0], keys.index[1], keys.tag[0], keys.tag[1]}) {
    AppendWord(fields_, word);
  }
  part_ = StatePart::kKeys;
}

void StateSender::AddKeys() {
  batch_.Clear();
  batch_.set_scan_bytes_max(kPieceBytes);
  batch_.Scan(Range::From(next_key_), {.limit = context_.keys_per_piece});
  Engine& tree = *context_.state.tree();
  tree.AwaitRelease(tree.Execute(batch_));
  const Outcome& outcome = batch_.outcome(0);
  SKEP_CHECK(outcome.verdict == Verdict::kDone);
  for (const Item& item : batch_.items(0)) {
    AppendBytes(fields_, item.key);
    fields_.append(item.value);
  }
  if (outcome.more) {
    next_key_ = outcome.value;
    return;
  }
  part_ = StatePart::kServers;
  context_.state.sessions().ForEach([this](uint32_t client) { clients_.push_back(client); });
}

void StateSender::AddChunks() {
  constexpr uint32_t kChunksAtOnce = kPieceBytes / 16;
  const auto count = static_cast<uint32_t>(context_.state.chunks().all().size());
  const uint32_t end = std::min(next_chunk_ + kChunksAtOnce, count);
  context_.state.chunks().EncodeChunks(next_chunk_, end, fields_);
  next_chunk_ = end;
  if (end == count) part_ = StatePart::kSessions;
}

void StateSender::AddSessions() {
  for (; !clients_.empty() && fields_.size() < kPieceBytes; clients_.pop_back()) {
    context_.state.sessions().EncodeClient(clients_.back(), fields_);
  }
  if (clients_.empty()) part_ = StatePart::kEnd;
}

void StateSender::AddEnd() {
  AppendVarint(fields_, context_.state.applied());
  AppendVarint(fields_, context_.state.next_client());
  is_done_ = true;
}

// All of them, also those of keys that the cursor has not reached: that is right too, and simpler.
void StateSender::SendChanges(const LogBatch& entries) {
  if (part_ != StatePart::kKeys) return;
  BeginPiece(StatePart::kKeys);
  const size_t head = fields_.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    const LogEntry entry = entries.entry(i);
    if (entry.kind != LogEntry::Kind::kPut && entry.kind != LogEntry::Kind::kDelete) continue;
    AppendBytes(fields_, entry.key);
    AppendSlot(fields_, context_.state.Find(entry.key));
  }
  if (fields_.size() > head) {
    Send(false);
  } else {
    --next_number_;
  }
}

bool StateSender::HandleReply(uint64_t token) {
  const auto at = std::ranges::find(sent_, token, &Sent::token);
  if (at == sent_.end()) return false;
  if (at->is_piece) --pieces_sent_;
  sent_.erase(at);
  return true;
}

}  // namespace skep::pool
