#include "server/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/hot_gets.h"

namespace skep {
namespace {

constexpr int kUpkeepMs = 100;
constexpr int kUpkeepPauseMs = 1;
constexpr int kHeldMs = 10;  // how late a pause may be seen to have ended

}  // namespace

Worker::Worker(ServerState& state, Administration& administration, WorkerPool& pool)
    : state_(state),
      poller_(state.environment().network.NewPoller()),
      turn_(state),
      acceptor_(state, pool, turn_, *poller_),
      connections_(state, pool, turn_, *poller_),
      gates_(poller_),
      tasks_(state.environment().clock, state.keyspaces(), turn_),
      waiting_(state.waiters(), poller_),
      deliveries_(state.subscriptions(), gates_, connections_, poller_),
      side_turn_(state),
      host_(state, administration, turn_, gates_, waiting_, deliveries_, side_thread_, side_turn_),
      messages_(state.replies(), turn_, gates_, connections_),
      batch_(host_, connections_, tasks_, messages_),
      packed_(host_, connections_, batch_, messages_),
      commands_(host_, connections_, batch_, packed_),
      hot_filler_(host_),
      datagrams_(host_, connections_, batch_, packed_, hot_filler_, *poller_),
      side_thread_([poller = poller_] { poller->Wake(); }) {}

Worker::~Worker() {
  connections_.MarkAllClosed();
  ReapClosed();
}

void Worker::Adopt(std::unique_ptr<Stream> stream) {
  connections_.Adopt(std::move(stream));
  Wake();
}

bool Worker::Turn(int timeout_ms) {
  const bool has_tasks = (tasks_.has_ready() && tasks_.patience_ms() == 0) ||
                         connections_.has_resumed() || tasks_.has_put_off() ||
                         connections_.has_queued();
  const bool has_work = has_tasks || gates_.has_work() || state_.waiters().has_left();
  const bool has_upkeep = upkeep_left_ || state_.key_events().has_expired();
  const bool busy = has_work || has_upkeep;
  // Remaining upkeep has a piece in each turn; without other work there are few turns, because
  // nobody waits for upkeep and clients may need the processor.
  const int patience = has_work               ? 0
                       : has_upkeep           ? kUpkeepPauseMs
                       : commands_.has_held() ? kHeldMs
                       : tasks_.has_ready()   ? tasks_.patience_ms()
                                              : kUpkeepMs;
  const int most = waiting_.PatienceMs(turn_.monotonic_ms(), patience);
  const auto events = poller_->Wait(timeout_ms < 0 ? most : std::min(timeout_ms, most));
  gates_.SyncIfDue(events.empty(), connections_.size());
  if (!has_tasks && events.empty()) gates_.StayAwake();
  turn_.Begin();
  connections_.MarkEnded();
  const bool adopted = connections_.AdoptNew();
  // Sessions go on before the network is read: a connection is read only when all its input is
  // executed.
  PassGates();
  ResumeSessions();
  for (const ReadyEvent& event : events) Handle(event);
  batch_.EndTurn();
  StepTasks();
  turn_.ServeWaiters();
  FinishWaiting();
  deliveries_.Deliver();
  Send();
  hot_filler_.Step();
  // The memory of clients that are closed now is free before the next turn makes more replies.
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

// At least one session that was put off goes on in each turn, since nothing is executed before.
void Worker::ResumeSessions() {
  while (Session* const session = tasks_.TakePutOff()) {
    if (!session->closed) commands_.Continue(*session);
  }
  for (Session* const session : commands_.TakeHeld()) {
    if (!session->closed) commands_.Continue(*session);
  }
  for (Session* const session : connections_.TakeResumed()) {
    if (!session->closed) commands_.Continue(*session);
  }
}

void Worker::Handle(const ReadyEvent& event) {
  if (Listener* const listener = acceptor_.Find(event.tag)) return acceptor_.Accept(*listener);
  if (DatagramPort* const port = datagrams_.Find(event.tag)) return datagrams_.Receive(*port);
  Session& session = *static_cast<Session*>(event.tag);
  // For a stream of which no event is wanted this event only comes if it broke. (A readable event
  // may have been wanted when the wait began, and not any more since the session went on.)
  if (event.writable && !session.wants_read && !session.wants_write) {
    connections_.MarkClosed(session);
  }
  if (event.readable) commands_.Read(session);
  if (event.writable) connections_.Queue(session);
}

void Worker::StepTasks() {
  tasks_.Step([this](Session& session) {
    static const Command kNone{};
    const ServerCall call(host_, session, kNone, {});
    const ErrorCounts errors_before = turn_.error_counts();
    const uint64_t began_ns = turn_.MonotonicNs();
    const size_t begin = session.out.size();
    const bool goes_on = session.task->Step(call);
    if (session.task->is_of_one_command() && session.silence.holds()) session.TakeBack(begin);
    if (session.running != nullptr) session.running->ns += turn_.MonotonicNs() - began_ns;
    if (!goes_on) {
      if (session.running != nullptr)
        CountRunning(session, turn_.error_counts().EndingSince(errors_before));
      if (session.task->is_of_one_command()) {
        session.CountSync();
        session.silence.CountCommand();
      }
      session.task.reset();
      if (session.port == nullptr) connections_.Resume(session);
    }
    connections_.Queue(session);
    return goes_on;
  });
}

// Replies to the commands that wait no more.
void Worker::FinishWaiting() {
  for (Session* const session : waiting_.TakeEnded(turn_.monotonic_ms())) {
    const std::shared_ptr<KeyWaiter> waiter = std::move(session->waiter);
    const ServerCall call(host_, *session, waiter->command, waiter->args());
    const ErrorCounts errors_before = turn_.error_counts();
    const size_t begin = session->out.size();
    waiter->finish(call, *waiter);
    turn_.CountCommand(*session, waiter->command, waiter->args(), waiter->ns,
                       turn_.error_counts().EndingSince(errors_before), /*was_told=*/true);
    session->EndReply(begin);
    session->CountSync();
    connections_.Resume(*session);
    connections_.Queue(*session);
  }
}

void Worker::CountRunning(Session& session, Ending ending) {
  const auto running = std::move(session.running);
  turn_.statistics().by_command.Count(running->counted_place, running->ns,
                                      running->ending.value_or(ending));
  if (turn_.IsSlow(running->ns)) turn_.NoteSlow(session, std::move(running->words), running->ns);
}

void Worker::Send() {
  datagrams_.Send();
  for (Session* const session : connections_.Send()) tasks_.Resume(*session);
}

void Worker::ReapClosed() {
  if (!connections_.has_closed()) return;
  const auto is_closed = [](const Session* session) { return session->closed; };
  gates_.DropIf(is_closed);
  tasks_.DropClosed();
  waiting_.DropClosed();
  batch_.DropClosed();
  commands_.DropClosed();
  connections_.Reap();
}

// Does now and then what no event asks for.
void Worker::Upkeep() {
  if (upkeep_left_) upkeep_left_ = state_.keyspaces().Maintain(turn_.now().ms);
  state_.key_events().PublishExpired();
  const uint64_t now_ms = turn_.monotonic_ms();
  if (now_ms < next_upkeep_ms_) return;
  next_upkeep_ms_ = now_ms + kUpkeepMs;
  SampleRates();
  state_.log().WatchClock(turn_.now());
  upkeep_left_ = state_.keyspaces().Maintain(turn_.now().ms);
  datagrams_.DropOverdue();
  state_.log().ReportWhatIsOver();
  if (HotGets* const hot = state_.hot_gets(); hot != nullptr && !hot->Upkeep(now_ms)) {
    state_.log().logger().warn("xdp: the helper is gone: the server answers all GETs itself");
  }
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

void Worker::SampleRates() {
  WorkerStatistics& all = turn_.statistics();
  const uint64_t now_ms = turn_.monotonic_ms();
  const auto sample = [&](RateMeter& rate, const std::atomic<uint64_t>& counter) {
    rate.Sample(now_ms, counter.load(std::memory_order_relaxed));
  };
  sample(all.command_rate, all.commands);
  sample(all.input_rate, all.input_bytes);
  sample(all.output_rate, all.output_bytes);
  state_.NoteMemory();
}

void Worker::Drain() {
  if (std::exchange(draining_, true)) return;
  acceptor_.Stop();
  datagrams_.Stop();
  connections_.Drain();
}

}  // namespace skep
