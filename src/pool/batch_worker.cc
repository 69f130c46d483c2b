#include "pool/batch_worker.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "engine/point.h"

namespace skep::pool {
namespace {

constexpr Status kContended(Code::kUnavailable, "other writes of the key came first too often",
                            BatchWorker::kTriesMax);

// How many points are worked on side by side.
constexpr size_t kWindow = 64;
static_assert(kWindow <= ItemWriter::kWritesMax);
// The same of GETs alone, where a round takes as long as messages there and back: more of them
// share it. No more, since a round has to end within read_ns_max.
constexpr size_t kRemoteWindow = 512;
// More than kWindow writes only as long as their values are no longer.
constexpr size_t kWindowBytesMax = 4 << 20;

bool IsPoint(const Request& request) { return request.op <= Op::kApply && request.op != Op::kMove; }

// What the hash server can judge without the value.
bool IsPlainWrite(const Request& request) {
  return request.op >= Op::kPut && request.op <= Op::kDelete && request.when == 0 &&
         !request.has(Request::kReturnPrevious);
}

Write PlainWrite(const Request& request) {
  Write write = {.key = request.key, .value = request.value};
  if (request.op == Op::kDelete) write.kind = LogEntry::Kind::kDelete;
  if (request.op == Op::kInsert) write.condition = LogEntry::Condition::kIfAbsent;
  if (request.op == Op::kUpdate) write.condition = LogEntry::Condition::kIfPresent;
  return write;
}

std::optional<PointState> StateOf(const Lookup& lookup) {
  if (lookup.result != Lookup::Result::kFound) return std::nullopt;
  return PointState{.value = lookup.value};
}

}  // namespace

BatchWorker::BatchWorker(std::unique_ptr<ClientSession> session, size_t cache_entries,
                         uint32_t scan_window)
    : session_(std::move(session)),
      finder_(*session_, cache_entries),
      writer_(*session_),
      scans_(*session_, finder_, scan_window) {}

void BatchWorker::Execute(Batch& batch, const EngineTraits& traits, uint64_t deadline_ns) {
  session_->set_deadline_ns(deadline_ns);
  BatchWriter out(batch);
  const Status status = CheckBatch(batch, traits);
  if (!status.ok()) return out.RefuseAll(status);
  if (batch.kind() == Batch::Kind::kAtomic) {
    out.RefuseAll({Code::kNotSupported, "this engine has no atomic batches"});
    const auto parts = batch.part_begins();
    // Of what comes before the parts nothing was asked for.
    return out.set_applied(batch.empty() || (!parts.empty() && parts.front() == 0));
  }
  batch_ = &batch;
  traits_ = &traits;
  out_ = &out;
  if (IsPlainGets()) return RunPlainGets();
  Group ranges;
  for (const Group& group : GroupPoints(&ranges)) {
    for (std::span<const uint32_t> left = group; !left.empty();) {
      const size_t count = WindowOf(left);
      RunPoints(left.first(count));
      left = left.subspan(count);
    }
  }
  for (const uint32_t slot : ranges) scans_.Run(batch, slot, out);
}

// Plain writes, which read nothing, share a commit, as many as it takes: a commit waits for four
// messages, one behind the other, however many writes it has.
size_t BatchWorker::WindowOf(std::span<const uint32_t> slots) const {
  const size_t window = std::min(kWindow, slots.size());
  size_t count = 0;
  size_t bytes = 0;
  for (; count < std::min(ItemWriter::kWritesMax, slots.size()); ++count) {
    const Request& request = batch_->requests()[slots[count]];
    bytes += request.value.size();
    if (!IsPlainWrite(request) || bytes > kWindowBytesMax) break;
  }
  return std::max(count, window);
}

bool BatchWorker::IsPlainGets() const {
  return std::ranges::all_of(batch_->requests(), [this](const Request& request) {
    return request.op == Op::kGet && IsSoundPoint(request, *traits_);
  });
}

void BatchWorker::RunPlainGets() {
  const auto requests = batch_->requests();
  for (size_t begin = 0; begin < requests.size();) {
    const auto some = requests.subspan(begin, std::min(WindowOfGets(), requests.size() - begin));
    lookups_.clear();
    for (const Request& request : some) lookups_.push_back({.key = request.key});
    finder_.Find(lookups_);
    for (size_t i = 0; i < some.size(); ++i) {
      const auto slot = static_cast<uint32_t>(begin + i);
      if (HasAnswer(slot, lookups_[i])) AnswerGet(slot, lookups_[i]);
    }
    begin += some.size();
  }
}

// Without a lease slots are asked for by calls, and all that a call takes share one.
size_t BatchWorker::WindowOfGets() const {
  if (!session_->HasLease()) return ItemFinder::kAsksMax;
  return session_->capabilities().one_sided ? kWindow : kRemoteWindow;
}

std::vector<BatchWorker::Group> BatchWorker::GroupPoints(Group* ranges) {
  struct Last {
    size_t group = 0;
    bool wrote = false;
  };
  std::vector<Group> groups(1);
  std::unordered_map<std::string_view, Last> keys;
  const auto requests = batch_->requests();
  const bool writes = std::ranges::any_of(requests, [](const Request& r) { return IsWrite(r.op); });
  for (uint32_t slot = 0; slot < requests.size(); ++slot) {
    const Request& request = requests[slot];
    const Status status = CheckRequest(request, *batch_, *traits_);
    if (!status.ok()) {
      out_->Refuse(slot, status);
    } else if (IsPoint(request)) {
      size_t group = 0;
      if (writes) {
        const bool is_write = request.op != Op::kGet;
        const auto [at, is_new] =
            keys.try_emplace(request.key, Last{.group = 0, .wrote = is_write});
        if (!is_new && (is_write || at->second.wrote)) {
          at->second = {.group = at->second.group + 1, .wrote = is_write};
        }
        group = at->second.group;
      }
      if (group == groups.size()) groups.emplace_back();
      groups[group].push_back(slot);
    } else {
      ranges->push_back(slot);
    }
  }
  return groups;
}

void BatchWorker::RunPoints(std::span<const uint32_t> slots) {
  std::vector<uint32_t> todo(slots.begin(), slots.end());
  for (uint32_t tries = 0; !todo.empty(); ++tries) {
    if (tries == kTriesMax || session_->IsLate()) {
      const Status why = session_->IsLate() ? session_->NoAnswer() : kContended;
      for (const uint32_t slot : todo) out_->Refuse(slot, why);
      return;
    }
    writes_.clear();
    write_slots_.clear();
    again_.clear();
    PlanPlain(todo);
    LookUp(todo);
    if (!writes_.empty()) {
      writer_.Run(writes_);
      SettleWrites();
    }
    todo = again_;
    session_->statistics().retries_contended += todo.size();
  }
}

void BatchWorker::PlanPlain(std::span<const uint32_t> slots) {
  for (const uint32_t slot : slots) {
    const Request& request = batch_->requests()[slot];
    if (!IsPlainWrite(request)) continue;
    if (out_->IsFull()) {
      out_->LeaveOut(slot);
      continue;
    }
    out_->CountWork(request.value.size());
    writes_.push_back(PlainWrite(request));
    write_slots_.push_back(slot);
  }
}

void BatchWorker::LookUp(std::span<const uint32_t> slots) {
  lookups_.clear();
  lookup_slots_.clear();
  for (const uint32_t slot : slots) {
    const Request& request = batch_->requests()[slot];
    if (IsPlainWrite(request)) continue;
    lookups_.push_back({.key = request.key});
    lookup_slots_.push_back(slot);
  }
  if (lookups_.empty()) return;
  finder_.Find(lookups_);
  for (size_t i = 0; i < lookups_.size(); ++i) Decide(lookup_slots_[i], lookups_[i]);
}

bool BatchWorker::HasAnswer(uint32_t slot, const Lookup& lookup) {
  if (lookup.result == Lookup::Result::kFailed) out_->Refuse(slot, session_->NoAnswer());
  if (lookup.result == Lookup::Result::kLost) out_->Refuse(slot, kItemLost);
  return lookup.result == Lookup::Result::kFound || lookup.result == Lookup::Result::kAbsent;
}

void BatchWorker::AnswerGet(uint32_t slot, const Lookup& lookup) {
  ApplyGet(batch_->requests()[slot], StateOf(lookup), batch_->now_ms(), *out_, slot);
}

void BatchWorker::Decide(uint32_t slot, const Lookup& lookup) {
  if (!HasAnswer(slot, lookup)) return;
  const Request& request = batch_->requests()[slot];
  if (request.op == Op::kGet) return AnswerGet(slot, lookup);
  const std::optional<PointState> state = StateOf(lookup);
  const bool is_found = state.has_value();
  out_->outcome(slot) = {};
  const PointEffect effect = ApplyPoint(request, state, batch_->now_ms(), *traits_, *out_, slot);
  if (effect.action == PointEffect::Action::kKeep) return;
  const bool stores = effect.action == PointEffect::Action::kStore;
  writes_.push_back(
      {.kind = stores ? LogEntry::Kind::kPut : LogEntry::Kind::kDelete,
       .condition = is_found ? LogEntry::Condition::kIfSlot : LogEntry::Condition::kIfAbsent,
       .key = request.key,
       .value = stores ? effect.value : std::string_view(),
       .expected = lookup.slot});
  write_slots_.push_back(slot);
}

void BatchWorker::SettleWrites() {
  for (size_t i = 0; i < writes_.size(); ++i) {
    const uint32_t slot = write_slots_[i];
    const Write& write = writes_[i];
    const bool is_put = write.status.ok() && write.kind == LogEntry::Kind::kPut &&
                        write.verdict.kind == CommitVerdict::Kind::kDone;
    is_put ? finder_.Remember(write.key, write.slot) : finder_.Forget(write.key);
    if (!write.status.ok()) {
      out_->Refuse(slot, write.status);
    } else if (IsPlainWrite(batch_->requests()[slot])) {
      SettlePlain(slot, write);
    } else if (write.verdict.kind != CommitVerdict::Kind::kDone) {
      again_.push_back(slot);
    }
  }
}

void BatchWorker::SettlePlain(uint32_t slot, const Write& write) {
  const Request& request = batch_->requests()[slot];
  Outcome& outcome = out_->outcome(slot);
  outcome.present = static_cast<bool>(write.verdict.before);
  if (write.verdict.kind == CommitVerdict::Kind::kDone) {
    outcome.verdict = Verdict::kDone;
  } else {
    outcome.verdict = request.op == Op::kInsert ? Verdict::kExists : Verdict::kAbsent;
  }
}

void BatchWorker::Probe(uint64_t deadline_ns) {
  session_->set_deadline_ns(deadline_ns);
  session_->FollowMap();
  if (session_->Join()) session_->Renew();
}

void BatchWorker::KeepAlive(uint64_t deadline_ns) {
  session_->set_deadline_ns(deadline_ns);
  session_->FollowMap();
  session_->HandleEvents();
  if (session_->client() == 0) return;
  session_->Renew();
  writer_.SealUnneeded();
}

}  // namespace skep::pool
