#include "server/rehearsal.h"

#include <algorithm>
#include <utility>

#include "engine/batch_writer.h"
#include "engine/partial_batch.h"
#include "keyspace/factory.h"
#include "server/optimistic_write.h"
#include "server/type_args.h"
#include "types/form_scope.h"

namespace skep {
namespace {

constexpr Status kTooManyKeys(
    Code::kInvalidArgument,
    "a transaction with a command that reads before it writes can name 16384 keys at most");
static_assert(kWatchesMax == 16384);

constexpr Status kNotExact(
    Code::kNotSupported,
    "a command that reads before it writes cannot follow a write of the first keys of a range, or "
    "a condition that one is empty, in a transaction");

constexpr Status kOneSize(Code::kNotSupported,
                          "in a database whose values have one size a transaction has no command "
                          "that reads before it writes");

bool NamesOtherKey(const Request& r) { return r.op == Op::kMove; }
bool HasOther(const Request& r) {
  return r.op == Op::kMove || IsRange(r.op) || (r.when & (Request::kEquals | Request::kDiffers));
}
bool IsOfKeys(const Request& r) {
  return !IsRange(r.op) && r.op != Op::kDeleteAll && r.op != Op::kSample;
}
bool WritesWholeRange(const Request& r) {
  return IsWrite(r.op) && (IsRange(r.op) || r.op == Op::kDeleteAll) && r.limit == kNoLimit;
}
// Whether the outcome depends on keys that are not named.
bool LooksElsewhere(const Request& r) {
  return r.op == Op::kRequireEmpty || (IsWrite(r.op) && IsRange(r.op) && r.limit != kNoLimit);
}
bool Covers(const Request& range, std::string_view key) {
  if (range.op == Op::kDeleteAll) return true;
  return key >= range.key && (range.has(Request::kNoUpperBound) || key < range.other);
}

EngineOptions OptionsOf(const ServerCall& call) {
  return {.budget = &call.state().keyspaces().budget()};
}

}  // namespace

Rehearsal::Rehearsal(const ServerCall& call)
    : ForwardingEngine(FindEngine("model")->make(OptionsOf(call))),
      call_(call),
      real_(call.engine()),
      collection_bytes_max_(CollectionBytesMax(call)) {}

Rehearsal::~Rehearsal() {
  for (const auto& [key, watch] : watches_) real_.Unwatch(watch);
}

// Executes on the copies what the session's engine would execute of the batch.
void Rehearsal::ExecuteHere(Batch& batch) {
  batch.set_now_ms(call_.time_ms());
  batch.set_work_bytes_max(kAtomicWorkBytesMax);
  const types::FormScope scope(collection_bytes_max_, false);
  if (traits().types) {
    inner().Execute(batch);
  } else {
    ExecutePartly(inner(), batch, [&](uint32_t slot) {
      return CheckRequest(batch.requests()[slot], batch, traits());
    });
  }
  call_.turn().CountWork(batch.work_bytes());
  work_bytes_ += batch.work_bytes();
}

// Why nothing more can be rehearsed; kOk if it can.
Status Rehearsal::Limit() const {
  if (work_bytes_ > kAtomicWorkBytesMax) {
    return {Code::kTooLarge, "the values of a transaction exceed the maximum size",
            kAtomicWorkBytesMax};
  }
  const size_t bytes_max = call_.AnswerBytesMax();
  if (kept_bytes_ > bytes_max) {
    return {Code::kTooLarge, "the values of a transaction exceed the maximum size", bytes_max};
  }
  return {};
}

Version Rehearsal::Execute(Batch& batch) {
  Status s = Limit();
  if (s.ok()) s = CopyKeys(batch);
  if (!s.ok()) {
    BatchWriter(batch).RefuseAll(s);
    return 0;
  }
  ExecuteHere(batch);
  if (batch.kind() == Batch::Kind::kAtomic && batch.applied()) {
    for (const Request& r : batch.requests()) {
      if (IsWrite(r.op)) writes_.push_back(Kept(r));
    }
  }
  return 0;
}

Result<uint64_t> Rehearsal::Watch(std::string_view key, uint64_t now_ms) {
  if (const Status s = CopyKeys({key}); !s.ok()) return std::unexpected(s);
  return inner().Watch(key, now_ms);
}

// A copy of the request whose bytes live as long as the rehearsal.
Request Rehearsal::Kept(Request request) {
  request.key = scratch_.Copy(request.key);
  request.value = scratch_.Copy(request.value);
  if (HasOther(request)) request.other = scratch_.Copy(request.other);
  kept_bytes_ += request.key.size() + request.value.size();
  return request;
}

Status Rehearsal::Perform(const Batch& batch, uint32_t from) {
  if (traits().value_bytes_min > 0) return kOneSize;
  if (const Status s = Limit(); !s.ok()) return s;
  Batch segment(Batch::Kind::kAtomic);
  const auto begins = batch.part_begins();
  auto part = std::ranges::lower_bound(begins, from);
  bool is_exact = is_exact_;
  std::vector<Request> ranges;
  for (uint32_t slot = from; slot < batch.size(); ++slot) {
    if (part != begins.end() && *part == slot) {
      segment.BeginPart();
      ++part;
    }
    Request r = batch.requests()[slot];
    if (LooksElsewhere(r)) is_exact = false;
    if (WritesWholeRange(r)) ranges.push_back(Kept(r));
    if (r.op == Op::kApply && r.has(Request::kOperandOfSlot)) r.limit -= from;
    segment.Add(r);
  }
  if (!is_exact) return kNotExact;
  if (const Status s = CopyKeys(segment); !s.ok()) return s;
  if (!segment.empty()) ExecuteHere(segment);
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  return {};
}

std::string Rehearsal::Run(const ServerCall& call, Batch& batch) {
  writes_.clear();
  const size_t begin = call.session().out.size();
  {
    const RehearsalScope scope(call, *this);
    call.command().alone(call);
  }
  std::string reply = call.session().Cut(begin);
  for (const Request& r : writes_) batch.Add(r);
  return reply;
}

uint32_t Rehearsal::Require(Batch& batch) const {
  for (const auto& [key, watch] : watches_) batch.RequireUnchanged(key, watch);
  return static_cast<uint32_t>(watches_.size());
}

Status Rehearsal::CopyKeys(const Batch& batch) {
  std::vector<std::string_view> keys;
  for (const Request& r : batch.requests()) {
    if (!IsOfKeys(r) || !CheckSizes(r, traits()).ok()) continue;
    keys.push_back(r.key);
    if (NamesOtherKey(r)) keys.push_back(r.other);
  }
  return CopyKeys(std::move(keys));
}

// Watches and copies the keys that are not copied yet.
Status Rehearsal::CopyKeys(std::vector<std::string_view> keys) {
  std::erase_if(keys, [&](std::string_view key) { return watches_.contains(key); });
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  if (keys.empty()) return {};
  if (watches_.size() + keys.size() > kWatchesMax) return kTooManyKeys;
  for (const std::string_view key : keys) {
    const Result<uint64_t> watch = real_.Watch(key, call_.time_ms());
    if (!watch) return watch.error();
    watches_.emplace(key, *watch);
  }
  const Status s = ReadCopies(keys);
  if (s.ok()) return s;
  // They are looked for again by whoever names them next.
  for (const std::string_view key : keys) {
    const auto at = watches_.find(key);
    real_.Unwatch(at->second);
    watches_.erase(at);
  }
  return s;
}

// Reads the keys and stores them here, as the writes of ranges so far have left them.
Status Rehearsal::ReadCopies(std::span<const std::string_view> keys) {
  const auto execute = [&](Batch& batch) { call_.turn().ExecuteAlone(real_, batch); };
  Batch read;
  bool is_read = false;
  for (int tries = 0; tries < kOptimisticAttemptsMax && !is_read; ++tries) {
    read.Clear();
    const size_t bytes_max = call_.AnswerBytesMax();
    read.set_answer_bytes_max(bytes_max - std::min(bytes_max, kept_bytes_));
    is_read = ReadOfAnyTypes(execute, keys, read);
  }
  if (!is_read) return kWrittenStatus;
  Batch put;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const Outcome& found = read.outcome(i);
    if (found.verdict == Verdict::kRefused) return found.status;
    if (!found.present) continue;
    kept_bytes_ += found.value.size();
    put.Add({.op = Op::kPut,
             .type = found.type,
             .key = keys[i],
             .value = found.value,
             .other = {},
             .deadline_ms = found.deadline_ms});
  }
  ExecuteHere(put);
  for (uint32_t i = 0; i < put.size(); ++i) {
    if (put.outcome(i).verdict == Verdict::kRefused) return put.outcome(i).status;
  }
  for (const std::string_view key : keys) DoRanges(key);
  return {};
}

void Rehearsal::DoRanges(std::string_view key) {
  Batch batch;
  for (const Request& range : ranges_) {
    if (!Covers(range, key)) continue;
    if (range.op == Op::kExpireRange) {
      batch.Expire(key, range.deadline_ms, range.when);
    } else {
      batch.Delete(key);
    }
  }
  if (!batch.empty()) ExecuteHere(batch);
}

}  // namespace skep
