#include "tools/cli/store_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/decimal.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/store_link.h"

namespace skep::cli {
namespace {

// Describes statistics in the form of INFO's sections Keyspace and Engine.
std::string Describe(const StoreStatistics& statistics) {
  std::string text = "# Keyspace\r\n";
  for (const StoreStatistics::Keyspace& k : statistics.keyspaces) {
    text += fmt::format("db{}:keys={},engine={},bytes={},old_versions={},snapshots={}\r\n", k.index,
                        k.items, k.engine, k.bytes, k.old_versions, k.snapshots);
  }
  text += "\r\n# Engine\r\n";
  for (const StoreStatistics::Keyspace& k : statistics.keyspaces) {
    for (const auto& [name, value] : k.details) {
      text += fmt::format("db{}_{}:{}\r\n", k.index, name, value);
    }
  }
  return text;
}

}  // namespace

bool StoreSession::Connect(std::string* problem) {
  session_.EndTransaction();
  store_ = ConnectStore(options_.server, problem);
  if (store_ == nullptr) return false;
  if (HasKeyspace(*store_, options_.keyspace)) {
    session_.keyspace = static_cast<uint32_t>(options_.keyspace);
    return true;
  }
  *problem = fmt::format("{}: {}", address(), kNoSuchKeyspace);
  store_ = nullptr;
  return false;
}

std::string StoreSession::Prompt() const {
  return PromptOf(*this, store_ != nullptr, options_.keyspace,
                  snapshot_.valid() ? "(SNAPSHOT)" : "");
}

const CommandDocs& StoreSession::docs() {
  if (docs_.empty()) docs_ = CommandDocs(StoreCommandDocs());
  return docs_;
}

Result<RespReply> StoreSession::Next() { return Fail(Code::kNotSupported, "nothing streams"); }

// Returns why the command cannot run, or be queued; empty if it can.
std::string StoreSession::Refusal(const StoreCommand& found,
                                  std::span<const std::string_view> args) const {
  if (found.command == nullptr) {
    return fmt::format("ERR '{}' is no command of the packed protocol, which has {}",
                       args[0].substr(0, 128), StoreCommandNames());
  }
  const Command& command = *found.command;
  if (!AcceptsCount(command.arity, args.size())) return WrongCountError(command);
  if (!in_transaction() || command.no_multi.empty()) return {};
  return fmt::format("ERR Command not allowed inside a transaction: {}", command.no_multi);
}

Result<RespReply> StoreSession::Run(std::span<const std::string_view> args) {
  const StoreCommand found = FindStoreCommand(args[0]);
  if (const std::string why = Refusal(found, args); !why.empty()) {
    if (in_transaction()) session_.transaction->Doom();
    return RespReply{.type = RespReply::Type::kError, .text = why};
  }
  if (in_transaction() && !found.command->has(Command::kUnqueued)) {
    session_.transaction->Add(*found.command, args);
    return RespReply{.type = RespReply::Type::kSimple, .text = "QUEUED"};
  }
  now_ = {.ms = SystemClock().WallMs()};
  failure_ = {};
  const Call call(*this, session_, *found.command, args);
  found.own == OwnCommand::kNone ? RunPlanned(call) : RunOwn(found.own, call);
  RespReply reply = TakeReply();
  const bool is_broken = failure_.code() == Code::kUnavailable;
  if (snapshot_.valid() && (is_broken || failure_.code() == Code::kSnapshotTooOld)) {
    snapshot_ = {};
    Complain("the snapshot is gone, by its age or with its connection; reads are of now again");
  }
  if (!is_broken) return reply;
  store_ = nullptr;
  return Fail(failure_);
}

// Runs a planned command as one batch, also if a server runs it alone, in turns: the store reads
// long ranges piece by piece, at one version.
void StoreSession::RunPlanned(const Call& call) {
  const Command& command = call.command();
  if (command.plan == nullptr && command.finish == nullptr) return command.alone(call);
  Batch unordered;
  Batch atomic(Batch::Kind::kAtomic);
  const bool is_atomic = command.IsAtomic(call.args().size());
  Plan plan;
  if (command.plan != nullptr) plan = command.plan(call, is_atomic ? atomic : unordered);
  if (plan.kind == Plan::Kind::kAlone) plan = command.plan(call, atomic);
  if (plan.kind == Plan::Kind::kError) return call.Error(plan.error);
  if (!is_atomic) {
    for (Request request : atomic.requests()) {
      // The request was planned for a transaction. In a keyspace without order, a count with a
      // limit is refused, as it should be; one without counts all keys, as DBSIZE does.
      if (request.op == Op::kCount) request.limit = kNoLimit - 1;
      unordered.Add(request);
    }
  }
  Batch& batch = is_atomic ? atomic : unordered;
  if (!batch.empty()) call.Execute(batch);
  command.finish(call, batch, 0);
}

void StoreSession::Execute(skep::Session&, Batch& batch, std::span<const PlannedCommand>) {
  const bool reads = std::ranges::none_of(batch.requests(), IsWrite, &Request::op);
  if (reads && snapshot_.valid()) batch.set_snapshot(snapshot_.ref());
  failure_ = store_->Execute(batch, session_.keyspace);
  for (uint32_t slot = 0; slot < batch.size() && failure_.ok(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.verdict == Verdict::kRefused) failure_ = out.status;
  }
}

RespReply StoreSession::TakeReply() {
  RespReply reply = ReplyOf(session_.out);
  session_.out.clear();
  return reply;
}

// ---- Commands that are no batches ----

void StoreSession::RunOwn(OwnCommand own, const Call& call) {
  switch (own) {
    case OwnCommand::kDbsize:
      return CountKeys(call);
    case OwnCommand::kInfo:
      if (!Answers(call)) return;
      return call.reply().Verbatim("txt", Describe(store_->Statistics()));
    case OwnCommand::kPing:
      return Ping(call);
    case OwnCommand::kSave:
      return Save(call);
    case OwnCommand::kSelect:
      return Select(call);
    case OwnCommand::kSnapshot:
      return Pin(call);
    case OwnCommand::kNone:
      break;
  }
}

// Asks the server whether it answers, by looking at a key, as the store has no ping. If it does
// not, the error is the reply.
bool StoreSession::Answers(const Call& call) {
  Batch batch;
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = {}, .other = {}});
  call.Execute(batch);
  return !call.Refused(batch);
}

void StoreSession::Ping(const Call& call) {
  if (Answers(call)) call.command().finish(call, Batch(), 0);
}

void StoreSession::CountKeys(const Call& call) {
  if (snapshot_.valid()) {
    const auto count = store_->Count(Range::All(), session_.keyspace, &snapshot_);
    if (!count) failure_ = count.error();
    return count ? call.reply().Integer(static_cast<int64_t>(*count)) : call.Error(failure_);
  }
  if (!Answers(call)) return;  // statistics do not tell
  uint64_t items = 0;
  for (const StoreStatistics::Keyspace& k : store_->Statistics().keyspaces) {
    if (k.index == session_.keyspace) items = k.items;
  }
  call.reply().Integer(static_cast<int64_t>(items));
}

// A snapshot that is being written already is no broken connection, though both are kUnavailable.
void StoreSession::Save(const Call& call) {
  const Status saved = store_->SaveSnapshot();
  return saved.ok() ? call.reply().SimpleString("OK") : call.Error(saved);
}

void StoreSession::Select(const Call& call) {
  const auto index = ParseInt64(call.arg(1));
  if (!index) return call.Error(kNotAnInteger);
  const auto keyspace = static_cast<uint64_t>(*index);
  if (*index < 0 || !HasKeyspace(*store_, keyspace)) return call.Error(kNoSuchKeyspace);
  if (keyspace != session_.keyspace && snapshot_.valid()) {
    return call.Error("ERR SELECT while a snapshot is open: it is of one database");
  }
  options_.keyspace = keyspace;
  session_.keyspace = static_cast<uint32_t>(keyspace);
  call.reply().SimpleString("OK");
}

void StoreSession::Pin(const Call& call) {
  const bool ends = call.args().size() == 2 && EqualsIgnoringCase(call.arg(1), "end");
  if (call.args().size() > 1 && !ends) return call.Error(kSyntaxError);
  if (ends) {
    if (!snapshot_.valid()) return call.Error("ERR SNAPSHOT END without SNAPSHOT");
    snapshot_ = {};
    return call.reply().SimpleString("OK");
  }
  auto taken = store_->TakeSnapshot(session_.keyspace);
  if (!taken) {
    failure_ = taken.error();
    return call.Error(failure_);
  }
  snapshot_ = std::move(*taken);
  call.reply().Integer(static_cast<int64_t>(snapshot_.version()));
}

}  // namespace skep::cli
