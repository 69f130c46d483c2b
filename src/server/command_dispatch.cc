#include "server/command_dispatch.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "server/aside_task.h"
#include "server/portions.h"
#include "server/slow_log.h"
#include "server/subcommands.h"
#include "server/web_page.h"

namespace skep {
namespace {

constexpr size_t kArgsKeptMax = 64 * 1024;  // capacity of the argument list between inputs
// Limits before a client has logged in.
constexpr RespLimits kUnauthenticated{.args_max = 10,
                                      .bulk_bytes_max = kStrangerBytesMax,
                                      .inline_bytes_max = kStrangerBytesMax,
                                      .authenticated = false};

std::string UnknownCommandError(std::span<const std::string_view> args) {
  constexpr size_t kShown = 128;
  std::string text = fmt::format("ERR unknown command '{}', with args beginning with: ",
                                 args[0].substr(0, kShown));
  size_t shown = 0;
  for (const std::string_view arg : args.subspan(1)) {
    if (shown >= kShown) break;
    const std::string_view part = arg.substr(0, kShown - shown);
    text += fmt::format("'{}' ", part);
    shown += part.size() + 3;
  }
  return text;
}

// How the command has ended whose reply begins there.
Ending EndingOf(const Session& session, size_t reply_begin) {
  return skep::EndingOf(
      std::string_view(session.out).substr(std::min(session.out.size(), reply_begin)));
}

}  // namespace

// ---- Decoding ----

void CommandDispatch::Read(Session& session) {
  if (session.closed || session.closing || !session.wants_read) return;
  if (session.reads_ahead()) return ReadAhead(session);
  if (session.paused()) return connections_.UpdateInterest(session);
  batch_.DropInput(session);
  if (!session.in.empty()) {
    if (connections_.ReadMore(session) == 0) return;
    if (session.subscriber != nullptr) host_.deliveries().Deliver();
    return Continue(session);
  }
  const std::span<char> room = batch_.ReadRoom();
  const size_t bytes = connections_.Read(session, room);
  if (bytes == 0) return;
  if (session.subscriber != nullptr) host_.deliveries().Deliver();
  batch_.TakeRoom(bytes);
  const size_t used = Decode(session, {room.data(), bytes});
  session.in.assign(room.data() + used, room.data() + bytes);
  connections_.FinishInput(session);
}

// Reads what a client sends while its command waits for a key; a client that has finished is gone,
// as for Redis.
void CommandDispatch::ReadAhead(Session& session) {
  batch_.DropInput(session);
  if (connections_.ReadMore(session) > 0) connections_.FinishInput(session);
  if (session.peer_finished) connections_.MarkClosed(session);
}

void CommandDispatch::Continue(Session& session) {
  const std::string_view input = std::string_view(session.in).substr(session.in_used);
  const size_t used = Decode(session, input);
  if (std::exchange(session.in_is_taken, false)) {
    session.in = input.substr(used);  // the task of the session has it
  } else {
    session.in_used += used;
  }
  if (session.in_used > 0) batch_.KeepInput(session);
  connections_.FinishInput(session);
}

// Dispatches the commands in `input`; returns how many bytes of it were consumed.
size_t CommandDispatch::Decode(Session& session, std::string_view input) {
  size_t begin = 0;
  if (!session.begun) {
    const auto hello = packed_.DecodeHello(session, input);
    if (!hello) return 0;
    begin = *hello;
  }
  if (session.packed != nullptr) return begin + packed_.Decode(session, input.substr(begin));
  const size_t used = DecodeCommands(session, input);
  // One command may have had a million arguments.
  if (args_.capacity() > kArgsKeptMax) std::vector<std::string_view>().swap(args_);
  return used;
}

size_t CommandDispatch::DecodeCommands(Session& session, std::string_view input) {
  const RespLimits limits{.bulk_bytes_max = turn_.options().proto_max_bulk_len};
  size_t at = 0;
  while (at < input.size()) {
    batch_.BoundPipeline(session);
    if (session.paused() || session.closing || session.closed) break;
    const std::string_view rest = input.substr(at);
    const auto event = session.decoder.Next(
        rest, turn_.IsAuthenticated(session) ? limits : kUnauthenticated, args_);
    if (event == RespDecoder::Event::kNeedMore) break;
    if (event == RespDecoder::Event::kError) {
      batch_.AddError(session, batch_.scratch().Concat("ERR ", session.decoder.error()));
      session.closing = true;
      return input.size();
    }
    if (rest.front() != '*') {
      // Words that an inline command quoted live only until the next command is decoded.
      for (std::string_view& arg : args_) arg = batch_.scratch().Copy(arg);
      if (IsRequestOfHttp(args_)) {
        HangUpOnWebPage(session);
        break;
      }
    }
    const size_t consumed = session.decoder.consumed();
    if (!args_.empty() && !Dispatch(session, args_)) break;
    at += consumed;
  }
  return at;
}

// Closes the connection of a browser's request (web_page.h).
void CommandDispatch::HangUpOnWebPage(Session& session) {
  host_.state().log().Report(
      Incident::kWebPage,
      fmt::format("Possible SECURITY ATTACK: a request of HTTP or TLS came from {}. "
                  "A page in a browser there may try to run commands. The connection is closed",
                  session.info->peer));
  turn_.CountError();
  connections_.MarkClosed(session);
}

// ---- Dispatching ----

// Returns false if the command has to wait and must be decoded again.
bool CommandDispatch::Dispatch(Session& session, std::span<const std::string_view> args) {
  const Command* const command = FindCommand(args[0]);
  if (command == nullptr && BeginsLikeWebPage(args[0])) {
    HangUpOnWebPage(session);
    return true;
  }
  const std::string_view refusal = Refusal(session, command, args);
  if (command == nullptr || !refusal.empty()) {
    AddRefusal(session, command, args, refusal);
    return true;
  }
  if (IsHeld(session, *command)) return false;
  if (session.transaction != nullptr && !command->has(Command::kUnqueued)) {
    static constexpr Command kQueued{.finish = +[](const Call& call, const Batch&, uint32_t) {
      call.reply().SimpleString("QUEUED");
    }};
    session.transaction->Add(*command, args);
    Bump(turn_.statistics().commands);
    batch_.AddReply(session, kQueued, {});
    return true;
  }
  if (command->has(Command::kRange) && !batch_.PrepareRange(session)) return false;
  const char* const name = command->subcommands == nullptr
                               ? command->name.data()
                               : CountedCommands()[CountedPlace(*command, args)].name.c_str();
  session.info->last_command.store(name, std::memory_order_relaxed);
  if (!Run(session, *command, args)) return false;
  Bump(turn_.statistics().commands);
  return true;
}

// Whether CLIENT PAUSE has the command wait; if so, lists the session. CLIENT itself, which may end
// the pause, does not wait.
bool CommandDispatch::IsHeld(Session& session, const Command& command) {
  const bool writes =
      command.has(Command::kWrite) ||
      (session.transaction != nullptr && session.transaction->writes() && command.name == "exec");
  ClientPause& pause = host_.state().pause();
  if (!pause.Holds(writes, turn_.monotonic_ms()) || command.name == "client") return false;
  session.held = true;
  held_.push_back(&session);
  pause.CountWaiting(1);
  return true;
}

std::vector<Session*> CommandDispatch::TakeHeld() {
  ClientPause& pause = host_.state().pause();
  if (held_.empty() || pause.Holds(true, turn_.monotonic_ms())) return {};
  pause.CountWaiting(-static_cast<int64_t>(held_.size()));
  for (Session* const session : held_) session->held = false;
  return std::exchange(held_, {});
}

void CommandDispatch::DropClosed() {
  const size_t dropped = std::erase_if(held_, [](const Session* s) { return s->closed; });
  host_.state().pause().CountWaiting(-static_cast<int64_t>(dropped));
}

// The error for a command that cannot be run at all; empty if it can.
std::string_view CommandDispatch::Refusal(const Session& session, const Command* command,
                                          std::span<const std::string_view> args) {
  Scratch& scratch = batch_.scratch();
  if (command == nullptr) return scratch.Copy(UnknownCommandError(args));
  if (!AcceptsCount(command->arity, args.size())) return scratch.Copy(WrongCountError(*command));
  if (command->subcommands != nullptr) {
    const std::string error = SubcommandError(*command, args);
    if (!error.empty()) return scratch.Copy(error);
  }
  if (!turn_.IsAuthenticated(session) && !command->has(Command::kNoAuth)) {
    return "NOAUTH Authentication required.";
  }
  if (session.protocol == 2 && IsSubscribed(session) && !command->has(Command::kWhenSubscribed)) {
    return scratch.Copy(fmt::format(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
        "RESET are allowed in this context",
        CountedCommands()[CountedPlace(*command, args)].name));
  }
  if (Monitors(session) && (command->has(Command::kWrite) || command->has(Command::kReadOnly))) {
    return "ERR Replica can't interact with the keyspace";
  }
  return session.transaction == nullptr ? std::string_view()
                                        : RefusalToQueue(session, *command, args);
}

std::string_view CommandDispatch::RefusalToQueue(const Session& session, const Command& command,
                                                 std::span<const std::string_view> args) {
  if (!command.no_multi.empty()) {
    return batch_.scratch().Concat("ERR Command not allowed inside a transaction: ",
                                   command.no_multi);
  }
  if (command.has(Command::kUnqueued)) return {};
  // Commands that delete are queued nevertheless, because they free memory.
  const bool deletes = command.has(Command::kWrite) && !command.has(Command::kStores);
  if (!deletes && !host_.state().keyspaces().budget().HasRoomFor(0)) return kOutOfMemory;
  if (session.transaction->bytes() + Transaction::BytesOf(args) >
      turn_.options().client_query_buffer_limit) {
    return "ERR the transaction exceeds client-query-buffer-limit";
  }
  return {};
}

// As in Redis, a command that cannot run dooms its transaction, and an EXEC that cannot run ends
// it.
void CommandDispatch::AddRefusal(Session& session, const Command* command,
                                 std::span<const std::string_view> args, std::string_view refusal) {
  if (command != nullptr && command->name == "exec") {
    session.EndTransaction();
    constexpr std::string_view kCode = "ERR ";
    if (refusal.starts_with(kCode)) refusal.remove_prefix(kCode.size());
    return batch_.AddError(
        session, batch_.scratch().Concat("EXECABORT Transaction discarded because of: ", refusal));
  }
  if (session.transaction != nullptr) session.transaction->Doom();
  batch_.AddError(session, refusal);
  if (command == nullptr) return;
  turn_.statistics().by_command.CountRejected(CountedPlace(*command, args));
}

// ---- Running: returns false like Dispatch ----

bool CommandDispatch::Run(Session& session, const Command& command,
                          std::span<const std::string_view> args) {
  if (AsideTask::Takes(ServerCall(host_, session, command, args))) {
    return RunAside(session, command, args);
  }
  if (command.IsAtomic(args.size())) return RunAtomic(session, command, args);
  if (command.plan != nullptr) return RunPlanned(session, command, args);
  if (command.alone != nullptr) return RunAlone(session, command, args);
  batch_.AddReply(session, command, args);
  return true;
}

bool CommandDispatch::RunPlanned(Session& session, const Command& command,
                                 std::span<const std::string_view> args) {
  if (!command.has(Command::kRange) && !batch_.PreparePoint(session)) return false;
  Batch& batch = batch_.Shared(session.keyspace);
  const auto first = static_cast<uint32_t>(batch.size());
  const Plan plan = command.plan(ServerCall(host_, session, command, args), batch);
  switch (plan.kind) {
    case Plan::Kind::kAlone:
      return RunAlone(session, command, args);
    case Plan::Kind::kError:
      batch_.AddError(session, plan.error);
      // Monitors see the commands of a connection in their order.
      if (host_.state().subscriptions().MonitorCount() > 0) batch_.Flush();
      turn_.CountCommand(session, command, args, 0, Ending::kFailed);
      return true;
    case Plan::Kind::kRequests:
      break;
  }
  // Who waits for a key has its element before the connection's next command.
  const bool serves = host_.state().waiters().MayAwait(batch, first);
  batch_.Add(session, command, args, first);
  if (serves) batch_.Flush();
  return true;
}

bool CommandDispatch::RunAtomic(Session& session, const Command& command,
                                std::span<const std::string_view> args) {
  const ServerCall call(host_, session, command, args);
  const bool is_split = command.has(Command::kKeyByKey) && !call.engine().traits().atomic;
  Batch* const batch =
      is_split ? batch_.BeginSplit(session) : batch_.BeginExclusive(session, Batch::Kind::kAtomic);
  if (batch == nullptr) return false;
  const uint64_t began_ns = turn_.MonotonicNs();
  const size_t reply_begin = session.out.size();
  const Plan plan = command.plan(call, *batch);
  if (plan.kind == Plan::Kind::kError) {
    call.Error(plan.error);
  } else {
    if (call.MayGoAside() && !is_split) batch->set_portion_bytes_max(kPortionBytesMax);
    call.Execute(*batch);
    if (IsLeftOut(*batch)) {
      GoAside(call);
      return true;
    }
    call.ReserveReply(*batch);
    command.finish(call, *batch, 0);
  }
  turn_.CountCommand(session, command, args, turn_.MonotonicNs() - began_ns,
                     EndingOf(session, reply_begin));
  session.EndReply(reply_begin);
  batch_.EndExclusive(session);
  return true;
}

bool CommandDispatch::RunAside(Session& session, const Command& command,
                               std::span<const std::string_view> args) {
  if (batch_.BeginExclusive(session, Batch::Kind::kUnordered) == nullptr) return false;
  GoAside(ServerCall(host_, session, command, args));
  return true;
}

// Runs the command beside the worker. Requires that an exclusive batch has begun.
void CommandDispatch::GoAside(const ServerCall& call) {
  // Monitors see the command before those that it lets go on.
  turn_.TellMonitors(call.session(), call.command(), call.args());
  call.Start(std::make_unique<AsideTask>(call));
  NoteRunning(call.session(), call.command(), call.args(), 0);
  batch_.EndExclusive(call.session());
}

// Notes what the command has had before its task goes on.
void CommandDispatch::NoteRunning(Session& session, const Command& command,
                                  std::span<const std::string_view> args, uint64_t ns) {
  session.running = std::make_unique<RunningCommand>(RunningCommand{
      .counted_place = CountedPlace(command, args), .words = WordsToLog(args), .ns = ns});
}

bool CommandDispatch::RunAlone(Session& session, const Command& command,
                               std::span<const std::string_view> args) {
  if (batch_.BeginExclusive(session, Batch::Kind::kAtomic) == nullptr) return false;
  const size_t reply_begin = session.out.size();
  const uint64_t began_ns = turn_.MonotonicNs();
  command.alone(ServerCall(host_, session, command, args));
  // The command may have been CONFIG SET, which is noted by the options that it has set.
  turn_.RefreshOptions();
  turn_.CountWork(session.out.size() - reply_begin);
  const uint64_t ns = turn_.MonotonicNs() - began_ns;
  if (session.waiter != nullptr) {
    session.waiter->ns = ns;
    turn_.TellMonitors(session, command, args);
  } else if (session.task == nullptr) {
    turn_.CountCommand(session, command, args, ns, EndingOf(session, reply_begin));
  } else {
    if (!session.task->tells_monitors()) turn_.TellMonitors(session, command, args);
    NoteRunning(session, command, args, ns);
  }
  session.EndReply(reply_begin);
  batch_.EndExclusive(session);
  return true;
}

}  // namespace skep
