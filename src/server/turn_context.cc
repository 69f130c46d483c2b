#include "server/turn_context.h"

#include <algorithm>

#include "server/server_state.h"

namespace skep {
namespace {

constexpr size_t kRequestWorkBytes = 256;  // work of a request, beside the bytes it looks at
// The bytes that the answers of an atomic batch may take however little memory is left.
constexpr size_t kAnswerBytesFree = 16 << 20;

}  // namespace

void TurnContext::Begin() {
  monotonic_ms_ = state_.environment().clock.MonotonicMs();
  now_ = state_.time().Now();
  RefreshOptions();
  work_before_turn_ = work_bytes_;
}

void TurnContext::RefreshOptions() {
  if (const uint64_t version = state_.options().version(); version != options_version_) {
    options_ = state_.options().Get();
    options_version_ = version;
    client_bytes_max_ = ClientBytesMax(options_);
  }
}

size_t TurnContext::AnswerBytesMax(const Session& session) const {
  uint64_t max = kAnswerBytesMax;
  // maxmemory-clients does not bound a client that is exempt from it, nor a datagram's reply, which
  // is not kept.
  const bool counts = session.port == nullptr && !session.info->is_kept;
  if (client_bytes_max_ != 0 && counts) {
    max = std::clamp<uint64_t>(client_bytes_max_, kAnswerBytesMin, max);
  }
  const MemoryBudget& budget = state_.keyspaces().budget();
  if (const uint64_t limit = budget.limit(); limit != 0) {
    const uint64_t left = limit - std::min(limit, budget.used());
    max = std::clamp<uint64_t>(left, kAnswerBytesFree, max);
  }
  return max;
}

Version TurnContext::Execute(Engine& engine, Batch& batch) {
  batch.set_now_ms(now_.ms);
  if (batch.kind() == Batch::Kind::kAtomic) batch.set_work_bytes_max(kAtomicWorkBytesMax);
  ranges::RangeOwner* const owner = state_.range_owner();
  const bool has_owner = owner != nullptr && &engine == &owner->engine();
  const Version ticket = has_owner ? owner->Execute(batch) : engine.Execute(batch);
  work_bytes_ += batch.work_bytes() + kRequestWorkBytes * batch.size();
  Bump(statistics_.batches);
  Bump(statistics_.batch_requests, batch.size());
  return ticket;
}

}  // namespace skep
