#include "server/turn_batch.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace skep {
namespace {

constexpr size_t kReadBufferBytes = 256 * 1024;
constexpr uint32_t kPipelineMax = 256;         // commands of a connection in a flush
constexpr uint32_t kStrangerPipelineMax = 16;  // errors may repeat the whole input
constexpr uint32_t kBatchMax = 512;            // requests of a shared batch, about
constexpr size_t kArgsKeptMax = 64 * 1024;     // capacity of the argument list between turns

}  // namespace

TurnBatch::TurnBatch(ServerHost& host, Connections& connections, TaskQueue& tasks,
                     MessageReplies& messages)
    : host_(host),
      keyspaces_(host.state().keyspaces()),
      turn_(host.turn()),
      connections_(connections),
      tasks_(tasks),
      messages_(messages),
      read_buffer_(kReadBufferBytes),
      batches_(keyspaces_.count()) {}

// ---- Input ----

std::span<char> TurnBatch::ReadRoom() {
  if (kReadBufferBytes - read_used_ < Connections::kReadBytesMin) Flush();
  if (pending_.empty()) read_used_ = 0;
  return std::span(read_buffer_)
      .subspan(read_used_, std::min(Connections::kReadBytes, kReadBufferBytes - read_used_));
}

void TurnBatch::DropInput(Session& session) {
  if (session.in_used == 0) return;
  Flush();
  DropViewed();
}

// Drops dispatched input, which nothing views any more.
void TurnBatch::DropViewed() {
  for (Session* session : kept_) {
    if (session->in_used == session->in.size()) {
      Shrink(session->in);
    } else if (session->in.capacity() > kReadBufferBytes) {
      session->in = std::string(session->in, session->in_used);
    } else {
      session->in.erase(0, session->in_used);
    }
    session->in_used = 0;
    connections_.UpdateAccount(*session);
  }
  kept_.clear();
  // One command may have had a million arguments.
  if (args_.capacity() > kArgsKeptMax) std::vector<std::string_view>().swap(args_);
}

// ---- Adding ----

void TurnBatch::BoundPipeline(Session& session) {
  if (turn_.IsStranger(session)) {
    session.count_max = std::min(session.count_max, kStrangerPipelineMax);
  }
  if (session.counted_flush == flush_ && session.count >= session.count_max) {
    Flush();
    const uint64_t bytes_each = flushed_bytes_ / session.count_max + 1;
    const uint64_t fit = std::min<uint64_t>(kUnsentMax / bytes_each, 2 * session.count_max);
    session.count_max = static_cast<uint32_t>(std::clamp<uint64_t>(fit, 1, kPipelineMax));
  }
  session.stalled = session.unsent() > turn_.UnsentMax(session);
}

bool TurnBatch::PreparePoint(Session& session) {
  if (session.range_flush != flush_) return true;
  Flush();
  return session.task == nullptr;
}

// The connection's own points are flushed first: only then is it known whether they wait for a
// gate.
bool TurnBatch::PrepareRange(Session& session) {
  if (session.point_flush == flush_) Flush();
  if (session.task != nullptr) return false;
  session.blocked = !session.marks.empty();
  return !session.blocked;
}

Batch& TurnBatch::Shared(uint32_t keyspace) {
  KeyspaceBatch& shared = batches_[keyspace];
  if (!std::exchange(shared.used, true)) used_keyspaces_.push_back(keyspace);
  return shared.batch;
}

void TurnBatch::Add(Session& session, const Command& command,
                    std::span<const std::string_view> args, uint32_t first) {
  const size_t end = batches_[session.keyspace].batch.size();
  Pending& pending = Pend(session, args);
  pending.command = &command;
  pending.keyspace = session.keyspace;
  pending.first_slot = first;
  pending.slot_count = static_cast<uint32_t>(end) - first;
  if (pending.slot_count > 0) {
    (command.has(Command::kRange) ? session.range_flush : session.point_flush) = flush_;
  }
  if (end >= kBatchMax) Flush();
}

void TurnBatch::AddMessage(Session& session, const packed::Header& header, uint32_t first) {
  session.point_flush = flush_;
  Pending& pending = Pend(session, {});
  pending.keyspace = header.keyspace;
  pending.first_slot = first;
  pending.slot_count = header.count;
  pending.message = header;
  if (batches_[header.keyspace].batch.size() >= kBatchMax) Flush();
}

void TurnBatch::AddReply(Session& session, const Command& command,
                         std::span<const std::string_view> args) {
  Pend(session, args).command = &command;
}

void TurnBatch::AddError(Session& session, std::string_view text) {
  turn_.CountError(text);
  Pend(session, {}).error = text;
}

// The reference is valid until the next call.
TurnBatch::Pending& TurnBatch::Pend(Session& session, std::span<const std::string_view> args) {
  if (std::exchange(session.counted_flush, flush_) != flush_) session.count = 0;
  ++session.count;
  const auto first_arg = static_cast<uint32_t>(args_.size());
  args_.insert(args_.end(), args.begin(), args.end());
  return pending_.emplace_back(Pending{.session = &session,
                                       .first_arg = first_arg,
                                       .arg_count = static_cast<uint32_t>(args.size()),
                                       .error = {},
                                       .message = {}});
}

// ---- Commands and messages that run by themselves ----

Batch* TurnBatch::BeginExclusive(Session& session, Batch::Kind kind) {
  Flush();
  if (session.task != nullptr) return nullptr;
  if (kind == Batch::Kind::kAtomic && tasks_.PutsOff(session)) return nullptr;
  work_before_exclusive_ = turn_.work_bytes();
  return kind == Batch::Kind::kAtomic ? &apart_atomic_ : &apart_;
}

Batch* TurnBatch::BeginSplit(Session& session) {
  if (BeginExclusive(session, Batch::Kind::kAtomic) == nullptr) return nullptr;
  apart_.set_answer_bytes_max(turn_.AnswerBytesMax(session));
  apart_.set_returned_bytes_max(turn_.ReturnedBytesMax(session));
  return &apart_;
}

void TurnBatch::EndExclusive(Session& session) {
  apart_atomic_.Clear();
  apart_.Clear();
  if (session.task != nullptr) {
    tasks_.Add(session);
  } else if (session.waiter == nullptr) {
    session.CountSync();
    if (turn_.work_bytes() - work_before_exclusive_ > kWorkBytesMax) LetOthersGoFirst(session);
  }
  connections_.Queue(session);
}

bool TurnBatch::RunApart(Session& session, const packed::Header& header, Batch& batch) {
  if (batch.kind() == Batch::Kind::kAtomic) {
    batch.set_answer_bytes_max(turn_.AnswerBytesMax(session));
    batch.set_returned_bytes_max(turn_.ReturnedBytesMax(session));
  } else {
    batch.set_work_bytes_max(kWorkBytesMax);
  }
  const Version ticket = turn_.Execute(keyspaces_.at(header.keyspace), batch);
  if (IsLeftOut(batch)) {
    batch.Clear();
    return false;
  }
  FinishMessage(session, header,
                {.batch = batch,
                 .first = 0,
                 .count = header.count,
                 .keyspace = header.keyspace,
                 .ticket = ticket});
  if (batch.work_bytes() > kWorkBytesMax) LetOthersGoFirst(session);
  batch.Clear();
  return true;
}

// ---- The end ----

void TurnBatch::Flush() {
  if (pending_.empty() && used_keyspaces_.empty()) return;
  const uint64_t work_before = turn_.work_bytes();
  const uint64_t began_ns = turn_.MonotonicNs();
  flushed_bytes_ = 0;
  for (const uint32_t keyspace : used_keyspaces_) {
    KeyspaceBatch& shared = batches_[keyspace];
    if (shared.batch.empty()) continue;
    shared.batch.set_work_bytes_max(kWorkBytesMax);
    shared.batch.set_portion_bytes_max(kPortionBytesMax);
    shared.ticket = turn_.Execute(keyspaces_.at(keyspace), shared.batch, CommandsOf(keyspace));
    flushed_bytes_ +=
        shared.batch.scratch().used() + shared.batch.work_bytes() + shared.batch.pinned_bytes();
  }
  for (Pending& p : pending_) {
    p.errors = turn_.error_counts();
    if (p.message) {
      FinishMessage(*p.session, *p.message, SlotsOf(p));
    } else if (!p.session->closed) {
      FinishCommand(p);
    }
  }
  CountCommands(turn_.MonotonicNs() - began_ns);
  if (turn_.work_bytes() - work_before > kWorkBytesMax) {
    for (const Pending& p : pending_) LetOthersGoFirst(*p.session);
  }
  for (const uint32_t keyspace : used_keyspaces_) {
    batches_[keyspace].batch.Clear();
    batches_[keyspace].used = false;
  }
  used_keyspaces_.clear();
  pending_.clear();
  args_.clear();
  ++flush_;
}

// The commands that have added the requests of a shared batch, if events are to be told.
std::span<const PlannedCommand> TurnBatch::CommandsOf(uint32_t keyspace) {
  commands_.clear();
  if (!host_.state().key_events().wanted()) [[likely]]
    return commands_;
  for (const Pending& p : pending_) {
    if (p.slot_count == 0 || p.keyspace != keyspace) continue;
    commands_.push_back({.first_slot = p.first_slot, .command = p.command});
  }
  return commands_;
}

// Each command has an equal share of the time that the flush took. If the flush was slow and no
// share is, the command with the most bytes is noted for it.
void TurnBatch::CountCommands(uint64_t ns) {
  const uint64_t share_ns = ns / std::max<size_t>(pending_.size(), 1);
  const auto args_of = [&](const Pending& p) {
    return std::span(std::as_const(args_)).subspan(p.first_arg, p.arg_count);
  };
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Pending& p = pending_[i];
    if (p.command == nullptr) continue;
    const ErrorCounts after =
        i + 1 < pending_.size() ? pending_[i + 1].errors : turn_.error_counts();
    turn_.CountCommand(*p.session, *p.command, args_of(p), share_ns, after.EndingSince(p.errors));
  }
  if (!turn_.IsSlow(ns) || turn_.IsSlow(share_ns)) return;
  const Pending* largest = nullptr;
  size_t bytes_most = 0;
  for (const Pending& p : pending_) {
    size_t bytes = p.command == nullptr ? 0 : 1;
    for (const std::string_view arg : args_of(p)) bytes += arg.size();
    for (uint32_t i = 0; i < p.slot_count; ++i) {
      bytes += batches_[p.keyspace].batch.outcome(p.first_slot + i).value.size();
    }
    if (p.command == nullptr || bytes <= bytes_most) continue;
    bytes_most = bytes;
    largest = &p;
  }
  if (largest != nullptr) turn_.NoteSlow(*largest->session, WordsToLog(args_of(*largest)), ns);
}

PostponedTask::Slots TurnBatch::SlotsOf(const Pending& p) const {
  const KeyspaceBatch& shared = batches_[p.keyspace];
  return {.batch = shared.batch,
          .first = p.first_slot,
          .count = p.slot_count,
          .keyspace = p.keyspace,
          .ticket = shared.ticket};
}

// Also makes the reply of a closed session: its client may ask again.
void TurnBatch::FinishMessage(Session& session, const packed::Header& header,
                              const PostponedTask::Slots& slots) {
  if (PostponedTask::HasPostponed(slots)) {
    TaskOf(session).AddMessage(header, slots);
  } else {
    messages_.Finish(session, header, slots.batch, slots.first, keyspaces_.at(slots.keyspace),
                     slots.ticket);
  }
}

// A command that follows a postponed one is postponed, too.
void TurnBatch::FinishCommand(const Pending& p) {
  Session& session = *p.session;
  connections_.Queue(session);
  if (p.command == nullptr) {
    if (session.task != nullptr) return TaskOf(session).AddError(p.error);
    const size_t begin = session.out.size();
    RespWriter(session.out, session.protocol).Error(p.error);
    return session.EndReply(begin);
  }
  const auto args = std::span(std::as_const(args_)).subspan(p.first_arg, p.arg_count);
  const PostponedTask::Slots slots = SlotsOf(p);
  if (session.task != nullptr || PostponedTask::HasPostponed(slots)) {
    return TaskOf(session).AddCommand(*p.command, args, slots);
  }
  const ServerCall call(host_, session, *p.command, args);
  if (p.slot_count > 0) call.Await(keyspaces_.at(p.keyspace), slots.ticket);
  const size_t begin = session.out.size();
  p.command->finish(call, slots.batch, p.first_slot);
  session.EndReply(begin);
  session.CountSync();
}

// While a command of the session is pending, the session has no other task.
PostponedTask& TurnBatch::TaskOf(Session& session) {
  if (session.task == nullptr) {
    session.task = std::make_unique<PostponedTask>(keyspaces_.budget(), messages_);
    tasks_.Add(session);
  }
  return static_cast<PostponedTask&>(*session.task);
}

void TurnBatch::LetOthersGoFirst(Session& session) {
  if (session.port == nullptr && !session.closed) TaskOf(session);
}

void TurnBatch::EndTurn() {
  Flush();
  DropViewed();
  scratch_.Clear();
}

void TurnBatch::DropClosed() {
  std::erase_if(kept_, [](const Session* session) { return session->closed; });
}

}  // namespace skep
