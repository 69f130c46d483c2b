#include "server/aside_task.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/key_specs.h"
#include "server/server_state.h"

namespace skep {

// A command with its words, and the session and the host that it sees.
class AsideTask::Job final : public SideJob {
 public:
  explicit Job(const ServerCall& call)
      : turn(call.side_turn()),
        gates(call.gates().GatesBeside()),
        host(call.HostBeside(turn, gates)),
        command(call.command()),
        words(call.args().begin(), call.args().end()) {
    const Session& from = call.session();
    session.info = from.info;
    session.protocol = from.protocol;
    session.keyspace = from.keyspace;
    session.syncs_always = from.syncs_always;
    session.syncs = from.syncs;
    uint64_t bytes = 0;
    for (const std::string& word : words) bytes += word.size();
    Hold(call.state().keyspaces().budget(), bytes);
  }

  void Run() override {
    turn.BeginBeside();
    const uint64_t began_ns = turn.MonotonicNs();
    const std::vector<std::string_view> args(words.begin(), words.end());
    RunCommand(ServerCall(host, session, command, args));
    ns = turn.MonotonicNs() - began_ns;
  }

  TurnContext& turn;
  ReplyGates gates;
  Session session;
  ServerHost host;
  const Command& command;
  const std::vector<std::string> words;
  uint64_t ns = 0;

 private:
  // As the dispatcher runs it (command_dispatch.h).
  void RunCommand(const ServerCall& call) {
    if (command.plan == nullptr) return command.alone(call);
    const bool is_split = command.has(Command::kKeyByKey) && !call.engine().traits().atomic;
    const bool is_atomic = command.IsAtomic(words.size()) && !is_split;
    Batch batch(is_atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    if (!is_atomic) batch.set_answer_bytes_max(call.AnswerBytesMax());
    const Plan plan = command.plan(call, batch);
    switch (plan.kind) {
      case Plan::Kind::kAlone:
        return command.alone(call);
      case Plan::Kind::kError:
        return call.Error(plan.error);
      case Plan::Kind::kRequests:
        break;
    }
    call.Execute(batch);
    call.ReserveReply(batch);
    command.finish(call, batch, 0);
  }
};

bool AsideTask::Takes(const ServerCall& call) {
  const bool may_go = call.command().has(Command::kWhole) && call.side_thread().is_allowed() &&
                      call.session().port == nullptr && call.state().range_owner() == nullptr;
  if (!may_go) return false;
  size_t bytes = 0;
  for (const std::string_view word : call.args()) bytes += word.size();
  if (bytes >= kBytesMin) return true;
  // A look at another process is a message to it.
  if (!call.engine().traits().counts_itself) return false;
  Batch look;
  for (const KeyInCall& used : KeysInCall(call.command(), call.args())) {
    look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = used.key});
  }
  size_t steps = 1;  // of LCS: two values have at most 64 MiB each
  look.set_now_ms(call.time_ms());
  call.engine().Execute(look);
  for (uint32_t slot = 0; slot < look.size(); ++slot) {
    const Outcome& out = look.outcome(slot);
    if (out.verdict != Verdict::kDone || !out.present) continue;
    const auto length = static_cast<size_t>(out.integer);
    bytes += length;
    steps *= length + 1;
  }
  if (call.command().name == "lcs") bytes = std::max(bytes, steps);
  return bytes >= kBytesMin;
}

AsideTask::AsideTask(const ServerCall& call) : job_(std::make_shared<Job>(call)) {
  call.side_thread().Post(job_);
}

uint64_t AsideTask::held_bytes() const { return job_->held_bytes(); }

bool AsideTask::Step(const ServerCall& call) {
  if (!job_->is_done()) return true;
  Session& session = call.session();
  call.gates().TakeOver(session, job_->gates, job_->session);
  Session& beside = job_->session;
  std::string reply = beside.pins.bytes() == 0 ? std::move(beside.out) : beside.Cut(0);
  if (reply.starts_with('-')) {
    const std::string_view text = std::string_view(reply).substr(1, reply.find('\r') - 1);
    call.turn().CountError(text);
  }
  if (session.running != nullptr) session.running->ns += job_->ns;
  if (session.out.empty()) {
    session.out = std::move(reply);
  } else {
    session.out += reply;
  }
  return false;
}

}  // namespace skep
