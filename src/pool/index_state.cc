#include "pool/index_state.h"

#include <algorithm>

#include "base/check.h"

namespace skep::pool {
namespace {

using Kind = LogEntry::Kind;
using Condition = LogEntry::Condition;

bool Holds(const LogEntry& entry, Slot before) {
  switch (entry.condition) {
    case Condition::kNone:
      return true;
    case Condition::kIfAbsent:
      return !before;
    case Condition::kIfPresent:
      return static_cast<bool>(before);
    case Condition::kIfSlot:
      return before == entry.expected;
  }
  return false;
}

Op OpOf(const LogEntry& entry, bool judges) {
  if (entry.kind == Kind::kDelete) return Op::kDelete;
  if (!judges || entry.condition == Condition::kNone) return Op::kPut;
  return entry.condition == Condition::kIfAbsent ? Op::kInsert : Op::kUpdate;
}

}  // namespace

void IndexState::Apply(const LogBatch& batch, std::vector<CommitVerdict>* verdicts) {
  SKEP_CHECK(batch.first_index() == applied_ + 1);
  verdicts_ = verdicts;
  first_verdict_ = verdicts->size();
  verdicts->resize(first_verdict_ + batch.size());
  slots_.clear();
  slots_.reserve(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const LogEntry entry = batch.entry(i);
    if (entry.kind == Kind::kPut || entry.kind == Kind::kDelete) {
      Commit(batch, i);
    } else {
      FlushTree(batch);
      Administer(entry, batch.first_index() + i);
    }
  }
  FlushTree(batch);
  applied_ = batch.end_index() - 1;
}

void IndexState::Commit(const LogBatch& batch, size_t i) {
  const LogEntry entry = batch.entry(i);
  CommitVerdict& verdict = (*verdicts_)[first_verdict_ + i];
  if (Refusal(entry)) {
    // An entry that waits for the tree's verdict has a preliminary one until then.
    FlushTree(batch);
    verdict = *Refusal(entry);
    return;
  }
  verdict.version = batch.first_index() + i;
  if (!hash_is_whole_) {
    AddToTree(entry, true);
    judged_.push_back(i);
    sessions_.Note(entry.client, entry.sequence, verdict);
    return;
  }
  const uint64_t version = verdict.version;
  verdict = CommitToHash(entry);
  verdict.version = version;
  Settle(entry, verdict);
  if (tree_ != nullptr && verdict.kind == CommitVerdict::Kind::kDone) AddToTree(entry, false);
}

std::optional<CommitVerdict> IndexState::Refusal(const LogEntry& entry) {
  CommitVerdict verdict;
  switch (sessions_.Find(entry.client, entry.sequence, &verdict)) {
    case Sessions::Standing::kDone:
      return verdict;
    case Sessions::Standing::kUnknown:
      return CommitVerdict{.kind = CommitVerdict::Kind::kUnknown};
    case Sessions::Standing::kNew:
      break;
  }
  if (entry.kind == Kind::kPut && !chunks_.MayCommit(entry.slot, entry.client)) {
    return CommitVerdict{.kind = CommitVerdict::Kind::kUnknown};
  }
  return std::nullopt;
}

CommitVerdict IndexState::CommitToHash(const LogEntry& entry) {
  const KeyDigest digest = DigestOf(keys_, entry.key);
  CommitVerdict verdict = {.before = hash_->Find(digest)};
  const bool is_delete_of_nothing = entry.kind == Kind::kDelete && !verdict.before;
  if (is_delete_of_nothing || !Holds(entry, verdict.before)) {
    verdict.kind = CommitVerdict::Kind::kNotMet;
  } else {
    ChangeHash(entry, digest);
  }
  return verdict;
}

void IndexState::ChangeHash(const LogEntry& entry, const KeyDigest& digest) {
  if (entry.kind == Kind::kDelete) {
    hash_->Remove(digest);
  } else if (!hash_->Set(digest, entry.slot)) {
    SKEP_CHECK(!hash_is_whole_);
    hash_ = nullptr;
  }
}

void IndexState::AddToTree(const LogEntry& entry, bool judges) {
  const Slots& slots = slots_.emplace_back(Slots{entry.slot, entry.expected});
  Request request = {.op = OpOf(entry, judges),
                     .flags = Request::kReturnPrevious,
                     .key = entry.key,
                     .value = BytesOf(slots[0])};
  if (judges && entry.condition == Condition::kIfSlot) {
    request.when = Request::kEquals;
    request.other = BytesOf(slots[1]);
  }
  if (entry.kind == Kind::kDelete) request.value = {};
  operations_.Add(request);
}

void IndexState::FlushTree(const LogBatch& batch) {
  if (operations_.empty()) return;
  tree_->Execute(operations_);
  for (size_t at = 0; at < judged_.size(); ++at) {
    const size_t i = judged_[at];
    CommitVerdict& verdict = (*verdicts_)[first_verdict_ + i];
    const uint64_t version = verdict.version;
    verdict = VerdictOfTree(batch.entry(i), operations_.outcome(static_cast<uint32_t>(at)));
    verdict.version = version;
    const LogEntry entry = batch.entry(i);
    Settle(entry, verdict);
    if (hash_ != nullptr && verdict.kind == CommitVerdict::Kind::kDone) {
      ChangeHash(entry, DigestOf(keys_, entry.key));
    }
  }
  judged_.clear();
  operations_.Clear();
}

CommitVerdict IndexState::VerdictOfTree(const LogEntry& entry, const Outcome& outcome) const {
  CommitVerdict verdict;
  if (outcome.present) verdict.before = SlotOf(outcome.value);
  const bool is_done = outcome.verdict == Verdict::kDone;
  SKEP_CHECK(is_done || outcome.verdict == Verdict::kAbsent ||
             outcome.verdict == Verdict::kExists || outcome.verdict == Verdict::kMismatch);
  SKEP_CHECK(is_done || entry.condition != Condition::kNone || entry.kind == Kind::kDelete);
  if (!is_done) verdict.kind = CommitVerdict::Kind::kNotMet;
  return verdict;
}

void IndexState::Settle(const LogEntry& entry, const CommitVerdict& verdict) {
  sessions_.Note(entry.client, entry.sequence, verdict);
  if (verdict.kind != CommitVerdict::Kind::kDone) return;
  if (verdict.before) chunks_.DropItem(verdict.before);
  if (entry.kind == Kind::kPut) chunks_.AddItem(entry.slot);
}

// An entry that is in no state to be done is left out: a chunk that was sealed meanwhile, say.
void IndexState::Administer(const LogEntry& entry, uint64_t index) {
  switch (entry.kind) {
    case Kind::kJoin:
      sessions_.Join(entry.client);
      next_client_ = std::max(next_client_, entry.client + 1);
      break;
    case Kind::kLeave:
      sessions_.Leave(entry.client);
      chunks_.SealAllOf(entry.client, index);
      break;
    case Kind::kLease:
      if (sessions_.Knows(entry.client)) {
        chunks_.Lease(entry.chunk, entry.client, entry.frames);
      }
      break;
    case Kind::kSeal:
      chunks_.Seal(entry.chunk, entry.client, index);
      break;
    case Kind::kRecycle:
      chunks_.Recycle(entry.chunk);
      break;
    case Kind::kServer:
      chunks_.AddServer(entry.range);
      break;
    case Kind::kDrain:
      chunks_.Drain(entry.range.server);
      break;
    case Kind::kGone:
      chunks_.RemoveServer(entry.range.server);
      break;
    case Kind::kAdopt:
      chunks_.Adopt(entry.chunk, entry.gen, entry.from, entry.client);
      break;
    case Kind::kShed:
      chunks_.Shed(entry.chunk);
      break;
    case Kind::kPut:
    case Kind::kDelete:
      break;
  }
}

void IndexState::RemoveUnknowable(const KeyDigest& digest, Slot slot) {
  SKEP_CHECK(hash_is_whole_ && !tree_is_whole_);
  if (hash_->Find(digest) != slot) return;
  hash_->Remove(digest);
  chunks_.DropItem(slot);
}

Slot IndexState::Find(std::string_view key) {
  std::vector<Slot> slots;
  Find({&key, 1}, &slots);
  return slots[0];
}

void IndexState::Find(std::span<const std::string_view> keys, std::vector<Slot>* slots) {
  slots->clear();
  if (hash_is_whole_) return FindInHash(keys, slots);
  operations_.Clear();
  for (const std::string_view key : keys) operations_.Get(key);
  tree_->Execute(operations_);
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const Outcome& outcome = operations_.outcome(i);
    slots->push_back(outcome.verdict == Verdict::kDone ? SlotOf(outcome.value) : Slot());
  }
  operations_.Clear();
}

void IndexState::FindInHash(std::span<const std::string_view> keys, std::vector<Slot>* slots) {
  std::vector<KeyDigest> digests;
  digests.reserve(keys.size());
  for (const std::string_view key : keys) {
    digests.push_back(DigestOf(keys_, key));
    hash_->Prefetch(digests.back());
  }
  for (const KeyDigest& digest : digests) slots->push_back(hash_->Find(digest));
}

}  // namespace skep::pool
