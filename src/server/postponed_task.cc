#include "server/postponed_task.h"

#include <algorithm>
#include <utility>

#include "engine/batch_writer.h"
#include "server/message_replies.h"
#include "server/server_call.h"
#include "skep/client.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep {
namespace {

// Limit of a piece. Each request that is postponed again is copied each time.
constexpr size_t kPieceOperationsMax = 512;
constexpr int kWaitMs = 1;  // until it is looked again whether a reply can go on

Request CopyOf(const Request& request, Scratch& scratch) {
  Request copy = request;
  copy.key = scratch.Copy(request.key);
  copy.value = scratch.Copy(request.value);
  if (packed::OperandOf(request) == packed::Operand::kBytes)
    copy.other = scratch.Copy(request.other);
  return copy;
}

// Whether the slot is still to be done.
bool IsLeft(const Batch& batch, uint32_t slot) {
  return batch.outcome(slot).verdict == Verdict::kPostponed || batch.IsTooLong(slot);
}

void CopySettings(const Batch& from, Batch& to) {
  to.set_snapshot(from.snapshot());
  to.set_scan_bytes_max(from.scan_bytes_max());
  to.set_scan_visits_max(from.scan_visits_max());
}

}  // namespace

bool PostponedTask::HasPostponed(const Slots& slots) {
  for (uint32_t slot = slots.first; slot < slots.first + slots.count; ++slot) {
    if (IsLeft(slots.batch, slot)) return true;
  }
  return false;
}

PostponedTask::Reply& PostponedTask::Add(const Slots& slots) {
  Reply& reply = replies_.emplace_back();
  reply.keyspace = slots.keyspace;
  reply.ticket = slots.ticket;
  CopySettings(slots.batch, reply.batch);
  const auto requests = slots.batch.requests().subspan(slots.first, slots.count);
  for (const Request& request : requests) {
    reply.batch.Add(CopyOf(request, reply.batch.scratch()));
  }
  BatchWriter out(reply.batch);
  for (uint32_t slot = 0; slot < slots.count; ++slot) {
    if (IsLeft(slots.batch, slots.first + slot)) {
      reply.left.push_back(slot);
      reply.is_long |= slots.batch.IsTooLong(slots.first + slot);
    } else {
      CopyOutcome(slots.batch, slots.first + slot, out, slot);
    }
  }
  return reply;
}

void PostponedTask::AddCommand(const Command& command, std::span<const std::string_view> args,
                               const Slots& slots) {
  Reply& reply = Add(slots);
  reply.command = &command;
  reply.args.assign(args.begin(), args.end());
  ChargeAll();
}

void PostponedTask::AddMessage(const packed::Header& header, const Slots& slots) {
  Add(slots).message = header;
  ChargeAll();
}

void PostponedTask::AddError(std::string_view text) {
  replies_.emplace_back().args.emplace_back(text);
}

bool PostponedTask::Step(const ServerCall& call) {
  if (!replies_.empty() && StepPortions(call, replies_.front())) return true;
  if (!replies_.empty() && replies_.front().portions != nullptr &&
      replies_.front().portions->is_broken()) {
    replies_.clear();
  }
  if (!replies_.empty() && !replies_.front().left.empty()) ExecutePiece(call, replies_.front());
  if (!replies_.empty() && replies_.front().aside != nullptr) return true;
  while (!replies_.empty() && replies_.front().left.empty()) {
    Finish(call, replies_.front());
    replies_.pop_front();
  }
  ChargeAll();
  return !replies_.empty();
}

// Does a step of the reply, if it is made in portions. False: it is not, or it is complete.
bool PostponedTask::StepPortions(const ServerCall& call, Reply& reply) {
  if (!reply.is_long || reply.command == nullptr) return false;
  const std::vector<std::string_view> args(reply.args.begin(), reply.args.end());
  const ServerCall of_command = call.Of(*reply.command, args);
  if (reply.portions == nullptr && reply.command->portions != nullptr) {
    if (auto portions = reply.command->portions(of_command)) {
      reply.portions = std::make_unique<PortionedReply>(std::move(portions));
    }
  }
  reply.is_long = reply.portions != nullptr;
  reply.is_whole = !reply.is_long;
  if (!reply.is_long) return false;
  Session& session = call.session();
  const size_t begin = session.out.size();
  const bool goes_on =
      reply.portions->Step(of_command, call.state().keyspaces().at(reply.keyspace));
  if (session.silence.holds()) session.TakeBack(begin);
  if (!goes_on) reply.left.clear();
  return goes_on;
}

int PostponedTask::patience_ms() const {
  if (replies_.empty()) return 0;
  const Reply& reply = replies_.front();
  if (reply.aside != nullptr) return SideThread::kPatienceMs;
  const bool waits = reply.portions == nullptr ? reply.waits : reply.portions->waits();
  return waits ? kWaitMs : 0;
}

void PostponedTask::GiveUpPin() {
  for (Reply& reply : replies_) {
    if (reply.portions != nullptr) reply.portions->GiveUpPin();
  }
}

void PostponedTask::SideBatch::Run() {
  turn_.BeginBeside();
  const PlannedCommand all{.first_slot = 0, .command = &command_};
  ticket = turn_.Execute(engine_, batch, {&all, 1});
}

// Whether the rest of the reply is executed beside the worker. The owner of ranges is asked for by
// the worker only.
bool PostponedTask::GoesAside(const ServerCall& call, const Reply& reply) {
  return reply.is_whole && reply.command != nullptr && call.side_thread().is_allowed() &&
         call.state().range_owner() == nullptr;
}

void PostponedTask::ExecutePiece(const ServerCall& call, Reply& reply) {
  Engine& engine = call.state().keyspaces().at(reply.keyspace);
  const PlannedCommand all{.first_slot = 0, .command = reply.command};
  if (reply.aside != nullptr) {
    if (!reply.aside->is_done()) return;
    const auto job = std::move(reply.aside);
    return TakeOver(reply, job->batch, job->ticket);
  }
  const bool goes_aside = GoesAside(call, reply);
  const size_t count = std::min(reply.left.size(), kPieceOperationsMax);
  const auto fill = [&](Batch& piece, bool copies) {
    CopySettings(reply.batch, piece);
    piece.set_work_bytes_max(kWorkBytesMax);
    for (size_t i = 0; i < count; ++i) {
      const Request& request = reply.batch.requests()[reply.left[i]];
      piece.Add(copies ? CopyOf(request, piece.scratch()) : request);
    }
  };
  if (goes_aside) {
    reply.aside = std::make_shared<SideBatch>(call.side_turn(), engine, *reply.command);
    fill(reply.aside->batch, true);
    reply.aside->Hold(call.state().keyspaces().budget());
    return call.side_thread().Post(reply.aside);
  }
  Batch piece;
  fill(piece, false);
  const bool may_be_left_out = reply.command != nullptr && !reply.is_whole;
  if (may_be_left_out) piece.set_portion_bytes_max(kPortionBytesMax);
  TakeOver(reply, piece, call.turn().Execute(engine, piece, {&all, 1}));
}

// Takes the outcomes of the first slots that were left.
void PostponedTask::TakeOver(Reply& reply, const Batch& piece, Version ticket) {
  reply.ticket = std::max(reply.ticket, ticket);
  BatchWriter out(reply.batch, BatchWriter::KeepOutcomes());
  const auto count = static_cast<uint32_t>(piece.size());
  size_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t slot = reply.left[i];
    if (IsLeft(piece, i)) {
      reply.is_long |= piece.IsTooLong(i);
      reply.left[kept++] = slot;
    } else {
      CopyOutcome(piece, i, out, slot);
    }
  }
  reply.waits = kept == count && !reply.is_long;
  reply.left.erase(reply.left.begin() + static_cast<ptrdiff_t>(kept),
                   reply.left.begin() + static_cast<ptrdiff_t>(count));
  if (reply.batch.answer_bytes() + reply.batch.pinned_bytes() <= kAnswerBytesMax) return;
  for (const uint32_t slot : reply.left) out.RefuseAnswer(slot);
  reply.left.clear();
}

void PostponedTask::Finish(const ServerCall& call, const Reply& reply) {
  Session& session = call.session();
  Engine& engine = call.state().keyspaces().at(reply.keyspace);
  if (reply.message) {
    return messages_.Finish(session, *reply.message, reply.batch, 0, engine, reply.ticket);
  }
  const size_t begin = session.out.size();
  if (reply.portions != nullptr) {
    EndReply(session, begin);
    return session.CountSync();
  }
  if (reply.command == nullptr) {
    call.reply().Error(reply.args.front());
    return EndReply(session, begin);
  }
  if (!reply.batch.empty()) call.Await(engine, reply.ticket);
  const std::vector<std::string_view> args(reply.args.begin(), reply.args.end());
  reply.command->finish(call.Of(*reply.command, args), reply.batch, 0);
  EndReply(session, begin);
  session.CountSync();
}

// As Session::EndReply, of a reply in a task that is of many commands.
void PostponedTask::EndReply(Session& session, size_t begin) {
  if (session.silence.holds()) session.TakeBack(begin);
  session.silence.CountCommand();
}

void PostponedTask::GiveUp(ServerState& state, Session& session) {
  for (Reply& reply : replies_) {
    const bool is_remembered =
        reply.message && reply.message->has(packed::kRemember) && session.packed->client() != 0;
    if (!is_remembered) continue;
    BatchWriter out(reply.batch, BatchWriter::KeepOutcomes());
    for (const uint32_t slot : reply.left) {
      out.Refuse(slot,
                 {Code::kUnavailable, "the connection broke before it was reached", kNothingSent});
    }
    std::string bytes;
    packed::AppendReply(bytes, *reply.message, reply.batch, 0,
                        static_cast<uint32_t>(reply.batch.size()), state.time().Now());
    state.replies().Finish(session.packed->client(), reply.message->id, bytes, reply.ticket);
  }
  replies_.clear();
  ChargeAll();
}

void PostponedTask::ChargeAll() {
  uint64_t bytes = 0;
  pinned_bytes_ = 0;
  for (Reply& reply : replies_) {
    pinned_bytes_ += reply.batch.pinned_bytes();
    bytes += sizeof(Reply) + reply.batch.size() * (sizeof(Request) + sizeof(Outcome)) +
             reply.batch.scratch().used() + reply.batch.answer_bytes();
    for (const std::string& arg : reply.args) bytes += arg.size();
  }
  if (bytes > charged_bytes_) budget_.Charge(bytes - charged_bytes_);
  if (bytes < charged_bytes_) budget_.Release(charged_bytes_ - bytes);
  charged_bytes_ = bytes;
}

}  // namespace skep
