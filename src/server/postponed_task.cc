#include "server/postponed_task.h"

#include <algorithm>

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

Request CopyOf(const Request& request, Scratch& scratch) {
  Request copy = request;
  copy.key = scratch.Copy(request.key);
  copy.value = scratch.Copy(request.value);
  if (packed::OperandOf(request) == packed::Operand::kBytes)
    copy.other = scratch.Copy(request.other);
  return copy;
}

void CopySettings(const Batch& from, Batch& to) {
  to.set_snapshot(from.snapshot());
  to.set_scan_bytes_max(from.scan_bytes_max());
  to.set_scan_visits_max(from.scan_visits_max());
}

}  // namespace

bool PostponedTask::HasPostponed(const Slots& slots) {
  if (slots.batch.work_bytes() <= slots.batch.work_bytes_max()) return false;
  for (uint32_t slot = slots.first; slot < slots.first + slots.count; ++slot) {
    if (slots.batch.outcome(slot).verdict == Verdict::kPostponed) return true;
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
    if (slots.batch.outcome(slots.first + slot).verdict == Verdict::kPostponed) {
      reply.left.push_back(slot);
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
  if (!replies_.empty() && !replies_.front().left.empty()) ExecutePiece(call, replies_.front());
  while (!replies_.empty() && replies_.front().left.empty()) {
    Finish(call, replies_.front());
    replies_.pop_front();
  }
  ChargeAll();
  return !replies_.empty();
}

void PostponedTask::ExecutePiece(const ServerCall& call, Reply& reply) {
  Batch piece;
  CopySettings(reply.batch, piece);
  piece.set_work_bytes_max(kWorkBytesMax);
  const size_t count = std::min(reply.left.size(), kPieceOperationsMax);
  for (size_t i = 0; i < count; ++i) piece.Add(reply.batch.requests()[reply.left[i]]);
  Engine& engine = call.state().keyspaces().at(reply.keyspace);
  reply.ticket = std::max(reply.ticket, call.turn().Execute(engine, piece));

  BatchWriter out(reply.batch, BatchWriter::KeepOutcomes());
  size_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t slot = reply.left[i];
    if (piece.outcome(i).verdict == Verdict::kPostponed) {
      reply.left[kept++] = slot;
    } else {
      CopyOutcome(piece, i, out, slot);
    }
  }
  reply.left.erase(reply.left.begin() + static_cast<ptrdiff_t>(kept),
                   reply.left.begin() + static_cast<ptrdiff_t>(count));
  if (reply.batch.answer_bytes() <= kAnswerBytesMax) return;
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
  if (session.silence.holds()) session.out.resize(begin);
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
  for (Reply& reply : replies_) {
    bytes += sizeof(Reply) + reply.batch.size() * (sizeof(Request) + sizeof(Outcome)) +
             reply.batch.scratch().used() + reply.batch.answer_bytes();
    for (const std::string& arg : reply.args) bytes += arg.size();
  }
  if (bytes > charged_bytes_) budget_.Charge(bytes - charged_bytes_);
  if (bytes < charged_bytes_) budget_.Release(charged_bytes_ - bytes);
  charged_bytes_ = bytes;
}

}  // namespace skep
