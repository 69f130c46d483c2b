#include "server/worker.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/cpu.h"
#include "server/postponed_task.h"
#include "server/subcommands.h"
#include "server/web_page.h"

namespace skep {
namespace {

constexpr size_t kReadBufferBytes = 256 * 1024;
constexpr size_t kReadBytes = 64 * 1024;     // at most, from a connection in a turn
constexpr size_t kReadBytesMin = 16 * 1024;  // at least, if the connection has them
constexpr uint32_t kPipelineMax = 256;       // commands of a connection in a flush
constexpr uint32_t kBatchMax = 512;          // requests, about
constexpr size_t kRequestWorkBytes = 256;    // what a request counts for, beside what it looks at
constexpr uint64_t kUpkeepMs = 100;
constexpr int kUpkeepPauseMs = 1;
constexpr uint32_t kAwakeSpins = 1024;         // looks at a gate: 20 to 50 us
constexpr uint32_t kTurnsUnsyncedMax = 3;      // that more comes before a sync
constexpr size_t kWaitingMin = 8;              // sessions that a sync here serves
constexpr uint32_t kInVainMax = 4;             // times in a row
constexpr uint64_t kDrainMs = 1000;            // for replies to be taken at the end
constexpr int kAcceptsMax = 256;               // in a turn
constexpr size_t kArgsKeptMax = 64 * 1024;     // capacity of the argument lists between turns
constexpr size_t kKeptCapacityMax = 1024;      // of an idle connection's buffers, each
constexpr uint32_t kStrangerPipelineMax = 16;  // their errors repeat what was sent
// Before a client has logged in.
constexpr RespLimits kUnauthenticated{.args_max = 10,
                                      .bulk_bytes_max = Worker::kStrangerBytesMax,
                                      .inline_bytes_max = Worker::kStrangerBytesMax,
                                      .authenticated = false};

void Shrink(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptCapacityMax) std::string().swap(buffer);
}

}  // namespace

Worker::Worker(ServerState& state, Administration& administration, WorkerPool& pool)
    : state_(state),
      administration_(administration),
      pool_(pool),
      poller_(state.environment().network.NewPoller()),
      random_(state.environment().random),
      read_buffer_(kReadBufferBytes),
      batches_(state.keyspaces().count()) {}

Worker::~Worker() {
  for (auto& [id, session] : sessions_) Kill(*session);
  BuryDead();
  for (Session* session : waiting_) ChargeBudget(*session, 0);  // of datagrams: all others are gone
  for (const auto& port : ports_) poller_->Remove(port->socket());
}

Status Worker::Listen(Listener& listener) {
  if (Status s = poller_->Add(listener, &listener); !s.ok()) return s;
  listeners_.push_back(&listener);
  return {};
}

Status Worker::Serve(std::unique_ptr<DatagramSocket> socket) {
  auto port = std::make_unique<DatagramPort>(std::move(socket));
  if (Status s = poller_->Add(port->socket(), port.get()); !s.ok()) return s;
  ports_.push_back(std::move(port));
  return {};
}

void Worker::Adopt(std::unique_ptr<Stream> stream) {
  {
    std::lock_guard lock(mailbox_mutex_);
    mailbox_.push_back(std::move(stream));
  }
  connections_.fetch_add(1, std::memory_order_relaxed);
  Wake();
}

bool Worker::Turn(int timeout_ms) {
  const bool has_tasks =
      (!tasks_.empty() && task_patience_ms_ == 0) || !resumed_.empty() || !put_off_.empty();
  const bool has_work = has_tasks || !awaited_.empty() || !unsynced_.empty();
  const bool busy = has_work || upkeep_left_;
  // Upkeep that is left has a piece in each turn; without other work there are few turns, since
  // nobody waits for it and clients may need the processor.
  const int patience = has_work          ? 0
                       : upkeep_left_    ? kUpkeepPauseMs
                       : !tasks_.empty() ? task_patience_ms_
                                         : static_cast<int>(kUpkeepMs);
  const auto events = poller_->Wait(timeout_ms < 0 ? patience : std::min(timeout_ms, patience));
  if (!unsynced_.empty() && (events.empty() || ++turns_unsynced_ == kTurnsUnsyncedMax)) Sync();
  if (!awaited_.empty() && !has_tasks && events.empty() && !StayAwake()) ArrangeWakes();
  ReadClocksAndOptions();
  executed_before_turn_ = executed_bytes_;
  EndMarked();
  const bool adopted = AdoptWaiting();
  // Before the network: a connection is read only when all that was read of it is executed.
  PassGates();
  ResumePutOff();
  for (Session* session : std::exchange(resumed_, {})) {
    if (!session->dead) DecodeKept(*session);
  }
  for (const ReadyEvent& event : events) {
    const auto listener = std::ranges::find(listeners_, event.tag);
    if (listener != listeners_.end()) {
      Accept(**listener);
      continue;
    }
    const auto port = std::ranges::find(ports_, event.tag, &std::unique_ptr<DatagramPort>::get);
    if (port != ports_.end()) {
      ReceiveDatagrams(**port);
      continue;
    }
    Session& session = *static_cast<Session*>(event.tag);
    // Of a stream of which nothing is wanted this is told only if it broke. (That it is readable
    // may have been wanted when the wait began, and not any more since the session went on.)
    if (event.writable && !session.wants_read && !session.wants_write) Kill(session);
    if (event.readable) ReadFrom(session);
    if (event.writable) Queue(session);
  }
  Flush();
  ForgetViewed();
  scratch_.Clear();
  StepTasks();
  Send();
  // What those have who are closed now is free before the next turn makes more.
  EvictClients();
  EndMarked();
  BuryDead();
  GiveUpStalledPins();
  Upkeep();
  return busy || adopted || !events.empty();
}

// ---- 1. The network ----

void Worker::ReadClocksAndOptions() {
  monotonic_ms_ = state_.environment().clock.MonotonicMs();
  now_ = state_.time().Now();
  RefreshOptions();
}

void Worker::RefreshOptions() {
  if (const uint64_t version = state_.options().version(); version != options_version_) {
    options_ = state_.options().Get();
    options_version_ = version;
    client_bytes_max_ = ClientBytesMax(options_);
  }
}

// True if there were any.
bool Worker::AdoptWaiting() {
  std::vector<std::unique_ptr<Stream>> streams;
  {
    std::lock_guard lock(mailbox_mutex_);
    streams.swap(mailbox_);
  }
  for (auto& stream : streams) {
    auto owned = std::make_unique<Session>();
    Session& session = *owned;
    session.stream = std::move(stream);
    session.info =
        state_.clients().Add(session.stream->peer(), session.stream->local(), monotonic_ms_);
    session.authenticated = options_.requirepass.empty();
    session.has_logged_in = session.authenticated;
    sessions_.emplace(session.info->id, std::move(owned));
    Bump(statistics_.connections);
    if (!poller_->Add(*session.stream, &session, true, false).ok()) Kill(session);
    if (draining_) Kill(session);
  }
  return !streams.empty();
}

void Worker::Accept(Listener& listener) {
  for (int i = 0; i < kAcceptsMax; ++i) {
    int error = 0;
    auto stream = listener.Accept(&error);
    if (stream != nullptr) {
      RejectOrPlace(std::move(stream));
      continue;
    }
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      state_.log().Report(Incident::kNoDescriptors,
                   fmt::format("cannot accept connections for now: {}", strerrordesc_np(error)));
      poller_->Remove(listener);
      exhausted_.push_back(&listener);
    }
    if (error != ECONNABORTED && error != EINTR) return;
  }
}

void Worker::RejectOrPlace(std::unique_ptr<Stream> stream) {
  if (pool_.connections() >= options_.maxclients) {
    state_.log().Report(Incident::kRefusedClient,
                 fmt::format("a connection from {} refused: maxclients ({}) is reached",
                             stream->peer(), options_.maxclients));
    stream->Write("-ERR max number of clients reached\r\n");
    Bump(statistics_.rejected);
    return;
  }
  pool_.Place(std::move(stream));
}

void Worker::ReadFrom(Session& session) {
  if (session.dead) return;
  if (!session.wants_read || session.closing) return;
  if (session.paused()) return UpdateInterest(session);
  if (session.in_used > 0) {
    Flush();
    ForgetViewed();
  }
  if (!session.in.empty()) {
    // The rest of a large argument goes where it will stay.
    const size_t had = session.in.size();
    const size_t room = std::clamp(session.wanted(), kReadBytesMin, kReadBytes);
    session.in.resize(had + ReadBytes(session, room));
    const ssize_t got = session.stream->Read(session.in.data() + had, session.in.size() - had);
    session.in.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    Received(session, got);
    if (got > 0) DecodeKept(session);
    return;
  }
  if (kReadBufferBytes - read_used_ < kReadBytesMin) Flush();
  if (pending_.empty()) read_used_ = 0;
  char* const at = read_buffer_.data() + read_used_;
  const size_t room = std::min(kReadBytes, kReadBufferBytes - read_used_);
  const ssize_t got = session.stream->Read(at, ReadBytes(session, room));
  Received(session, got);
  if (got <= 0) return;
  const size_t bytes = static_cast<size_t>(got);
  read_used_ += bytes;
  session.in.assign(at + Decode(session, {at, bytes}), at + bytes);
  FinishInput(session);
}

void Worker::Received(Session& session, ssize_t bytes) {
  if (bytes > 0) {
    Bump(statistics_.input_bytes, static_cast<uint64_t>(bytes));
    session.info->last_active_ms.store(monotonic_ms_, std::memory_order_relaxed);
  } else if (bytes == 0) {
    session.peer_finished = true;
    FinishInput(session);
  } else if (bytes != -EAGAIN) {
    Kill(session);
  }
}

// ---- 2. Commands ----

void Worker::DecodeKept(Session& session) {
  session.in_used += Decode(session, std::string_view(session.in).substr(session.in_used));
  if (session.in_used > 0) kept_.push_back(&session);
  FinishInput(session);
}

// What follows from the input that is left.
void Worker::FinishInput(Session& session) {
  if (session.peer_finished && !session.paused()) session.closing = true;
  const size_t kept = session.in.size() - session.in_used;
  if (IsStranger(session) && kept > kStrangerBytesMax) {
    state_.log().Report(Incident::kStranger,
                 fmt::format("client {} at {} closed: a command of more than {} bytes before AUTH",
                             session.info->id, session.info->peer, kStrangerBytesMax));
    Kill(session);
  } else if (kept > options_.client_query_buffer_limit) {
    state_.log().Report(Incident::kQueryTooLong,
                 fmt::format("client {} at {} closed: its query exceeds client-query-buffer-limit",
                             session.info->id, session.info->peer));
    Kill(session);
  }
  UpdateInterest(session);
  UpdateAccount(session);
  if (session.closing) Queue(session);
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
  const RespLimits limits{.bulk_bytes_max = options_.proto_max_bulk_len};
  size_t at = 0;
  while (at < input.size()) {
    LimitPipeline(session);
    if (session.paused() || session.closing || session.dead) break;
    const std::string_view rest = input.substr(at);
    const auto event =
        session.decoder.Next(rest, IsAuthenticated(session) ? limits : kUnauthenticated, args_);
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
  if (IsStranger(session)) session.count_max = std::min(session.count_max, kStrangerPipelineMax);
  if (session.counted_flush == flush_ && session.count >= session.count_max) {
    Flush();
    const uint64_t bytes_each = flushed_bytes_ / session.count_max + 1;
    const uint64_t fit = std::min<uint64_t>(kUnsentMax / bytes_each, 2 * session.count_max);
    session.count_max = static_cast<uint32_t>(std::clamp<uint64_t>(fit, 1, kPipelineMax));
  }
  session.stalled = session.unsent() > UnsentMax(session);
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
    static constexpr Command kQueued{.finish = [](const Call& call, const Batch&, uint32_t) {
      call.reply().SimpleString("QUEUED");
    }};
    session.transaction->Add(*command, args);
    Bump(statistics_.commands);
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
  Bump(statistics_.commands);
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
  if (!IsAuthenticated(session) && !command->has(Command::kNoAuth)) {
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
      options_.client_query_buffer_limit) {
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
  const Plan plan = command.plan(Call(state_, *this, session, command, args), batch);
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
  if (session.task != nullptr || PutsOff(session)) return false;
  const Call call(state_, *this, session, command, args);
  Batch& batch = apart_atomic_;
  const Plan plan = command.plan(call, batch);
  if (plan.kind == Plan::Kind::kError) {
    call.Error(plan.error);
  } else {
    const uint64_t executed_before = executed_bytes_;
    ExecuteFor(session, batch);
    call.ReserveReply(batch);
    command.finish(call, batch, 0);
    if (executed_bytes_ - executed_before > kWorkBytesMax) LetOthersGoFirst(session);
  }
  batch.Clear();
  session.CountSync();
  Queue(session);
  return true;
}

bool Worker::RunAlone(Session& session, const Command& command,
                      std::span<const std::string_view> args) {
  Flush();
  if (session.task != nullptr || PutsOff(session)) return false;
  Call call(state_, *this, session, command, args);
  const uint64_t executed_before = executed_bytes_;
  const uint64_t replied_before = session.out_end();
  command.alone(call);
  executed_bytes_ += session.out_end() - replied_before;
  RefreshOptions();  // it may have been CONFIG SET
  if (session.task != nullptr) {
    AddTask(session);
  } else {
    session.CountSync();
    if (executed_bytes_ - executed_before > kWorkBytesMax) LetOthersGoFirst(session);
  }
  Queue(session);
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
  CountError();
  Pend({.session = &session, .error = text}, {});
}

Version Worker::ExecuteOn(Engine& engine, Batch& batch) {
  batch.set_now_ms(now_.ms);
  if (batch.kind() == Batch::Kind::kAtomic) batch.set_work_bytes_max(kAtomicWorkBytesMax);
  const Version ticket = engine.Execute(batch);
  executed_bytes_ += batch.work_bytes() + kRequestWorkBytes * batch.size();
  Bump(statistics_.batches);
  Bump(statistics_.batch_requests, batch.size());
  return ticket;
}

void Worker::ExecuteFor(Session& session, Batch& batch) {
  if (batch.kind() == Batch::Kind::kAtomic) batch.set_answer_bytes_max(AnswerBytesMax(session));
  Engine& engine = state_.keyspaces().at(session.keyspace);
  MarkTicket(session, engine, ExecuteOn(engine, batch));
}

// ---- 3. Execution ----

void Worker::Flush() {
  if (pending_.empty() && used_keyspaces_.empty()) return;
  const uint64_t executed_before = executed_bytes_;
  flushed_bytes_ = 0;
  for (const uint32_t keyspace : used_keyspaces_) {
    KeyspaceBatch& kb = batches_[keyspace];
    if (kb.batch.empty()) continue;
    kb.batch.set_work_bytes_max(kWorkBytesMax);
    kb.ticket = ExecuteOn(state_.keyspaces().at(keyspace), kb.batch);
    flushed_bytes_ += kb.batch.scratch().used() + kb.batch.work_bytes();
  }
  for (const Pending& p : pending_) FinishPending(p);
  if (executed_bytes_ - executed_before > kWorkBytesMax) {
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
    if (!p.session->dead) FinishCommand(p);
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
    FinishMessage(*p.session, *p.message, kb.batch, p.first_slot,
                  state_.keyspaces().at(p.keyspace), kb.ticket);
  }
}

// What comes behind a command that is postponed is, too.
void Worker::FinishCommand(const Pending& p) {
  Session& session = *p.session;
  Queue(session);
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
  if (p.slot_count > 0) MarkTicket(session, state_.keyspaces().at(p.keyspace), kb.ticket);
  p.command->finish(Call(state_, *this, session, *p.command, args), kb.batch, p.first_slot);
  session.CountSync();
}

// The gate that the ticket has not passed; null if it has.
ReleaseGate* Worker::ClosedGate(Engine& engine, Version ticket, bool syncs) {
  ReleaseGate& gate = GateOf(engine, syncs);
  if (gate.IsReleased(ticket)) return nullptr;
  if (&gate == &engine.synced_gate()) {
    NoteUnsynced({.engine = &engine, .gate = &gate, .ticket = ticket});
    return &gate;
  }
  engine.Release();
  return gate.IsReleased(ticket) ? nullptr : &gate;
}

void Worker::MarkTicket(Session& session, Engine& engine, Version ticket) {
  if (!session.marks.empty()) {
    const ReleaseGate& gate = GateOf(engine, session.wants_sync());
    const Session::Mark& last = session.marks.back();
    if (last.gate == &gate && last.ticket >= ticket) return;
  }
  ReleaseGate* const gate = ClosedGate(engine, ticket, session.wants_sync());
  if (gate == nullptr) return;
  session.marks.push_back({.from = session.out_end(), .gate = gate, .ticket = ticket});
  AwaitGate(session, *gate, ticket);
}

std::string& Worker::ReplyTo(Session& session, Engine& engine, Version ticket, bool syncs) {
  Queue(session);
  ReleaseGate* const gate = ClosedGate(engine, ticket, syncs);
  if (gate == nullptr) return session.out;
  AwaitGate(session, *gate, ticket);
  return session.packed->Hold(*gate, ticket);
}

void Worker::AwaitGate(Session& session, ReleaseGate& gate, Version ticket) {
  if (!session.waiting) waiting_.push_back(&session);
  session.waiting = true;
  const Awaited awaited{.gate = &gate, .ticket = ticket};
  if (awaited_.empty() || awaited_.back() != awaited) awaited_.push_back(awaited);
}

void Worker::NoteUnsynced(const Unsynced& unsynced) {
  const auto at = std::ranges::find(unsynced_, unsynced.gate, &Unsynced::gate);
  if (at == unsynced_.end()) {
    unsynced_.push_back(unsynced);
  } else {
    at->ticket = std::max(at->ticket, unsynced.ticket);
  }
}

// What replies wait for. While the log's thread syncs, this one executes what comes; to sync here
// saves waking that thread and being woken. The latter is more where many wait, and few others
// would have to.
void Worker::Sync() {
  const size_t waiting = waiting_.size();
  const bool here =
      sessions_.size() == 1 || (waiting >= kWaitingMin && waiting >= sessions_.size() / 2);
  turns_unsynced_ = 0;
  for (const Unsynced& unsynced : std::exchange(unsynced_, {})) {
    if (!unsynced.gate->IsReleased(unsynced.ticket)) {
      unsynced.engine->WantSync(unsynced.ticket, here);
    }
  }
}

// Another worker's batch that replies here wait for is mostly at its end, and to sleep and be woken
// takes longer than that. Where it does not help (a sync of the disk), it is tried more and more
// rarely.
bool Worker::StayAwake() {
  if (sleeps_left_ > 0) {
    --sleeps_left_;
    return false;
  }
  const Awaited first = awaited_.front();
  for (uint32_t i = 0; i < kAwakeSpins; ++i) {
    if (first.gate->IsReleased(first.ticket)) {
      in_vain_ = 0;
      return true;
    }
    Pause();
  }
  ++in_vain_;
  if (in_vain_ > kInVainMax) sleeps_left_ = 1u << std::min(in_vain_ - kInVainMax, 6u);
  return false;
}

void Worker::ArrangeWakes() {
  for (const Awaited& a : std::exchange(awaited_, {})) {
    // The poller, not the worker: an engine may release after the worker has ended.
    a.gate->CallWhenReleased(a.ticket, [poller = poller_] { poller->Wake(); });
  }
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
    UpdateAccount(*session);
  }
  kept_.clear();
  // One command may have had a million arguments.
  if (args_.capacity() > kArgsKeptMax) std::vector<std::string_view>().swap(args_);
  if (kept_args_.capacity() > kArgsKeptMax) std::vector<std::string_view>().swap(kept_args_);
}

// ---- 5. Replies ----

void Worker::PassGates() {
  std::erase_if(awaited_, [](const Awaited& a) { return a.gate->IsReleased(a.ticket); });
  for (Session* session : std::exchange(waiting_, {})) {
    auto& marks = session->marks;
    while (!marks.empty() && marks.front().gate->IsReleased(marks.front().ticket)) {
      marks.pop_front();
    }
    const bool holds = session->packed != nullptr && !session->packed->PassGates(session->out);
    Queue(*session);
    if (!marks.empty() || holds) {
      waiting_.push_back(session);
      continue;
    }
    session->waiting = false;
    if (std::exchange(session->blocked, false)) resumed_.push_back(session);
  }
}

void Worker::Queue(Session& session) {
  if (!session.queued) to_send_.push_back(&session);
  session.queued = true;
}

void Worker::Send() {
  SendDatagrams();
  for (Session* session : std::exchange(to_send_, {})) {
    session->queued = false;
    if (!session->dead) SendTo(*session);
  }
}

void Worker::SendTo(Session& session) {
  if (const size_t sendable = session.sendable(); sendable > 0) {
    const ssize_t sent =
        session.stream->Write(std::string_view(session.out).substr(session.out_begin, sendable));
    if (sent < 0 && sent != -EAGAIN) return Kill(session);
    const size_t bytes = static_cast<size_t>(std::max<ssize_t>(sent, 0));
    session.out_begin += bytes;
    if (bytes > 0 || !session.write_blocked) session.taken_ms = monotonic_ms_;
    session.write_blocked = bytes < sendable;
    Bump(statistics_.output_bytes, bytes);
    if (bytes > 0) session.info->last_active_ms.store(monotonic_ms_, std::memory_order_relaxed);
  }
  if (session.unsent() == 0) {
    session.out_base += session.out.size();
    session.out_begin = 0;
    Shrink(session.out);
    if (session.closing && session.task == nullptr) return Kill(session);
  } else if (session.out_begin > session.out.size() / 2) {
    session.out.erase(0, session.out_begin);
    session.out_base += session.out_begin;
    session.out_begin = 0;
  }
  if (IsStranger(session) && session.unsent() > kStrangerBytesMax) {
    state_.log().Report(Incident::kStranger,
                 fmt::format("client {} at {} closed: it does not read, and has not logged in",
                             session.info->id, session.info->peer));
    return Kill(session);
  }
  if (!KeepsOutputLimit(session)) {
    state_.log().Report(
        Incident::kRepliesUnread,
        fmt::format("client {} at {} closed: its replies exceed client-output-buffer-limit",
                    session.info->id, session.info->peer));
    return Kill(session);
  }
  if (session.stalled && session.unsent() <= UnsentMax(session)) {
    session.stalled = false;
    if (session.task != nullptr) {
      std::erase(stalled_tasks_, &session);
      AddTask(session);
    } else {
      resumed_.push_back(&session);
    }
  }
  UpdateAccount(session);
  UpdateInterest(session);
}

void Worker::UpdateInterest(Session& session) {
  if (session.dead) return;
  const bool read = !session.paused() && !session.closing && !session.peer_finished;
  const bool write = session.write_blocked;
  if (read == session.wants_read && write == session.wants_write) return;
  session.wants_read = read;
  session.wants_write = write;
  if (!poller_->Change(*session.stream, &session, read, write).ok()) Kill(session);
}

void Worker::Kill(Session& session) {
  if (!session.dead) dead_.push_back(&session);
  session.dead = true;
}

void Worker::BuryDead() {
  if (dead_.empty()) return;
  const auto is_dead = [](const Session* session) { return session->dead; };
  for (auto* list : {&to_send_, &waiting_, &tasks_, &stalled_tasks_, &kept_, &resumed_}) {
    std::erase_if(*list, is_dead);
  }
  std::erase_if(put_off_, is_dead);
  for (Session* session : dead_) {
    if (session->task != nullptr) session->task->GiveUp(state_, *session);
    poller_->Remove(*session->stream);
    state_.clients().Remove(*session->info);
    if (session->has_scans) {
      state_.cursors().Leave(session->info->id);
      state_.key_scans().Leave(session->info->id);
    }
    state_.keyspaces().budget().Release(session->charged_bytes);
    state_.clients().Charge(0, session->counted_bytes);
    sessions_.erase(session->info->id);
    connections_.fetch_sub(1, std::memory_order_relaxed);
  }
  dead_.clear();
}

// Every now and then: what no event asks for.
void Worker::Upkeep() {
  if (upkeep_left_) upkeep_left_ = state_.keyspaces().Maintain(now_.ms);
  if (monotonic_ms_ < next_upkeep_ms_) return;
  next_upkeep_ms_ = monotonic_ms_ + kUpkeepMs;
  state_.log().WatchClock(now_);
  upkeep_left_ = state_.keyspaces().Maintain(now_.ms);
  DropOverdueDatagrams();
  state_.log().ReportWhatIsOver();
  if (durable::Persistence* const persistence = state_.persistence()) {
    state_.log().WatchSnapshots(*persistence);
    state_.log().WatchDisk(*persistence);
  }
  state_.cursors().Expire(monotonic_ms_, 64);
  state_.key_scans().Expire(monotonic_ms_, 64);
  for (Listener* listener : std::exchange(exhausted_, {})) {
    if (!poller_->Add(*listener, listener).ok()) exhausted_.push_back(listener);
  }
  const bool has_soft_limit = options_.client_output_buffer_limit.normal.soft_bytes != 0;
  if (options_.timeout == 0 && !has_soft_limit && !draining_) return;
  for (auto& [id, session] : sessions_) {
    if (IsOverdue(*session)) Kill(*session);
    if (!session->dead && session->over_soft_ms != 0) Queue(*session);  // and is looked at again
  }
  BuryDead();
}

void Worker::Drain() {
  if (draining_) return;
  draining_ = true;
  drain_until_ms_ = state_.environment().clock.MonotonicMs() + kDrainMs;
  for (Listener* listener : listeners_) poller_->Remove(*listener);
  listeners_.clear();
  exhausted_.clear();
  for (const auto& port : ports_) poller_->Remove(port->socket());
  for (auto& [id, session] : sessions_) {
    // A long reply is cut; commands that were begun are done.
    if (session->task != nullptr && session->task->is_of_one_command()) Kill(*session);
    session->closing = true;
    UpdateInterest(*session);
    Queue(*session);
  }
}

}  // namespace skep
