#include "server/worker.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/postponed_task.h"
#include "server/subcommands.h"
#include "server/web_page.h"

namespace skep {
namespace {

constexpr size_t kReadBufferBytes = 256 * 1024;
constexpr uint32_t kPipelineMax = 256;  // commands of a connection in a flush
constexpr uint32_t kBatchMax = 512;     // requests, about
constexpr uint64_t kUpkeepMs = 100;
constexpr int kUpkeepPauseMs = 1;
constexpr size_t kArgsKeptMax = 64 * 1024;     // capacity of the argument lists between turns
constexpr uint32_t kStrangerPipelineMax = 16;  // their errors repeat what was sent
// Before a client has logged in.
constexpr RespLimits kUnauthenticated{.args_max = 10,
                                      .bulk_bytes_max = kStrangerBytesMax,
                                      .inline_bytes_max = kStrangerBytesMax,
                                      .authenticated = false};

}  // namespace

Worker::Worker(ServerState& state, Administration& administration, WorkerPool& pool)
    : state_(state),
      poller_(state.environment().network.NewPoller()),
      turn_(state),
      acceptor_(state, pool, turn_, *poller_),
      connections_(state, pool, turn_, *poller_),
      gates_(poller_),
      tasks_(state.environment().clock, state.keyspaces(), turn_),
      host_(state, administration, turn_, gates_),
      messages_(state.replies(), turn_, gates_, connections_),
      read_buffer_(kReadBufferBytes),
      batches_(state.keyspaces().count()) {}

Worker::~Worker() {
  connections_.MarkAllClosed();
  ReapClosed();
  // Those of datagrams: all others are gone.
  gates_.DropIf([this](Session* session) {
    connections_.Charge(*session, 0);
    return true;
  });
  for (const auto& port : ports_) poller_->Remove(port->socket());
}

void Worker::Adopt(std::unique_ptr<Stream> stream) {
  connections_.Adopt(std::move(stream));
  Wake();
}

Status Worker::Serve(std::unique_ptr<DatagramSocket> socket) {
  auto port = std::make_unique<DatagramPort>(std::move(socket));
  if (Status s = poller_->Add(port->socket(), port.get()); !s.ok()) return s;
  ports_.push_back(std::move(port));
  return {};
}

bool Worker::Turn(int timeout_ms) {
  const bool has_tasks = (tasks_.has_ready() && tasks_.patience_ms() == 0) ||
                         connections_.has_resumed() || tasks_.has_put_off();
  const bool has_work = has_tasks || gates_.has_work();
  const bool busy = has_work || upkeep_left_;
  // Upkeep that is left has a piece in each turn; without other work there are few turns, since
  // nobody waits for it and clients may need the processor.
  const int patience = has_work             ? 0
                       : upkeep_left_       ? kUpkeepPauseMs
                       : tasks_.has_ready() ? tasks_.patience_ms()
                                            : static_cast<int>(kUpkeepMs);
  const auto events = poller_->Wait(timeout_ms < 0 ? patience : std::min(timeout_ms, patience));
  gates_.SyncIfDue(events.empty(), connections_.size());
  if (!has_tasks && events.empty()) gates_.StayAwake();
  turn_.Begin();
  connections_.MarkEnded();
  const bool adopted = connections_.AdoptNew();
  // Before the network: a connection is read only when all that was read of it is executed.
  PassGates();
  ResumeSessions();
  for (const ReadyEvent& event : events) Handle(event);
  Flush();
  ForgetViewed();
  scratch_.Clear();
  StepTasks();
  Send();
  // What those have who are closed now is free before the next turn makes more.
  connections_.EvictLargest();
  connections_.MarkEnded();
  ReapClosed();
  tasks_.GiveUpStalledPins();
  Upkeep();
  return busy || adopted || !events.empty();
}

void Worker::PassGates() {
  for (Session* const session : gates_.Pass()) {
    connections_.Queue(*session);
    if (!session->waiting && std::exchange(session->blocked, false)) connections_.Resume(*session);
  }
}

// One that was put off goes on in each turn at least, since nothing is executed before.
void Worker::ResumeSessions() {
  while (Session* const session = tasks_.TakePutOff()) {
    if (!session->closed) DecodeKept(*session);
  }
  for (Session* const session : connections_.TakeResumed()) {
    if (!session->closed) DecodeKept(*session);
  }
}

void Worker::Handle(const ReadyEvent& event) {
  if (Listener* const listener = acceptor_.Find(event.tag)) return acceptor_.Accept(*listener);
  const auto port = std::ranges::find(ports_, event.tag, &std::unique_ptr<DatagramPort>::get);
  if (port != ports_.end()) return ReceiveDatagrams(**port);
  Session& session = *static_cast<Session*>(event.tag);
  // Of a stream of which nothing is wanted this is told only if it broke. (That it is readable
  // may have been wanted when the wait began, and not any more since the session went on.)
  if (event.writable && !session.wants_read && !session.wants_write) {
    connections_.MarkClosed(session);
  }
  if (event.readable) ReadFrom(session);
  if (event.writable) connections_.Queue(session);
}

void Worker::StepTasks() {
  tasks_.Step([this](Session& session) {
    static const Command kNone{};
    const ServerCall call(host_, session, kNone, {});
    const bool goes_on = session.task->Step(call);
    if (!goes_on) {
      if (session.task->is_of_one_command()) session.CountSync();
      session.task.reset();
      if (session.port == nullptr) connections_.Resume(session);
    }
    connections_.Queue(session);
    return goes_on;
  });
}

void Worker::Send() {
  SendDatagrams();
  for (Session* const session : connections_.Send()) tasks_.Resume(*session);
}

void Worker::ReapClosed() {
  if (!connections_.has_closed()) return;
  const auto is_closed = [](const Session* session) { return session->closed; };
  gates_.DropIf(is_closed);
  tasks_.DropClosed();
  std::erase_if(kept_, is_closed);
  connections_.Reap();
}

// Every now and then: what no event asks for.
void Worker::Upkeep() {
  if (upkeep_left_) upkeep_left_ = state_.keyspaces().Maintain(turn_.now().ms);
  const uint64_t now_ms = turn_.monotonic_ms();
  if (now_ms < next_upkeep_ms_) return;
  next_upkeep_ms_ = now_ms + kUpkeepMs;
  state_.log().WatchClock(turn_.now());
  upkeep_left_ = state_.keyspaces().Maintain(turn_.now().ms);
  DropOverdueDatagrams();
  state_.log().ReportWhatIsOver();
  if (durable::Persistence* const persistence = state_.persistence()) {
    state_.log().WatchSnapshots(*persistence);
    state_.log().WatchDisk(*persistence);
  }
  state_.cursors().Expire(now_ms, 64);
  state_.key_scans().Expire(now_ms, 64);
  acceptor_.Retry();
  connections_.Upkeep();
  ReapClosed();
}

void Worker::Drain() {
  if (std::exchange(draining_, true)) return;
  acceptor_.Stop();
  for (const auto& port : ports_) poller_->Remove(port->socket());
  connections_.Drain();
}

// ---- 1. The network ----

void Worker::ReadFrom(Session& session) {
  if (session.closed) return;
  if (!session.wants_read || session.closing) return;
  if (session.paused()) return connections_.UpdateInterest(session);
  if (session.in_used > 0) {
    Flush();
    ForgetViewed();
  }
  if (!session.in.empty()) {
    if (connections_.ReadMore(session) > 0) DecodeKept(session);
    return;
  }
  if (kReadBufferBytes - read_used_ < Connections::kReadBytesMin) Flush();
  if (pending_.empty()) read_used_ = 0;
  char* const at = read_buffer_.data() + read_used_;
  const size_t room = std::min(Connections::kReadBytes, kReadBufferBytes - read_used_);
  const size_t bytes = connections_.Read(session, {at, room});
  if (bytes == 0) return;
  read_used_ += bytes;
  session.in.assign(at + Decode(session, {at, bytes}), at + bytes);
  connections_.FinishInput(session);
}

// While a command of the session is pending it has no other task.
PostponedTask& Worker::TaskOf(Session& session) {
  if (session.task == nullptr) {
    session.task = std::make_unique<PostponedTask>(state_.keyspaces().budget(), messages_);
    tasks_.Add(session);
  }
  return static_cast<PostponedTask&>(*session.task);
}

// Its commands took their time: it goes on in the next turn.
void Worker::LetOthersGoFirst(Session& session) {
  if (session.port == nullptr && !session.closed) TaskOf(session);
}

// web_page.h
void Worker::HangUpOnWebPage(Session& session) {
  state_.log().Report(
      Incident::kWebPage,
      fmt::format("Possible SECURITY ATTACK: a request of HTTP or TLS came from {}. "
                  "A page in a browser there may try to run commands. The connection is closed",
                  session.info->peer));
  turn_.CountError();
  connections_.MarkClosed(session);
}

// ---- 2. Commands ----

void Worker::DecodeKept(Session& session) {
  session.in_used += Decode(session, std::string_view(session.in).substr(session.in_used));
  if (session.in_used > 0) kept_.push_back(&session);
  connections_.FinishInput(session);
}

// Dispatches the commands in `input`; returns how many bytes of it are done with.
size_t Worker::Decode(Session& session, std::string_view input) {
  size_t begin = 0;
  if (!session.begun) {
    const auto hello = DecodeHello(session, input);
    if (!hello) return 0;
    begin = *hello;
  }
  if (session.packed != nullptr) return begin + DecodeMessages(session, input.substr(begin));
  const RespLimits limits{.bulk_bytes_max = turn_.options().proto_max_bulk_len};
  size_t at = 0;
  while (at < input.size()) {
    LimitPipeline(session);
    if (session.paused() || session.closing || session.closed) break;
    const std::string_view rest = input.substr(at);
    const auto event = session.decoder.Next(
        rest, turn_.IsAuthenticated(session) ? limits : kUnauthenticated, args_);
    if (event == RespDecoder::Event::kNeedMore) break;
    if (event == RespDecoder::Event::kError) {
      PendError(session, scratch_.Concat("ERR ", session.decoder.error()));
      session.closing = true;
      return input.size();
    }
    if (rest.front() != '*') {
      // What an inline command quoted lives only until the next command is decoded.
      for (std::string_view& arg : args_) arg = scratch_.Copy(arg);
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

// Keeps the replies of one connection's pipeline in bounds.
void Worker::LimitPipeline(Session& session) {
  if (turn_.IsStranger(session))
    session.count_max = std::min(session.count_max, kStrangerPipelineMax);
  if (session.counted_flush == flush_ && session.count >= session.count_max) {
    Flush();
    const uint64_t bytes_each = flushed_bytes_ / session.count_max + 1;
    const uint64_t fit = std::min<uint64_t>(kUnsentMax / bytes_each, 2 * session.count_max);
    session.count_max = static_cast<uint32_t>(std::clamp<uint64_t>(fit, 1, kPipelineMax));
  }
  session.stalled = session.unsent() > turn_.UnsentMax(session);
}

// False if the command has to wait, for a gate or for a task of its connection, and must be decoded
// again.
bool Worker::Dispatch(Session& session, std::span<const std::string_view> args) {
  const Command* const command = FindCommand(args[0]);
  if (command == nullptr && BeginsLikeWebPage(args[0])) {
    HangUpOnWebPage(session);
    return true;
  }
  if (const auto refusal = Refusal(session, command, args); !refusal.empty()) {
    PendRefusal(session, command, refusal);
    return true;
  }
  if (session.transaction != nullptr && !command->has(Command::kUnqueued)) {
    static constexpr Command kQueued{.finish = +[](const Call& call, const Batch&, uint32_t) {
      call.reply().SimpleString("QUEUED");
    }};
    session.transaction->Add(*command, args);
    Bump(turn_.statistics().commands);
    Pend({.session = &session, .command = &kQueued}, {});
    return true;
  }
  if (command->has(Command::kRange)) {
    // Its own points first: only then is known whether they wait for a gate.
    if (session.point_flush == flush_) Flush();
    if (session.task != nullptr) return false;
    if (!session.marks.empty()) {
      session.blocked = true;
      return false;
    }
  }
  session.info->last_command.store(command->name.data(), std::memory_order_relaxed);
  if (!Run(session, *command, args)) return false;
  Bump(turn_.statistics().commands);
  return true;
}

bool Worker::Run(Session& session, const Command& command, std::span<const std::string_view> args) {
  if (command.plan != nullptr) return RunPlanned(session, command, args);
  if (command.alone != nullptr) return RunAlone(session, command, args);
  Pend({.session = &session, .command = &command}, args);
  return true;
}

// The error that answers a command that cannot be run at all; empty if it can.
std::string_view Worker::Refusal(const Session& session, const Command* command,
                                 std::span<const std::string_view> args) {
  if (command == nullptr) {
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
    return scratch_.Copy(text);
  }
  if (!AcceptsCount(command->arity, args.size())) {
    return scratch_.Copy(WrongCountError(*command));
  }
  if (const auto error = SubcommandError(*command, args); !error.empty()) {
    return scratch_.Copy(error);
  }
  if (!turn_.IsAuthenticated(session) && !command->has(Command::kNoAuth)) {
    return "NOAUTH Authentication required.";
  }
  return session.transaction == nullptr ? std::string_view()
                                        : RefusalToQueue(session, *command, args);
}

std::string_view Worker::RefusalToQueue(const Session& session, const Command& command,
                                        std::span<const std::string_view> args) {
  if (!command.no_multi.empty()) {
    return scratch_.Concat("ERR Command not allowed inside a transaction: ", command.no_multi);
  }
  if (command.has(Command::kUnqueued)) return {};
  // What deletes is queued even so: it is how memory becomes free.
  const bool deletes = command.has(Command::kWrite) && !command.has(Command::kStores);
  if (!deletes && !state_.keyspaces().budget().HasRoomFor(0)) return kOutOfMemory;
  if (session.transaction->bytes() + Transaction::BytesOf(args) >
      turn_.options().client_query_buffer_limit) {
    return "ERR the transaction exceeds client-query-buffer-limit";
  }
  return {};
}

// As Redis: a command that cannot run dooms its transaction, and an EXEC that cannot run ends it.
void Worker::PendRefusal(Session& session, const Command* command, std::string_view refusal) {
  if (command != nullptr && command->name == "exec") {
    session.EndTransaction();
    constexpr std::string_view kCode = "ERR ";
    if (refusal.starts_with(kCode)) refusal.remove_prefix(kCode.size());
    return PendError(session,
                     scratch_.Concat("EXECABORT Transaction discarded because of: ", refusal));
  }
  if (session.transaction != nullptr) session.transaction->Doom();
  PendError(session, refusal);
}

bool Worker::RunPlanned(Session& session, const Command& command,
                        std::span<const std::string_view> args) {
  const bool ranges = command.has(Command::kRange);
  if (!ranges && session.range_flush == flush_) {
    Flush();
    if (session.task != nullptr) return false;
  }
  Batch& batch = SharedBatch(session.keyspace).batch;
  const auto first = static_cast<uint32_t>(batch.size());
  const Plan plan = command.plan(ServerCall(host_, session, command, args), batch);
  if (plan.kind == Plan::Kind::kError) {
    PendError(session, plan.error);
    return true;
  }
  if (plan.kind == Plan::Kind::kAtomic) return RunAtomic(session, command, args);
  if (plan.kind == Plan::Kind::kAlone) return RunAlone(session, command, args);
  const uint32_t slot_count = static_cast<uint32_t>(batch.size()) - first;
  if (slot_count > 0) (ranges ? session.range_flush : session.point_flush) = flush_;
  Pend({.session = &session,
        .command = &command,
        .keyspace = session.keyspace,
        .first_slot = first,
        .slot_count = slot_count},
       args);
  if (batch.size() >= kBatchMax) Flush();
  return true;
}

bool Worker::RunAtomic(Session& session, const Command& command,
                       std::span<const std::string_view> args) {
  Flush();
  if (session.task != nullptr || tasks_.PutsOff(session)) return false;
  const ServerCall call(host_, session, command, args);
  Batch& batch = apart_atomic_;
  const Plan plan = command.plan(call, batch);
  if (plan.kind == Plan::Kind::kError) {
    call.Error(plan.error);
  } else {
    const uint64_t executed_before = turn_.work_bytes();
    host_.Execute(session, batch);
    call.ReserveReply(batch);
    command.finish(call, batch, 0);
    if (turn_.work_bytes() - executed_before > kWorkBytesMax) LetOthersGoFirst(session);
  }
  batch.Clear();
  session.CountSync();
  connections_.Queue(session);
  return true;
}

bool Worker::RunAlone(Session& session, const Command& command,
                      std::span<const std::string_view> args) {
  Flush();
  if (session.task != nullptr || tasks_.PutsOff(session)) return false;
  const ServerCall call(host_, session, command, args);
  const uint64_t executed_before = turn_.work_bytes();
  const uint64_t replied_before = session.out_end();
  command.alone(call);
  turn_.CountWork(session.out_end() - replied_before);
  turn_.RefreshOptions();  // it may have been CONFIG SET
  if (session.task != nullptr) {
    tasks_.Add(session);
  } else {
    session.CountSync();
    if (turn_.work_bytes() - executed_before > kWorkBytesMax) LetOthersGoFirst(session);
  }
  connections_.Queue(session);
  return true;
}

void Worker::Pend(Pending pending, std::span<const std::string_view> args) {
  Session& session = *pending.session;
  if (std::exchange(session.counted_flush, flush_) != flush_) session.count = 0;
  ++session.count;
  pending.first_arg = static_cast<uint32_t>(kept_args_.size());
  pending.arg_count = static_cast<uint32_t>(args.size());
  kept_args_.insert(kept_args_.end(), args.begin(), args.end());
  pending_.push_back(pending);
}

Worker::KeyspaceBatch& Worker::SharedBatch(uint32_t keyspace) {
  KeyspaceBatch& shared = batches_[keyspace];
  if (!std::exchange(shared.used, true)) used_keyspaces_.push_back(keyspace);
  return shared;
}

void Worker::PendError(Session& session, std::string_view text) {
  turn_.CountError();
  Pend({.session = &session, .error = text}, {});
}

// ---- 3. Execution ----

void Worker::Flush() {
  if (pending_.empty() && used_keyspaces_.empty()) return;
  const uint64_t executed_before = turn_.work_bytes();
  flushed_bytes_ = 0;
  for (const uint32_t keyspace : used_keyspaces_) {
    KeyspaceBatch& kb = batches_[keyspace];
    if (kb.batch.empty()) continue;
    kb.batch.set_work_bytes_max(kWorkBytesMax);
    kb.ticket = turn_.Execute(state_.keyspaces().at(keyspace), kb.batch);
    flushed_bytes_ += kb.batch.scratch().used() + kb.batch.work_bytes();
  }
  for (const Pending& p : pending_) FinishPending(p);
  if (turn_.work_bytes() - executed_before > kWorkBytesMax) {
    for (const Pending& p : pending_) LetOthersGoFirst(*p.session);
  }
  for (const uint32_t keyspace : used_keyspaces_) {
    batches_[keyspace].batch.Clear();
    batches_[keyspace].used = false;
  }
  used_keyspaces_.clear();
  pending_.clear();
  kept_args_.clear();
  ++flush_;
}

void Worker::FinishPending(const Pending& p) {
  if (!p.message) {
    if (!p.session->closed) FinishCommand(p);
    return;
  }
  // Also of one that is dead: its client may ask again.
  const KeyspaceBatch& kb = batches_[p.keyspace];
  const PostponedTask::Slots slots{.batch = kb.batch,
                                   .first = p.first_slot,
                                   .count = p.slot_count,
                                   .keyspace = p.keyspace,
                                   .ticket = kb.ticket};
  if (PostponedTask::HasPostponed(slots)) {
    TaskOf(*p.session).AddMessage(*p.message, slots);
  } else {
    messages_.Finish(*p.session, *p.message, kb.batch, p.first_slot,
                     state_.keyspaces().at(p.keyspace), kb.ticket);
  }
}

// What comes behind a command that is postponed is, too.
void Worker::FinishCommand(const Pending& p) {
  Session& session = *p.session;
  connections_.Queue(session);
  if (p.command == nullptr) {
    if (session.task != nullptr) return TaskOf(session).AddError(p.error);
    return RespWriter(session.out, session.protocol).Error(p.error);
  }
  KeyspaceBatch& kb = batches_[p.keyspace];
  const auto args = std::span(kept_args_).subspan(p.first_arg, p.arg_count);
  const PostponedTask::Slots slots{.batch = kb.batch,
                                   .first = p.first_slot,
                                   .count = p.slot_count,
                                   .keyspace = p.keyspace,
                                   .ticket = kb.ticket};
  if (session.task != nullptr || PostponedTask::HasPostponed(slots)) {
    return TaskOf(session).AddCommand(*p.command, args, slots);
  }
  if (p.slot_count > 0) gates_.Mark(session, state_.keyspaces().at(p.keyspace), kb.ticket);
  p.command->finish(ServerCall(host_, session, *p.command, args), kb.batch, p.first_slot);
  session.CountSync();
}

// Drops the input that was dispatched; nothing views it any more.
void Worker::ForgetViewed() {
  for (Session* session : kept_) {
    if (session->in_used == session->in.size()) {
      Shrink(session->in);
    } else {
      session->in.erase(0, session->in_used);
    }
    session->in_used = 0;
    connections_.UpdateAccount(*session);
  }
  kept_.clear();
  // One command may have had a million arguments.
  if (args_.capacity() > kArgsKeptMax) std::vector<std::string_view>().swap(args_);
  if (kept_args_.capacity() > kArgsKeptMax) std::vector<std::string_view>().swap(kept_args_);
}

}  // namespace skep
