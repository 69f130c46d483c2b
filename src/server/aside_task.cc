#include "server/aside_task.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/command_statistics.h"
#include "server/key_specs.h"
#include "server/server_state.h"
#include "skep/scratch.h"

namespace skep {

namespace {

// Whether the command, run as it is planned, stores what its words bring.
bool StoresWords(const Command& command) {
  return command.has(Command::kStores) && command.plan != nullptr &&
         !command.has(Command::kBlocks) && !command.has(Command::kReadsFirst);
}

}  // namespace

// A command with its words, and the session and the host that it sees.
class AsideTask::Job final : public SideJob {
 public:
  Job(const ServerCall& call, std::unique_ptr<Transaction> transaction)
      : turn(call.side_turn()),
        gates(call.gates().GatesBeside()),
        host(call.HostBeside(turn, gates)),
        command(call.command()) {
    Session& from = call.session();
    session.info = from.info;
    session.protocol = from.protocol;
    session.keyspace = from.keyspace;
    session.syncs_always = from.syncs_always;
    session.syncs = from.syncs;
    size_t bytes = TakeWords(call);
    writes = command.has(Command::kWrite);
    is_transaction = transaction != nullptr;
    if (is_transaction) {
      writes = transaction->writes();
      bytes += transaction->bytes() + from.watched.bytes();
      session.watched.TakeOver(from.watched);
      session.transaction = std::move(transaction);
    }
    Hold(call.state().keyspaces().budget(), bytes);
  }

  bool MustWait() const { return host.state().pause().Holds(writes, turn.monotonic_ms()); }

  void Run() override {
    turn.BeginBeside();
    is_held = MustWait();
    if (is_held) return;
    const uint64_t began_ns = turn.MonotonicNs();
    RunCommand(ServerCall(host, session, command, words));
    ns = turn.MonotonicNs() - began_ns;
    // Monitors see EXEC behind its commands.
    if (is_transaction) turn.TellMonitors(session, command, words);
  }

  TurnContext& turn;
  ReplyGates gates;
  Session session;
  ServerHost host;
  const Command& command;
  std::vector<std::string_view> words;  // in `input` or `copies`
  std::string input;                    // was the session's
  Scratch copies;
  uint64_t ns = 0;
  bool writes = false;
  bool is_transaction = false;
  bool is_held = false;  // by CLIENT PAUSE: it was not run

 private:
  // Returns the bytes that they take.
  size_t TakeWords(const ServerCall& call) {
    size_t bytes = 0;
    for (const std::string_view word : call.args()) bytes += word.size();
    Session& from = call.session();
    const bool are_input =
        std::ranges::all_of(call.args(), [&](std::string_view word) { return from.IsInput(word); });
    if (bytes >= kWordsBytesMin && are_input) {
      words.assign(call.args().begin(), call.args().end());
      input = from.TakeInput(call.state().keyspaces().budget());
      return input.capacity();
    }
    for (const std::string_view word : call.args()) words.push_back(copies.Copy(word));
    return bytes;
  }

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
  const bool is_whole = call.command().has(Command::kWhole);
  // Large words have come piece by piece, so they lie in the session's input.
  const bool may_store = call.session().in.size() >= kWordsBytesMin && StoresWords(call.command());
  if (!(is_whole || may_store) || !call.MayGoAside()) return false;
  size_t bytes = 0;
  for (const std::string_view word : call.args()) bytes += word.size();
  if (bytes >= (is_whole ? kBytesMin : kWordsBytesMin)) return true;
  return is_whole && AreLong(call, bytes);
}

// Whether `bytes`, and the values and collections at the keys of the call, are so many that it goes
// aside.
bool AsideTask::AreLong(const ServerCall& call, size_t bytes) {
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

bool AsideTask::Takes(const ServerCall& call, Transaction& transaction) {
  if (!transaction.may_go_aside() || !call.MayGoAside()) return false;
  if (transaction.bytes() >= kBytesMin) return true;
  bool takes = false;
  if (!transaction.has_whole()) return takes;
  // A command that reads before it writes is rehearsed on copies of what those before it write.
  bool copies = false;
  transaction.ForEach([&](const Command& command, std::span<const std::string_view>) {
    copies = copies || command.has(Command::kReadsFirst);
  });
  transaction.ForEach([&](const Command& command, std::span<const std::string_view> args) {
    const ServerCall queued = call.Of(command, args);
    takes = takes || Takes(queued) || (copies && AreLong(queued, 0));
  });
  return takes;
}

AsideTask::AsideTask(const ServerCall& call, std::unique_ptr<Transaction> transaction)
    : job_(std::make_shared<Job>(call, std::move(transaction))) {
  call.side_thread().Post(job_);
}

uint64_t AsideTask::held_bytes() const { return job_->held_bytes(); }
bool AsideTask::tells_monitors() const { return job_->is_transaction; }

bool AsideTask::Step(const ServerCall& call) {
  if (!job_->is_done()) return true;
  if (job_->is_held) {
    if (!call.state().pause().Holds(job_->writes, call.monotonic_ms())) {
      call.side_thread().PostAgain(job_);
    }
    return true;
  }
  Session& session = call.session();
  call.gates().TakeOver(session, job_->gates, job_->session);
  Session& beside = job_->session;
  std::string reply = beside.pins.bytes() == 0 ? std::move(beside.out) : beside.Cut(0);
  session.has_scans |= beside.has_scans;
  if (session.running != nullptr) {
    session.running->ns += job_->ns;
    session.running->ending = EndingOf(reply);
  }
  if (session.out.empty()) {
    session.out = std::move(reply);
  } else {
    session.out += reply;
  }
  return false;
}

}  // namespace skep
