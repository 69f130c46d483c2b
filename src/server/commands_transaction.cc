// MULTI and EXEC, WATCH and their opposites. transaction.h says how they work.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/batch_writer.h"
#include "server/aside_task.h"
#include "server/commands.h"
#include "server/optimistic_write.h"
#include "server/portions.h"
#include "server/rehearsal.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

// One EXEC from start to end. AnyCall: Call or ServerCall.
template <typename AnyCall>
class Execution {
 public:
  Execution(const AnyCall& call, Transaction& transaction)
      : call_(call), transaction_(transaction) {}

  // Whether Run has done nothing, because the engine has left the batch out: it is to be run
  // beside the worker.
  bool is_left_out() const { return is_left_out_; }

  void Run() {
    const uint64_t began_ns = call_.MonotonicNs();
    for (int attempts = 1; !Try(); ++attempts) {
      if (attempts == kOptimisticAttemptsMax) return call_.Error(kWrittenAllTheTime);
    }
    // The commands share one batch, so they share its time, too.
    const uint64_t share_ns = (call_.MonotonicNs() - began_ns) / std::max<size_t>(steps_.size(), 1);
    for (const Step& step : steps_) step.call.Count(share_ns, step.has_failed);
  }

 private:
  // A queued command after planning.
  struct Step {
    AnyCall call;
    uint32_t slot;
    std::string_view error;
    Status refusal = {};                    // of the rehearsal
    std::optional<std::string> reply = {};  // of a command that was rehearsed
    uint32_t writes = 0;                    // its slots
    bool has_failed = false;
  };

  // False: a key that was rehearsed with has changed, and nothing was done.
  bool Try() {
    batch_.Clear();
    steps_.clear();
    rehearsal_.reset();
    call_.session().watched.Require(batch_);
    const auto conditions = static_cast<uint32_t>(batch_.size());
    rehearsed_ = conditions;
    transaction_.ForEach([&](const Command& command, std::span<const std::string_view> args) {
      PlanPart(command, args);
    });
    Batch whole(Batch::Kind::kAtomic);
    const uint32_t shift = rehearsal_ != nullptr ? rehearsal_->Require(whole) : 0;
    if (shift > 0) {
      AddShifted(whole);
      whole.set_notes_effects(BatchWriter(batch_).notes_effects());
      for (Step& step : steps_) step.slot += shift;
    }
    Batch& batch = shift > 0 ? whole : batch_;
    batch.set_scan_bytes_max(kTransactionScanBytesMax);
    batch.set_scan_visits_max(kTransactionScanKeysMax);
    replies_max_ = call_.AnswerBytesMax();
    std::vector<PlannedCommand> commands;
    for (const Step& step : steps_) commands.push_back({step.slot, &step.call.command()});
    if (MayGoAside()) batch.set_portion_bytes_max(kPortionBytesMax);
    if (!batch.empty()) call_.Execute(batch, commands);
    is_left_out_ = IsLeftOut(batch);
    if (is_left_out_) {
      steps_.clear();
      return true;
    }
    if (shift + conditions > 0 && !batch.applied()) {
      const bool has_ended = ReplyNotApplied(batch, shift, shift + conditions);
      steps_.clear();  // none of them has run
      return has_ended;
    }
    Reply(batch);
    return true;
  }

  bool MayGoAside() const {
    if constexpr (std::is_same_v<AnyCall, ServerCall>) {
      return transaction_.may_go_aside() && call_.MayGoAside();
    }
    return false;
  }

  // Adds the requests that were planned, in their parts.
  void AddShifted(Batch& whole) const {
    const auto shift = static_cast<uint32_t>(whole.size());
    const auto begins = batch_.part_begins();
    auto part = begins.begin();
    for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
      if (part != begins.end() && *part == slot) {
        whole.BeginPart();
        ++part;
      }
      Request r = batch_.requests()[slot];
      if (r.op == Op::kApply && r.has(Request::kOperandOfSlot)) r.limit += shift;
      whole.Add(r);
    }
  }

  // The conditions are the first slots: those of the rehearsal, and those of WATCH from `own` on.
  // False: one of the rehearsal does not hold.
  bool ReplyNotApplied(const Batch& batch, uint32_t own, uint32_t conditions) const {
    if (call_.Refused(batch, 0, conditions)) return true;
    for (uint32_t slot = 0; slot < own; ++slot) {
      if (batch.outcome(slot).verdict == Verdict::kMismatch) return false;
    }
    call_.reply().NullArray();
    return true;
  }

  void Reply(const Batch& batch) {
    call_.reply().Array(steps_.size());
    call_.ReserveReply(batch);
    const uint64_t begin = call_.session().out_end();
    for (Step& step : steps_) {
      const uint64_t errors_before = call_.error_count();
      Finish(step, batch, call_.session().out_end() - begin);
      step.has_failed |= call_.error_count() != errors_before;
    }
  }

  void PlanPart(const Command& command, std::span<const std::string_view> args) {
    // A command that adds no request has no part; the first part begins behind the conditions.
    const auto slot = static_cast<uint32_t>(batch_.size());
    if (batch_.part_begins().empty() || batch_.part_begins().back() != slot) batch_.BeginPart();
    Step& step =
        steps_.emplace_back(Step{.call = call_.Of(command, args), .slot = slot, .error = {}});
    Plan plan = Plan::Alone();
    if (command.plan != nullptr) plan = command.plan(step.call, batch_);
    step.error = plan.error;
    if (plan.kind != Plan::Kind::kAlone) return;
    SKEP_CHECK(command.plan == nullptr || command.has(Command::kReadsFirst));
    if (command.has(Command::kReadsFirst)) Rehearse(step);
  }

  void Rehearse(Step& step) {
    // Other hosts have none of these commands.
    if constexpr (std::is_same_v<AnyCall, ServerCall>) {
      if (rehearsal_ == nullptr) rehearsal_ = std::make_unique<Rehearsal>(call_);
      step.refusal = rehearsal_->Perform(batch_, rehearsed_);
      if (!step.refusal.ok()) return;
      step.reply = rehearsal_->Run(step.call, batch_);
      step.has_failed = step.reply->starts_with('-');
      rehearsed_ = static_cast<uint32_t>(batch_.size());
      step.writes = rehearsed_ - step.slot;
    }
  }

  // `replied_bytes`: size of the replies before. The batch itself bounds the answers from the
  // engine.
  void Finish(Step& step, const Batch& batch, uint64_t replied_bytes) {
    const Command& command = step.call.command();
    if (!step.error.empty()) {
      step.call.Error(step.error);
    } else if (!step.refusal.ok()) {
      step.call.Error(step.refusal);
    } else if (step.reply) {
      if (!step.call.Refused(batch, step.slot, step.writes)) step.call.session().out += *step.reply;
    } else if (command.plan == nullptr && replied_bytes > replies_max_) {
      step.call.Error(Status(Code::kTooLarge,
                             "the replies of a transaction exceed the maximum size", replies_max_));
    } else if (command.finish != nullptr) {
      command.finish(step.call, batch, step.slot);
    } else {
      command.alone(step.call);
    }
  }

  const AnyCall& call_;
  Transaction& transaction_;
  Batch batch_{Batch::Kind::kAtomic};
  std::vector<Step> steps_;
  std::unique_ptr<Rehearsal> rehearsal_;  // of the first command that needs it
  uint32_t rehearsed_ = 0;                // the slots before this one are done in the rehearsal
  size_t replies_max_ = 0;
  bool is_left_out_ = false;
};

void GoAside(const ServerCall& call, std::unique_ptr<Transaction> transaction) {
  call.Start(std::make_unique<AsideTask>(call, std::move(transaction)));
}

template <typename AnyCall>
void Exec(const AnyCall& call) {
  Session& session = call.session();
  if (session.transaction == nullptr) return call.Error("ERR EXEC without MULTI");
  // The queued commands must see a session without a transaction.
  auto transaction = std::move(session.transaction);
  if (transaction->doomed()) {
    call.Error("EXECABORT Transaction discarded because of previous errors.");
  } else {
    Execution execution(call, *transaction);
    execution.Run();
    if constexpr (std::is_same_v<AnyCall, ServerCall>) {
      if (execution.is_left_out()) return GoAside(call, std::move(transaction));
    }
  }
  session.EndTransaction();
}

}  // namespace

Plan PlanMulti(const Call& call, Batch&) {
  Session& session = call.session();
  if (session.transaction != nullptr) return Plan::Error("ERR MULTI calls can not be nested");
  session.transaction = std::make_unique<Transaction>();
  return Plan::Requests();
}

Plan PlanDiscard(const Call& call, Batch&) {
  Session& session = call.session();
  if (session.transaction == nullptr) return Plan::Error("ERR DISCARD without MULTI");
  session.EndTransaction();
  return Plan::Requests();
}

void FinishOk(const Call& call, const Batch&, uint32_t) { call.reply().SimpleString("OK"); }

void RunExec(const Call& call) { Exec(call); }
void RunServerExec(const ServerCall& call) {
  Session& session = call.session();
  if (session.transaction == nullptr) return Exec(call);
  if (call.engine().traits().atomic) {
    if (!AsideTask::Takes(call, *session.transaction)) return Exec(call);
    return GoAside(call, std::move(session.transaction));
  }
  session.EndTransaction();
  call.Error("EXECABORT Transaction discarded: the engine of this database has no atomic batches");
}

void RunWatch(const ServerCall& call) {
  Session& session = call.session();
  if (session.transaction != nullptr) return call.Error("ERR WATCH inside MULTI is not allowed");
  const auto keys = call.args().subspan(1);
  size_t bytes = session.watched.bytes();
  for (const std::string_view key : keys) bytes += WatchedKeys::BytesOf(key);
  if (bytes > call.turn().options().client_query_buffer_limit) {
    return call.Error("ERR the watched keys exceed client-query-buffer-limit");
  }
  const Status watched = session.watched.Add(call.engine(), keys, call.time_ms());
  if (!watched.ok()) return call.Error(watched);
  // The reply, and every later read of this connection that may read at the released version, waits
  // until the watched values are released: none sees a state from before the watch.
  Batch batch;
  for (const std::string_view key : keys) {
    batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key, .other = {}});
  }
  call.Execute(batch);
  call.reply().SimpleString("OK");
}

// UNWATCH in a transaction does nothing, as in Redis: EXEC has judged the watches already.
void RunUnwatch(const Call& call) {
  call.session().watched.Clear();
  call.reply().SimpleString("OK");
}

}  // namespace skep::commands
