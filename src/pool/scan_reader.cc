#include "pool/scan_reader.h"

#include <algorithm>

#include "pool/fields.h"
#include "skep/scan.h"

namespace skep::pool {
namespace {

// Items that are read side by side have about so many units.
constexpr uint64_t kUnitsInWindow = (8 << 20) / kUnitBytes;
// So often the applied word is read without a pause.
constexpr uint32_t kQuickReads = 64;
// Of an item that is longer than its slot tells.
constexpr uint64_t kLongUnits = 4096;

bool TakesLower(const Request& request) { return !request.has(Request::kReverse); }

}  // namespace

void ScanReader::Run(const Batch& batch, uint32_t slot, BatchWriter& out) {
  while (!Try(batch, slot, out)) {
    if (has_lost_ && !session_.removes_lost()) return out.Refuse(slot, kItemLost);
    if (session_.IsLate()) return out.Refuse(slot, session_.NoAnswer());
    session_.RefreshMap();
  }
}

bool ScanReader::Ask(const Batch& batch, const Request& request) {
  epoch_ = session_.epoch();
  std::string asked(1, static_cast<char>(MessageKind::kScan));
  EncodeScan({.epoch = epoch_,
              .lower = request.key,
              .upper = request.has(Request::kNoUpperBound) ? std::string_view() : request.other,
              .has_upper = !request.has(Request::kNoUpperBound),
              .is_reverse = request.has(Request::kReverse),
              .seeks_floor = request.has(Request::kSeekFloor),
              .counts_only = request.op == Op::kCount,
              .limit = request.op == Op::kCount ? request.limit
                                                : std::min(request.limit, batch.scan_visits_max())},
             asked);
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kSortedServer, asked, &code);
  ScanReply reply;
  if (!fields || !DecodeScanReply(*fields, &reply)) return false;
  applied_ = reply.applied;
  count_ = reply.count;
  more_ = reply.more;
  next_ = reply.next;
  slots_.clear();
  while (!reply.slots.empty()) {
    Slot slot;
    TakeSlot(reply.slots, &slot);
    slots_.push_back(slot);
  }
  return true;
}

bool ScanReader::Try(const Batch& batch, uint32_t slot, BatchWriter& out) {
  const Request& request = batch.requests()[slot];
  const uint64_t begin_ns = session_.now_ns();
  has_lost_ = false;
  if (!Ask(batch, request)) return false;
  Outcome& outcome = out.outcome(slot);
  outcome = {};
  if (request.op == Op::kCount) {
    if (!AwaitApplied()) return false;
    outcome.integer = static_cast<int64_t>(count_);
  } else if (!AddItems(batch, slot, out) || session_.now_ns() - begin_ns > TryNsMax()) {
    return false;
  }
  outcome.verdict = Verdict::kDone;
  if (!is_full_ || request.op == Op::kCount) {
    outcome.more = more_;
    if (more_) outcome.value = out.scratch().Copy(next_);
  }
  return true;
}

bool ScanReader::AddItems(const Batch& batch, uint32_t slot, BatchWriter& out) {
  item_bytes_ = 0;
  is_full_ = false;
  out.BeginItems(slot);
  size_t begin = 0;
  do {
    const size_t count = WindowOf(std::span(slots_).subspan(begin));
    const auto window = std::span(slots_).subspan(begin, count);
    uint64_t word = 0;
    if (!finder_.ReadItems(window, &items_, &lost_, begin == 0 ? &word : nullptr)) return false;
    if (begin == 0 && IsApplied(word) != Applied::kYes) {
      // Waiting reads other things, and the items with them once more.
      if (!AwaitApplied() || !finder_.ReadItems(window, &items_, &lost_, nullptr)) return false;
    }
    if (!AddWindow(batch, slot, window, out)) return false;
    begin += count;
  } while (begin < slots_.size() && !is_full_);
  return true;
}

size_t ScanReader::WindowOf(std::span<const Slot> slots) const {
  uint64_t units = 0;
  size_t count = 0;
  while (count < slots.size() && count < window_ && units < kUnitsInWindow) {
    const uint32_t told = slots[count++].units();
    units += told == Slot::kUnitsMax ? kLongUnits : told;
  }
  return count;
}

bool ScanReader::AddWindow(const Batch& batch, uint32_t slot, std::span<const Slot> slots,
                           BatchWriter& out) {
  const Request& request = batch.requests()[slot];
  for (size_t i = 0; i < slots.size(); ++i) {
    has_lost_ |= lost_[i];
    if (!items_[i]) return false;
    const std::string_view value =
        request.has(Request::kKeysOnly) ? std::string_view() : items_[i]->value;
    out.AddItem(slot, {.key = items_[i]->key, .value = value});
    item_bytes_ += items_[i]->key.size() + value.size();
    const bool is_last = &slots[i] == &slots_.back();
    if (item_bytes_ <= batch.scan_bytes_max() || (is_last && !more_)) continue;
    is_full_ = true;
    StopAfter(request, items_[i]->key, out.outcome(slot), out);
    return true;
  }
  return true;
}

void ScanReader::StopAfter(const Request& request, std::string_view key, Outcome& outcome,
                           BatchWriter& out) {
  outcome.more = true;
  outcome.value = TakesLower(request) ? KeyAfter(key, out.scratch()) : out.scratch().Copy(key);
}

ScanReader::Applied ScanReader::IsApplied(uint64_t word) const {
  const AppliedWord applied(word);
  if (!applied.IsOf(epoch_)) return Applied::kOtherEpoch;
  return applied.index() >= applied_ ? Applied::kYes : Applied::kNotYet;
}

// Reads the word until it tells. False: the epoch is another one, or the word cannot be read.
bool ScanReader::AwaitApplied() {
  uint64_t word = 0;
  Round round;
  round.ReadIndex(kHeaderRegion, 0, sizeof(word), &word);
  for (uint32_t reads = 1; session_.Run(round); ++reads) {
    const Applied applied = IsApplied(word);
    if (applied != Applied::kNotYet) return applied == Applied::kYes;
    if (session_.IsLate() || session_.HasOtherMap()) return false;
    // It is about to come, or the hash server stands still.
    if (reads >= kQuickReads) session_.RefreshMap();
  }
  return false;
}

}  // namespace skep::pool
