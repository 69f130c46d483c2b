#include "pool/state_pieces.h"

#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"

namespace skep::pool {

void StatePieces::Next(std::string& to) {
  BeginPiece(part_, to);
  switch (part_) {
    case StatePart::kBegin:
      return AddBegin(to);
    case StatePart::kKeys:
      return AddKeys(to);
    case StatePart::kServers:
      state_.chunks().EncodeServers(to);
      part_ = StatePart::kChunks;
      return;
    case StatePart::kChunks:
      return AddChunks(to);
    case StatePart::kSessions:
      return AddSessions(to);
    case StatePart::kEnd:
      return AddEnd(to);
  }
}

void StatePieces::BeginPiece(StatePart part, std::string& to) {
  AppendVarint(to, options_.epoch);
  AppendVarint(to, options_.attempt);
  AppendVarint(to, next_number_++);
  to.push_back(static_cast<char>(part));
}

void StatePieces::AddBegin(std::string& to) {
  const DigestKeys& keys = state_.keys();
  AppendVarint(to, options_.hash_server);
  if (state_.tree() == nullptr) SKEP_CHECK(state_.applied() == 0);
  for (const uint64_t word : {keys.index[0], keys.index[1], keys.tag[0], keys.tag[1]}) {
    AppendWord(to, word);
  }
  part_ = state_.tree() == nullptr ? StatePart::kServers : StatePart::kKeys;
}

void StatePieces::AddKeys(std::string& to) {
  batch_.Clear();
  batch_.set_scan_bytes_max(kPieceBytes);
  batch_.Scan(Range::From(next_key_), {.limit = options_.keys_per_piece});
  Engine& tree = *state_.tree();
  tree.AwaitRelease(tree.Execute(batch_));
  const Outcome& outcome = batch_.outcome(0);
  SKEP_CHECK(outcome.verdict == Verdict::kDone);
  for (const Item& item : batch_.items(0)) {
    AppendBytes(to, item.key);
    to.append(item.value);
  }
  if (outcome.more) {
    next_key_ = outcome.value;
    return;
  }
  part_ = StatePart::kServers;
  state_.sessions().ForEach([this](uint32_t client) { clients_.push_back(client); });
}

void StatePieces::AddChunks(std::string& to) {
  constexpr uint32_t kChunksAtOnce = kPieceBytes / 16;
  const auto count = static_cast<uint32_t>(state_.chunks().all().size());
  const uint32_t end = std::min(next_chunk_ + kChunksAtOnce, count);
  state_.chunks().EncodeChunks(next_chunk_, end, to);
  next_chunk_ = end;
  if (end == count) part_ = StatePart::kSessions;
}

void StatePieces::AddSessions(std::string& to) {
  const size_t end = to.size() + kPieceBytes;
  for (; !clients_.empty() && to.size() < end; clients_.pop_back()) {
    state_.sessions().EncodeClient(clients_.back(), to);
  }
  if (clients_.empty()) part_ = StatePart::kEnd;
}

void StatePieces::AddEnd(std::string& to) {
  AppendVarint(to, state_.applied());
  AppendVarint(to, state_.next_client());
  is_done_ = true;
}

// All of them, also those of keys that the cursor has not reached: that is right too, and simpler.
bool StatePieces::AddChanges(const LogBatch& entries, std::string& to) {
  if (part_ != StatePart::kKeys) return false;
  const size_t begin = to.size();
  BeginPiece(StatePart::kKeys, to);
  const size_t head = to.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    const LogEntry entry = entries.entry(i);
    if (entry.kind != LogEntry::Kind::kPut && entry.kind != LogEntry::Kind::kDelete) continue;
    AppendBytes(to, entry.key);
    AppendSlot(to, state_.Find(entry.key));
  }
  if (to.size() > head) return true;
  --next_number_;
  to.resize(begin);
  return false;
}

}  // namespace skep::pool
