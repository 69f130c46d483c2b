#include "server/turn_context.h"

#include <algorithm>

#include "server/monitor.h"
#include "server/server_state.h"
#include "server/slow_log.h"

namespace skep {
namespace {

constexpr size_t kRequestWorkBytes = 256;  // work of a request, beside the bytes it looks at
// The bytes that the answers of an atomic batch may take however little memory is left.
constexpr size_t kAnswerBytesFree = 16 << 20;
constexpr int64_t kNsPerUs = 1000;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kUsPerSecond = 1'000'000;

}  // namespace

void TurnContext::BeginBeside() {
  monotonic_ms_ = state_.environment().clock.MonotonicMs();
  now_ = state_.time().Now();
  RefreshOptions();
}

void TurnContext::Begin() {
  BeginBeside();
  Bump(statistics_.turns_by_work[TurnClassOf(work_bytes_ - work_before_turn_)]);
  work_before_turn_ = work_bytes_;
}

void TurnContext::RefreshOptions() {
  if (const uint64_t version = state_.options().version(); version != options_version_) {
    options_ = state_.options().Get();
    options_version_ = version;
    client_bytes_max_ = ClientBytesMax(options_);
    const int64_t slow_us = options_.slowlog_log_slower_than;
    slow_ns_ = slow_us < 0 || slow_us > INT64_MAX / kNsPerUs
                   ? UINT64_MAX
                   : static_cast<uint64_t>(slow_us * kNsPerUs);
    latency_ns_ = options_.latency_monitor_threshold * kNsPerMs;
  }
}

size_t TurnContext::ReturnedBytesMax(const Session& session) const {
  // maxmemory-clients does not bound a client that is exempt from it, nor a datagram's reply, which
  // is not kept.
  const bool counts = session.port == nullptr && !session.info->is_kept;
  if (client_bytes_max_ == 0 || !counts) return kAnswerBytesMax;
  return std::clamp<uint64_t>(client_bytes_max_, kAnswerBytesMin, kAnswerBytesMax);
}

size_t TurnContext::AnswerBytesMax(const Session& session) const {
  uint64_t max = ReturnedBytesMax(session);
  const MemoryBudget& budget = state_.keyspaces().budget();
  if (const uint64_t limit = budget.limit(); limit != 0) {
    const uint64_t left = limit - std::min(limit, budget.used());
    max = std::clamp<uint64_t>(left, kAnswerBytesFree, max);
  }
  return max;
}

Version TurnContext::Execute(Engine& engine, Batch& batch,
                             std::span<const PlannedCommand> commands) {
  const Version ticket = ExecuteAlone(engine, batch, commands);
  if (KeyWaiters& waiters = state_.waiters(); waiters.size() > 0) {
    waiters.Serve(engine, batch,
                  [this](Engine& its, Batch& pop) { return ExecuteAlone(its, pop); });
  }
  return ticket;
}

void TurnContext::ServeWaiters() {
  state_.waiters().ServeMore([this](Engine& its, Batch& pop) { return ExecuteAlone(its, pop); });
}

Version TurnContext::ExecuteAlone(Engine& engine, Batch& batch,
                                  std::span<const PlannedCommand> commands) {
  if (state_.key_events().wanted()) [[unlikely]]
    KeyEvents::Prepare(batch);
  batch.set_now_ms(now_.ms);
  if (batch.kind() == Batch::Kind::kAtomic) batch.set_work_bytes_max(kAtomicWorkBytesMax);
  ranges::RangeOwner* const owner = state_.range_owner();
  const bool has_owner = owner != nullptr && &engine == &owner->engine();
  const Version ticket = has_owner ? owner->Execute(batch) : engine.Execute(batch);
  work_bytes_ += batch.work_bytes() + batch.pinned_bytes() + kRequestWorkBytes * batch.size();
  Bump(statistics_.batches);
  Bump(statistics_.batch_requests, batch.size());
  CountLookups(batch);
  if (!state_.key_events().wanted()) [[likely]]
    return ticket;
  const auto keyspace = state_.keyspaces().index_of(engine);
  if (keyspace) state_.key_events().Tell(*keyspace, batch, commands, engine.gate(), ticket);
  return ticket;
}

void TurnContext::CountGets(uint64_t hits, uint64_t misses, size_t bytes) {
  work_bytes_ += bytes + kRequestWorkBytes * (hits + misses);
  Bump(statistics_.batches);
  Bump(statistics_.batch_requests, hits + misses);
  Bump(statistics_.hits, hits);
  Bump(statistics_.misses, misses);
}

// A lookup is a request that asks for a value, or whether there is one.
void TurnContext::CountLookups(const Batch& batch) {
  uint64_t lookups = 0;
  uint64_t hits = 0;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& request = batch.requests()[slot];
    if (request.op != Op::kGet && !request.has(Request::kReturnPrevious)) continue;
    if (IsRange(request.op) || batch.outcome(slot).verdict == Verdict::kPostponed) continue;
    ++lookups;
    hits += batch.outcome(slot).present ? 1 : 0;
  }
  if (lookups == 0) return;
  Bump(statistics_.hits, hits);
  Bump(statistics_.misses, lookups - hits);
}

void TurnContext::CountCommand(const Session& session, const Command& command,
                               std::span<const std::string_view> args, uint64_t ns, Ending ending,
                               bool was_told) {
  CommandStatistics& counted = statistics_.by_command;
  counted.Count(counted.PlaceOf(command, args), ns, ending);
  if (!was_told) TellMonitors(session, command, args);
  if (IsSlow(ns)) [[unlikely]]
    NoteSlow(session, WordsToLog(args), ns);
}

void TurnContext::TellMonitors(const Session& session, const Command& command,
                               std::span<const std::string_view> args) {
  if (state_.subscriptions().MonitorCount() == 0) [[likely]]
    return;
  skep::TellMonitors(state_, session, command, args,
                     options_.client_output_buffer_limit.normal.hard_bytes);
}

void TurnContext::NoteSlow(const Session& session, std::vector<std::string> words, uint64_t ns) {
  const uint64_t unix_s = state_.environment().clock.WallUs() / kUsPerSecond;
  if (options_.latency_monitor_threshold != 0 && ns >= latency_ns_) {
    state_.latency().Add("command", unix_s, ns / kNsPerMs);
  }
  if (ns < slow_ns_ || options_.slowlog_max_len == 0) return;
  state_.slow_log().Add({.unix_s = unix_s,
                         .us = ns / uint64_t{kNsPerUs},
                         .words = std::move(words),
                         .peer = session.info->peer,
                         .client_name = state_.clients().Name(*session.info)},
                        options_.slowlog_max_len);
}

uint64_t TurnContext::MonotonicNs() const { return state_.environment().clock.MonotonicNs(); }

}  // namespace skep
