// What a worker does about clients that take too much, or do not read; what they take.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/worker.h"

namespace skep {
namespace {

constexpr uint64_t kEvictionPauseMs = 100;
constexpr uint64_t kScarceMemory = 8;  // memory is scarce when such a part of it is left
// How long a client may take nothing while it is: the more, the more is left.
constexpr uint64_t kStalledMsMax = 5000;
constexpr uint64_t kStalledMsMin = 100;

}  // namespace

// How much may be read at once where there is so much room; of a stranger one byte more than may
// be kept, which tells that it is too much.
size_t Worker::ReadBytes(const Session& session, size_t room) const {
  if (!IsStranger(session)) return room;
  return std::min(room, kStrangerBytesMax + 1 - session.in.size());
}

size_t Worker::AnswerBytesMax(const Session& session) const {
  uint64_t max = kAnswerBytesMax;
  // Of one that is not to be closed nothing counts. What a datagram is answered is not kept.
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

size_t Worker::UnsentMax(const Session& session) const {
  return IsStranger(session) ? kStrangerBytesMax : kUnsentMax;
}

void Worker::ChargeBudget(Session& session, uint64_t bytes) {
  MemoryBudget& budget = state_.keyspaces().budget();
  if (bytes > session.charged_bytes) budget.Charge(bytes - session.charged_bytes);
  if (bytes < session.charged_bytes) budget.Release(session.charged_bytes - bytes);
  session.charged_bytes = bytes;
}

// Charges the buffers of the session to the memory budget.
void Worker::UpdateAccount(Session& session) {
  const Transaction* const transaction = session.transaction.get();
  const PackedSession* const packed = session.packed.get();
  const uint64_t held = packed == nullptr ? 0 : packed->held_bytes() + packed->handle_bytes();
  const uint64_t bytes = session.in.capacity() + session.out.capacity() + held +
                         session.watched.bytes() +
                         (transaction != nullptr ? transaction->bytes() : 0);
  ChargeBudget(session, bytes);
  const uint64_t counted = bytes + (session.task != nullptr ? session.task->held_bytes() : 0);
  if (counted != session.counted_bytes) state_.clients().Charge(counted, session.counted_bytes);
  session.counted_bytes = counted;
  session.info->memory_bytes.store(counted, std::memory_order_relaxed);
  session.info->input_bytes.store(session.in.size() - session.in_used, std::memory_order_relaxed);
  session.info->output_bytes.store(session.unsent(), std::memory_order_relaxed);
  session.info->queued.store(
      transaction != nullptr ? static_cast<int64_t>(transaction->size()) : -1,
      std::memory_order_relaxed);
  session.info->watched.store(session.watched.size(), std::memory_order_relaxed);
}

// web_page.h
void Worker::HangUpOnWebPage(Session& session) {
  state_.log().Report(Incident::kWebPage,
               fmt::format("Possible SECURITY ATTACK: a request of HTTP or TLS came from {}. "
                           "A page in a browser there may try to run commands. The connection is "
                           "closed",
                           session.info->peer));
  CountError();
  Kill(session);
}

// Those that CLIENT KILL, or maxmemory-clients, is about.
void Worker::EndMarked() {
  const uint64_t version = state_.clients().ended_version();
  if (std::exchange(ended_version_, version) == version) return;
  for (auto& [id, session] : sessions_) {
    if (session->info->ends.load(std::memory_order_relaxed)) Kill(*session);
  }
}

// If nobody can be closed, it is tried again with the next upkeep, or once there may be a large
// reply: to look costs time with the number of clients.
void Worker::EvictClients() {
  if (client_bytes_max_ == 0 || state_.clients().bytes() <= client_bytes_max_) return;
  if (monotonic_ms_ < next_eviction_ms_ && !HasWorked()) return;
  const size_t ended = state_.clients().EndLargest(client_bytes_max_);
  next_eviction_ms_ = ended > 0 ? 0 : monotonic_ms_ + kEvictionPauseMs;
  if (ended == 0) return;
  state_.log().Report(
      Incident::kClientsEvicted,
      fmt::format("{} clients closed: all together exceed maxmemory-clients", ended));
  pool_.WakeAll();
}

// Ranges whose clients do not read give up their versions while there is still some memory left, so
// that no write is refused for them. A client that takes something now and then keeps its range,
// and so does one whose range holds nothing back: to give that up would free nothing.
void Worker::GiveUpStalledPins() {
  const MemoryBudget& budget = state_.keyspaces().budget();
  const uint64_t scarce = budget.limit() / kScarceMemory;
  if (stalled_tasks_.empty() || budget.HasRoomFor(scarce)) return;
  const uint64_t left = budget.limit() - std::min(budget.limit(), budget.used());
  const uint64_t patience_ms =
      std::max(kStalledMsMin, kStalledMsMax * left / std::max<uint64_t>(scarce, 1));
  std::erase_if(stalled_tasks_, [&](Session* session) {
    const bool takes_nothing =
        session->write_blocked && monotonic_ms_ > session->taken_ms + patience_ms;
    if (!takes_nothing) return false;
    const Engine& engine = state_.keyspaces().at(session->keyspace);
    if (engine.Statistics().old_versions == 0) return false;
    session->task->GiveUpPin();
    return true;
  });
}

// Whether its replies are within client-output-buffer-limit.
bool Worker::KeepsOutputLimit(Session& session) {
  const OutputLimit& limit = options_.client_output_buffer_limit.normal;
  const uint64_t unsent = session.unsent();
  const bool is_over_soft = limit.soft_bytes != 0 && unsent > limit.soft_bytes;
  if (!is_over_soft) session.over_soft_ms = 0;
  if (is_over_soft && session.over_soft_ms == 0) session.over_soft_ms = monotonic_ms_;
  if (limit.hard_bytes != 0 && unsent > limit.hard_bytes) return false;
  return !is_over_soft ||
         monotonic_ms_ <= session.over_soft_ms + limit.soft_seconds * uint64_t{1000};
}

// A client that does not take its replies is as idle as one that sends nothing. One that waits for
// the server is not: its task works, or its command or its replies wait for a gate.
bool Worker::IsOverdue(const Session& session) const {
  if (draining_) return monotonic_ms_ >= drain_until_ms_;
  if (options_.timeout == 0) return false;
  const uint64_t patience_ms = options_.timeout * uint64_t{1000};
  if (session.write_blocked) return monotonic_ms_ > session.taken_ms + patience_ms;
  const uint64_t last = session.info->last_active_ms.load(std::memory_order_relaxed);
  return !session.paused() && !session.waiting && monotonic_ms_ > last + patience_ms;
}

}  // namespace skep
