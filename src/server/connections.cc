#include "server/connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/release_pages.h"
#include "server/server_state.h"

namespace skep {
namespace {

constexpr size_t kIdleCapacityMax = 1024;          // capacity of each buffer of an idle connection
constexpr size_t kReservedFrom = size_t{1} << 20;  // bytes of an argument that have come
constexpr size_t kInputReserveMax = size_t{65} << 20;  // the largest value, and some words
constexpr uint64_t kEvictionPauseMs = 100;
constexpr uint64_t kDrainMs = 1000;  // time for peers to take their replies at the end

// Whether the session's replies are within client-output-buffer-limit.
bool KeepsOutputLimit(Session& session, const TurnContext& turn) {
  const OutputLimits& limits = turn.options().client_output_buffer_limit;
  const OutputLimit& limit = IsSubscribed(session) ? limits.pubsub : limits.normal;
  const uint64_t unsent = session.unsent();
  const bool is_over_soft = limit.soft_bytes != 0 && unsent > limit.soft_bytes;
  if (!is_over_soft) session.over_soft_ms = 0;
  if (is_over_soft && session.over_soft_ms == 0) session.over_soft_ms = turn.monotonic_ms();
  if (limit.hard_bytes != 0 && unsent > limit.hard_bytes) return false;
  return !is_over_soft ||
         turn.monotonic_ms() <= session.over_soft_ms + limit.soft_seconds * uint64_t{1000};
}

// How many bytes may be read at once into `room` bytes. A stranger may send one byte more than is
// kept, which shows that its input is too long.
size_t ReadBytes(const Session& session, const TurnContext& turn, size_t room) {
  if (!turn.IsStranger(session)) return room;
  return std::min(room, kStrangerBytesMax + 1 - session.in.size());
}

// Drops the bytes of `out` that were sent. Of a large rest none is moved: the pages of the bytes
// before it are given back.
void DropSent(Session& session) {
  if (session.unsent() == 0) {
    session.out_base += session.out.size();
    session.out_begin = 0;
    session.sent_pages = {};
    Shrink(session.out);
    return;
  }
  const size_t rest = session.out.size() - session.out_begin;
  // A subscriber's messages go on, so its rest may never be short; the limit of its class bounds
  // what is moved.
  const bool gets_messages = IsSubscribed(session) || Monitors(session);
  const bool goes_on = gets_messages && session.out_begin > rest;
  if (rest > kUnsentMax && !goes_on) {
    session.sent_pages.Release(session.out, session.out_begin);
  } else if (session.out_begin > session.out.size() / 2) {
    session.sent_pages = {};
    if (session.out.capacity() > 2 * kUnsentMax) {
      session.out = std::string(session.out, session.out_begin);
    } else {
      session.out.erase(0, session.out_begin);
    }
    session.out_base += session.out_begin;
    session.out_begin = 0;
  }
}

}  // namespace

void SentPages::Release(std::string& of, size_t sent) {
  constexpr size_t kBytesMin = size_t{256} << 10;  // at once: it is a call of the system
  if (of.data() != data_ || of.capacity() != capacity_) *this = {};
  data_ = of.data();
  capacity_ = of.capacity();
  if (sent < sent_ + kBytesMin) return;
  // A page that is sent in two steps stays.
  bytes_ += ReleasePages(std::span(of).subspan(sent_, sent - sent_));
  sent_ = sent;
}

void Shrink(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kIdleCapacityMax) std::string().swap(buffer);
}

// ---- Adopting ----

void Connections::Adopt(std::unique_ptr<Stream> stream) {
  {
    const MutexLock lock(mailbox_mutex_);
    mailbox_.push_back(std::move(stream));
  }
  count_.fetch_add(1, std::memory_order_relaxed);
}

bool Connections::AdoptNew() {
  std::vector<std::unique_ptr<Stream>> streams;
  {
    const MutexLock lock(mailbox_mutex_);
    streams.swap(mailbox_);
  }
  for (auto& stream : streams) {
    auto owned = std::make_unique<Session>();
    Session& session = *owned;
    session.stream = std::move(stream);
    session.info =
        state_.clients().Add(session.stream->peer(), session.stream->local(), turn_.monotonic_ms());
    session.authenticated = turn_.options().requirepass.empty();
    session.has_logged_in = session.authenticated;
    sessions_.emplace(session.info->id, std::move(owned));
    Bump(turn_.statistics().connections);
    if (!poller_.Add(*session.stream, &session, true, false).ok()) MarkClosed(session);
    if (draining_) MarkClosed(session);
  }
  return !streams.empty();
}

// ---- Reading ----

size_t Connections::Read(Session& session, std::span<char> room) {
  return Received(session,
                  session.stream->Read(room.data(), ReadBytes(session, turn_, room.size())));
}

size_t Connections::ReadMore(Session& session) {
  const size_t had = session.in.size();
  const size_t room = std::clamp(session.wanted(), kReadBytesMin, kReadBytes);
  // A string that grows step by step would be copied: of an argument of 64 MiB half, in one turn.
  // Who has sent nothing yet gets no room for what it has announced.
  if (had >= kReservedFrom && session.wanted() > kReadBytes) {
    session.in.reserve(had + std::min(session.wanted(), kInputReserveMax) + kReadBytesMin);
  }
  session.in.resize(had + ReadBytes(session, turn_, room));
  const ssize_t got = session.stream->Read(session.in.data() + had, session.in.size() - had);
  session.in.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return Received(session, got);
}

// Judges the result of a read; returns how many bytes came.
size_t Connections::Received(Session& session, ssize_t bytes) {
  if (bytes > 0) {
    Bump(turn_.statistics().input_bytes, static_cast<uint64_t>(bytes));
    Bump(turn_.statistics().reads);
    session.info->last_active_ms.store(turn_.monotonic_ms(), std::memory_order_relaxed);
    return static_cast<size_t>(bytes);
  }
  if (bytes == 0) {
    session.peer_finished = true;
    FinishInput(session);
  } else if (bytes != -EAGAIN) {
    MarkClosed(session);
  }
  return 0;
}

void Connections::FinishInput(Session& session) {
  if (session.peer_finished && !session.paused()) session.closing = true;
  const size_t kept = session.in.size() - session.in_used;
  if (turn_.IsStranger(session) && kept > kStrangerBytesMax) {
    state_.log().Report(
        Incident::kStranger,
        fmt::format("client {} at {} closed: a command of more than {} bytes before AUTH",
                    session.info->id, session.info->peer, kStrangerBytesMax));
    MarkClosed(session);
  } else if (kept > turn_.options().client_query_buffer_limit) {
    state_.log().Report(
        Incident::kQueryTooLong,
        fmt::format("client {} at {} closed: its query exceeds client-query-buffer-limit",
                    session.info->id, session.info->peer));
    MarkClosed(session);
  }
  UpdateInterest(session);
  UpdateAccount(session);
  if (session.closing) Queue(session);
}

// ---- Sending ----

void Connections::Queue(Session& session) {
  if (!session.queued) (session.port == nullptr ? queued_ : queued_datagrams_).push_back(&session);
  session.queued = true;
}

std::vector<Session*> Connections::TakeQueuedDatagrams() {
  for (Session* const session : queued_datagrams_) session->queued = false;
  return std::exchange(queued_datagrams_, {});
}

void Connections::UnqueueDatagram(Session& session) {
  if (std::exchange(session.queued, false)) std::erase(queued_datagrams_, &session);
}

std::vector<Session*> Connections::Send() {
  sent_bytes_ = 0;
  for (Session* const session : std::exchange(queued_, {})) {
    if (sent_bytes_ >= kTurnSendBytesMax) {
      queued_.push_back(session);
      continue;
    }
    session->queued = false;
    if (!session->closed) SendTo(*session);
  }
  return std::exchange(unstalled_, {});
}

// Writes some of what may leave. Returns false if the stream is broken.
bool Connections::Write(Session& session) {
  const std::string_view own =
      std::string_view(session.out).substr(session.out_begin, session.sendable());
  const uint64_t at = session.out_base + session.out_begin;
  ssize_t sent = 0;
  if (session.pins.empty()) [[likely]] {
    sent = session.stream->Write(own.substr(0, kSendBytesMax));
  } else {
    parts_.clear();
    session.pins.List(own, at, kSendBytesMax, parts_);
    sent = session.stream->Write(parts_);
  }
  if (sent < 0 && sent != -EAGAIN) return false;
  const size_t bytes = static_cast<size_t>(std::max<ssize_t>(sent, 0));
  session.out_begin += session.pins.TakeSent(at, bytes);
  const uint64_t now_ms = turn_.monotonic_ms();
  if (bytes > 0 || !session.write_blocked) session.taken_ms = now_ms;
  session.write_blocked = session.has_sendable();
  sent_bytes_ += bytes;
  Bump(turn_.statistics().output_bytes, bytes);
  Bump(turn_.statistics().writes);
  if (bytes > 0) session.info->last_active_ms.store(now_ms, std::memory_order_relaxed);
  return true;
}

void Connections::SendTo(Session& session) {
  if (session.has_sendable() && !Write(session)) return MarkClosed(session);
  DropSent(session);
  if (session.unsent() == 0 && session.closing && session.task == nullptr) {
    return MarkClosed(session);
  }
  if (turn_.IsStranger(session) && session.unsent() > kStrangerBytesMax) {
    state_.log().Report(
        Incident::kStranger,
        fmt::format("client {} at {} closed: it does not read, and has not logged in",
                    session.info->id, session.info->peer));
    return MarkClosed(session);
  }
  if (!KeepsOutputLimit(session, turn_)) return CloseForOutput(session);
  if (session.stalled && session.unsent() <= turn_.UnsentMax(session)) {
    session.stalled = false;
    (session.task != nullptr ? unstalled_ : resumed_).push_back(&session);
  }
  UpdateAccount(session);
  UpdateInterest(session);
}

void Connections::UpdateInterest(Session& session) {
  if (session.closed) return;
  const bool goes_on = !session.paused() || session.reads_ahead();
  const bool read = goes_on && !session.closing && !session.peer_finished;
  const bool write = session.write_blocked;
  if (read == session.wants_read && write == session.wants_write) return;
  session.wants_read = read;
  session.wants_write = write;
  if (!poller_.Change(*session.stream, &session, read, write).ok()) MarkClosed(session);
}

// ---- Accounts ----

void Connections::Charge(Session& session, uint64_t bytes) {
  MemoryBudget& budget = state_.keyspaces().budget();
  if (bytes > session.charged_bytes) budget.Charge(bytes - session.charged_bytes);
  if (bytes < session.charged_bytes) budget.Release(session.charged_bytes - bytes);
  session.charged_bytes = bytes;
}

void Connections::UpdateAccount(Session& session) {
  const Transaction* const transaction = session.transaction.get();
  const PackedSession* const packed = session.packed.get();
  const uint64_t held = packed == nullptr ? 0 : packed->held_bytes() + packed->handle_bytes();
  const uint64_t out_bytes = session.out.capacity() - session.sent_pages.BytesOf(session.out);
  // Room that is reserved for an argument takes memory as far as bytes have come.
  const uint64_t in_bytes = std::min(session.in.capacity(), 2 * session.in.size() + kReadBytes);
  const uint64_t bytes = in_bytes + out_bytes + held + session.watched.bytes() +
                         (session.subscriber != nullptr ? session.subscriber->name_bytes : 0) +
                         (session.waiter != nullptr ? session.waiter->bytes() : 0) +
                         (transaction != nullptr ? transaction->bytes() : 0);
  Charge(session, bytes);
  const uint64_t pinned =
      session.pins.bytes() + (packed == nullptr ? 0 : packed->held_pinned_bytes());
  const uint64_t messages = session.subscriber == nullptr
                                ? 0
                                : session.subscriber->waiting_bytes.load(std::memory_order_relaxed);
  const uint64_t counted =
      bytes + pinned + messages + (session.task != nullptr ? session.task->held_bytes() : 0);
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

// ---- Closing ----

void Connections::MarkClosed(Session& session) {
  if (std::exchange(session.closed, true)) return;
  closed_.push_back(&session);
  if (session.waiter == nullptr) return;
  // Nothing is popped for it from now on.
  state_.waiters().Leave(*session.waiter, KeyWaiter::State::kTimedOut);
  session.waiter->session = nullptr;
}

void Connections::CloseForOutput(Session& session) {
  state_.log().Report(
      Incident::kRepliesUnread,
      fmt::format("client {} at {} closed: its replies exceed client-output-buffer-limit",
                  session.info->id, session.info->peer));
  MarkClosed(session);
}

void Connections::MarkAllClosed() {
  for (auto& [id, session] : sessions_) MarkClosed(*session);
}

void Connections::MarkEnded() {
  const uint64_t version = state_.clients().ended_version();
  if (std::exchange(ended_version_, version) == version) return;
  for (auto& [id, session] : sessions_) {
    if (session->info->ends.load(std::memory_order_relaxed)) MarkClosed(*session);
  }
}

// If no client could be closed, the next try is after a pause, or once a turn has done much work
// and may have made a large reply: a try takes time with the number of clients.
void Connections::EvictLargest() {
  const uint64_t bytes_max = turn_.client_bytes_max();
  if (bytes_max == 0 || state_.clients().bytes() <= bytes_max) return;
  if (turn_.monotonic_ms() < next_eviction_ms_ && !turn_.HasWorked()) return;
  const size_t ended = state_.clients().EndLargest(bytes_max);
  next_eviction_ms_ = ended > 0 ? 0 : turn_.monotonic_ms() + kEvictionPauseMs;
  if (ended == 0) return;
  state_.log().Report(
      Incident::kClientsEvicted,
      fmt::format("{} clients closed: all together exceed maxmemory-clients", ended));
  pool_.WakeAll();
}

void Connections::Upkeep() {
  const ServerOptions& options = turn_.options();
  const bool has_soft_limit = options.client_output_buffer_limit.normal.soft_bytes != 0 ||
                              state_.subscriptions().SubscriberCount() != 0;
  if (options.timeout == 0 && !has_soft_limit && !draining_) return;
  for (auto& [id, session] : sessions_) {
    if (IsOverdue(*session)) MarkClosed(*session);
    if (!session->closed && session->over_soft_ms != 0) Queue(*session);  // to check the limit
  }
}

// A client that does not take its replies is as idle as one that sends nothing. A client that waits
// for the server is not: its task works, its command or its replies wait for a gate, or it waits
// for messages.
bool Connections::IsOverdue(const Session& session) const {
  const uint64_t now_ms = turn_.monotonic_ms();
  if (draining_) return now_ms >= drain_until_ms_;
  if (turn_.options().timeout == 0) return false;
  const uint64_t patience_ms = turn_.options().timeout * uint64_t{1000};
  if (session.write_blocked) return now_ms > session.taken_ms + patience_ms;
  const uint64_t last = session.info->last_active_ms.load(std::memory_order_relaxed);
  return !session.paused() && !session.waiting && !IsSubscribed(session) && !Monitors(session) &&
         now_ms > last + patience_ms;
}

void Connections::Drain() {
  draining_ = true;
  drain_until_ms_ = state_.environment().clock.MonotonicMs() + kDrainMs;
  for (auto& [id, session] : sessions_) {
    // A long reply is cut; but commands that were begun are done.
    const Task* const task = session->task.get();
    const bool has_task = task != nullptr && task->is_of_one_command() && task->waits_for_reader();
    if (has_task || session->waiter != nullptr) MarkClosed(*session);
    session->closing = true;
    UpdateInterest(*session);
    Queue(*session);
  }
}

void Connections::Reap() {
  const auto is_closed = [](const Session* session) { return session->closed; };
  std::erase_if(queued_, is_closed);
  std::erase_if(resumed_, is_closed);
  for (Session* const session : closed_) {
    if (session->subscriber != nullptr) state_.subscriptions().Leave(*session->subscriber);
    if (session->task != nullptr) session->task->GiveUp(state_, *session);
    poller_.Remove(*session->stream);
    state_.clients().Remove(*session->info);
    if (session->has_scans) {
      state_.cursors().Leave(session->info->id);
      state_.key_scans().Leave(session->info->id);
    }
    state_.keyspaces().budget().Release(session->charged_bytes);
    state_.clients().Charge(0, session->counted_bytes);
    sessions_.erase(session->info->id);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  closed_.clear();
}

}  // namespace skep
