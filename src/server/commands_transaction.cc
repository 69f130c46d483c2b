// MULTI and EXEC, WATCH and their opposites. transaction.h says how they work.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "server/commands.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

// One EXEC from start to end. AnyCall: Call or ServerCall.
template <typename AnyCall>
class Execution {
 public:
  Execution(const AnyCall& call, Transaction& transaction)
      : call_(call), transaction_(transaction) {}

  void Run() {
    const uint64_t began_ns = call_.MonotonicNs();
    call_.session().watched.Require(batch_);
    const size_t conditions = batch_.size();
    transaction_.ForEach([&](const Command& command, std::span<const std::string_view> args) {
      PlanPart(command, args);
    });
    batch_.set_scan_bytes_max(kTransactionScanBytesMax);
    batch_.set_scan_visits_max(kTransactionScanKeysMax);
    replies_max_ = call_.AnswerBytesMax();
    if (!batch_.empty()) call_.Execute(batch_);
    if (conditions > 0 && !batch_.applied()) {
      if (!call_.Refused(batch_, 0, conditions)) call_.reply().NullArray();
      return;
    }
    call_.reply().Array(steps_.size());
    call_.ReserveReply(batch_);
    const uint64_t begin = call_.session().out_end();
    for (Step& step : steps_) {
      const uint64_t errors_before = call_.error_count();
      Finish(step, call_.session().out_end() - begin);
      step.has_failed = call_.error_count() != errors_before;
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
    bool has_failed = false;
  };

  void PlanPart(const Command& command, std::span<const std::string_view> args) {
    // A command that adds no request has no part; the first part begins behind the conditions.
    const auto slot = static_cast<uint32_t>(batch_.size());
    if (batch_.part_begins().empty() || batch_.part_begins().back() != slot) batch_.BeginPart();
    Step& step =
        steps_.emplace_back(Step{.call = call_.Of(command, args), .slot = slot, .error = {}});
    if (command.plan == nullptr) return;
    const Plan plan = command.plan(step.call, batch_);
    SKEP_CHECK(plan.kind == Plan::Kind::kRequests || plan.kind == Plan::Kind::kError);
    step.error = plan.error;
  }

  // `replied_bytes`: size of the replies before. The batch itself bounds the answers from the
  // engine.
  void Finish(Step& step, uint64_t replied_bytes) {
    const Command& command = step.call.command();
    if (!step.error.empty()) {
      step.call.Error(step.error);
    } else if (command.plan == nullptr && replied_bytes > replies_max_) {
      step.call.Error(Status(Code::kTooLarge,
                             "the replies of a transaction exceed the maximum size", replies_max_));
    } else if (command.finish != nullptr) {
      command.finish(step.call, batch_, step.slot);
    } else {
      command.alone(step.call);
    }
  }

  const AnyCall& call_;
  Transaction& transaction_;
  Batch batch_{Batch::Kind::kAtomic};
  std::vector<Step> steps_;
  size_t replies_max_ = 0;
};

template <typename AnyCall>
void Exec(const AnyCall& call) {
  Session& session = call.session();
  if (session.transaction == nullptr) return call.Error("ERR EXEC without MULTI");
  // The queued commands must see a session without a transaction.
  const auto transaction = std::move(session.transaction);
  if (transaction->doomed()) {
    call.Error("EXECABORT Transaction discarded because of previous errors.");
  } else {
    Execution(call, *transaction).Run();
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
  if (call.session().transaction == nullptr || call.engine().traits().atomic) return Exec(call);
  call.session().EndTransaction();
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
