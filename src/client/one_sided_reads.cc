#include "client/one_sided_reads.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace skep::client {
namespace {

using leaves::Finding;
using leaves::LeafQuestion;

bool MayBeRead(const Batch& batch) {
  return batch.kind() == Batch::Kind::kUnordered && batch.part_begins().empty() &&
         batch.snapshot().id == 0;
}

bool IsPlainGet(const Request& r) {
  return r.op == Op::kGet && (r.flags & ~(Request::kNoValue | Request::kMayPin)) == 0 &&
         r.when == 0 && r.key.size() <= OneSidedReads::kKeyBytesMax;
}

bool IsScanOfALeaf(const Request& r, const Batch& batch) {
  constexpr int kKnown = Request::kKeysOnly | Request::kNoUpperBound;
  if (r.op != Op::kScan || (r.flags & ~kKnown) != 0 || r.when != 0 || r.limit == 0) return false;
  if (batch.scan_bytes_max() != SIZE_MAX || batch.scan_visits_max() != kNoLimit) return false;
  if (r.key.size() > OneSidedReads::kKeyBytesMax) return false;
  return r.has(Request::kNoUpperBound) ? r.limit <= OneSidedReads::kScanItemsMax : r.key < r.other;
}

}  // namespace

void OneSidedReads::KeyTable::Reset(size_t keys) { cells_.assign(std::bit_ceil(2 * keys), Cell{}); }

uint32_t& OneSidedReads::KeyTable::At(uint64_t hash, std::string_view key) {
  const size_t mask = cells_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    Cell& cell = cells_[at];
    if (!cell.is_used) cell = {.hash = hash, .key = key, .question = kNone, .is_used = true};
    if (cell.hash == hash && cell.key == key) return cell.question;
  }
}

OneSidedReads::OneSidedReads(Remote& remote, LeafSessions& sessions, FatRoot& fat_root)
    : remote_(remote), sessions_(sessions), fat_root_(fat_root) {
  for (size_t i = 0; i < sessions_.count(); ++i) work_.push_back(std::make_unique<Work>());
}

void OneSidedReads::Answer(Batch& batch, size_t connection, std::vector<uint32_t>* left) {
  BatchWriter writer(batch);
  left->clear();
  left->reserve(batch.size());
  const auto send = [left](uint32_t slot) { left->push_back(slot); };
  if (!MayBeRead(batch) || batch.size() > remote_.operations_max()) {
    for (uint32_t slot = 0; slot < batch.size(); ++slot) send(slot);
    return;
  }
  LeafSessions::Lane& lane = sessions_.lane(connection);
  const uint64_t instance = remote_.connection(connection).hello().instance;
  const MutexLock lock(lane.mutex);
  Work& work = *work_[connection];
  Choose(batch, work);
  if (!work.questions.empty()) lane.session->Read(work.questions, instance);
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const uint32_t question = work.question_of[slot];
    if (question == kSent || work.questions[question].finding == Finding::kAsk) {
      send(slot);
    } else {
      Write(batch.requests()[slot], work.questions[question], writer, slot);
    }
  }
}

// Makes the questions of the batch, in the order of (1) and (2).
void OneSidedReads::Choose(const Batch& batch, Work& work) {
  fat_root_.FillIn(batch, &work.hints);
  work.questions.clear();
  work.question_of.assign(batch.size(), kSent);
  work.keys.Reset(batch.size());
  bool after_range_write = calls_.HaveRangeWrite();
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& request = batch.requests()[slot];
    const Hint hint = work.hints[slot];
    after_range_write |= CallsUnderWay::IsRangeWrite(request.op);
    if (IsScanOfALeaf(request, batch) && hint.bits != 0) {
      work.question_of[slot] = AddQuestion(request, hint, work);
    }
    if (IsRange(request.op)) continue;
    const uint64_t hash = KeyHash(request.key);
    uint32_t& question = work.keys.At(hash, request.key);
    const bool is_read =
        IsPlainGet(request) && !after_range_write && hint.bits != 0 && !calls_.Have(hash);
    if (!is_read) {
      question = kSent;  // and so is what follows on the key
    } else if (question == kNone) {
      question = AddQuestion(request, hint, work);
    }
    work.question_of[slot] = question;
  }
}

uint32_t OneSidedReads::AddQuestion(const Request& request, Hint hint, Work& work) {
  LeafQuestion& question = work.questions.emplace_back();
  question.key = request.key;
  question.link = hint.bits;
  question.is_scan = request.op == Op::kScan;
  question.items_max = request.limit;
  question.hi = request.has(Request::kNoUpperBound) ? nullptr : &request.other;
  return static_cast<uint32_t>(work.questions.size() - 1);
}

void OneSidedReads::Write(const Request& request, const LeafQuestion& answer, BatchWriter& writer,
                          uint32_t slot) {
  Outcome& outcome = writer.outcome(slot);
  outcome.verdict = answer.finding == Finding::kAbsent ? Verdict::kAbsent : Verdict::kDone;
  if (answer.finding == Finding::kValue) {
    outcome.present = true;
    outcome.version = answer.version;
    if (request.has(Request::kNoValue)) {
      outcome.integer = static_cast<int64_t>(answer.value.size());
    } else {
      outcome.value = writer.scratch().Copy(answer.value);
    }
  }
  if (answer.finding != Finding::kItems) return;
  writer.BeginItems(slot);
  const bool has_values = !request.has(Request::kKeysOnly);
  for (const Item& item : answer.items) {
    writer.AddItem(slot, {.key = item.key, .value = has_values ? item.value : std::string_view()});
  }
  if (answer.bound.data() == nullptr) return;
  outcome.more = true;
  outcome.value = writer.scratch().Copy(answer.bound);
}

}  // namespace skep::client
