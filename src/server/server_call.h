// server_call.h: what only a server offers to commands, beside Call (call.h).
//
//   about data           the engine of the session's keyspace, the version that the reply waits
//                        for, a task that goes on in later turns, the cursors of scans
//   about the server     administration(): CONFIG, CLIENT, SAVE, INFO, SHUTDOWN
//
// None of it is null. A worker has one ServerHost, which all its calls share.
//
// Callers: the functions of the command table, and tasks (session.h).
// Thread safety: the owning worker only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "server/administration.h"
#include "server/call.h"
#include "server/message_delivery.h"
#include "server/reply_gates.h"
#include "server/server_state.h"
#include "server/session.h"
#include "server/side_thread.h"
#include "server/turn_context.h"
#include "server/waiting_sessions.h"

namespace skep {

class ServerHost final : public CommandHost {
 public:
  // All arguments must outlive the host.
  ServerHost(ServerState& state, Administration& administration, TurnContext& turn,
             ReplyGates& gates, WaitingSessions& waiting, MessageDelivery& deliveries,
             SideThread& side_thread, TurnContext& side_turn)
      : CommandHost(turn.now()),
        state_(state),
        administration_(administration),
        turn_(turn),
        gates_(gates),
        waiting_(waiting),
        deliveries_(deliveries),
        side_thread_(side_thread),
        side_turn_(side_turn) {}

  ServerState& state() const { return state_; }
  Administration& administration() const { return administration_; }
  TurnContext& turn() const { return turn_; }
  ReplyGates& gates() const { return gates_; }
  WaitingSessions& waiting() const { return waiting_; }
  MessageDelivery& deliveries() const { return deliveries_; }
  SideThread& side_thread() const { return side_thread_; }
  // The context of the commands that this thread runs.
  TurnContext& side_turn() const { return side_turn_; }
  // A host for another thread, of commands that neither wait for keys nor send messages.
  ServerHost HostBeside(TurnContext& turn, ReplyGates& gates) const {
    ServerHost beside(state_, administration_, turn, gates, waiting_, deliveries_, side_thread_,
                      side_turn_);
    beside.is_beside_ = true;
    return beside;
  }
  // Whether what the session asks for may be run on another thread (side_thread.h). The owner of
  // ranges is asked for by the worker only, and a datagram does not wait.
  bool MayGoAside(const Session& session) const {
    return !is_beside_ && side_thread_.is_allowed() && session.port == nullptr &&
           state_.range_owner() == nullptr;
  }
  // The engine that the session's commands see: that of its keyspace, or what rehearses.
  Engine& EngineOf(const Session& session) const {
    return rehearsal_ != nullptr ? *rehearsal_ : state_.keyspaces().at(session.keyspace);
  }
  // While it is not null, commands see this engine, and no reply waits for its tickets.
  void set_rehearsal(Engine* rehearsal) { rehearsal_ = rehearsal; }
  bool rehearses() const { return rehearsal_ != nullptr; }

  void Execute(Session& session, Batch& batch, std::span<const PlannedCommand> commands) override;
  size_t ReturnedBytesMax(const Session& session) const override {
    return turn_.ReturnedBytesMax(session);
  }
  size_t AnswerBytesMax(const Session& session) const override {
    return turn_.AnswerBytesMax(session);
  }
  void CountError(std::string_view error) override { turn_.CountError(error); }
  uint64_t MonotonicNs() const override { return turn_.MonotonicNs(); }
  uint64_t error_count() const override { return turn_.error_count(); }
  void CountCommand(Session& session, const Command& command,
                    std::span<const std::string_view> args, uint64_t ns, bool has_failed) override {
    turn_.CountCommand(session, command, args, ns, has_failed ? Ending::kFailed : Ending::kDone);
  }

 private:
  ServerState& state_;
  Administration& administration_;
  TurnContext& turn_;
  ReplyGates& gates_;
  WaitingSessions& waiting_;
  MessageDelivery& deliveries_;
  SideThread& side_thread_;
  TurnContext& side_turn_;
  Engine* rehearsal_ = nullptr;
  bool is_beside_ = false;  // it is of another thread than the worker's
};

class ServerCall : public Call {
 public:
  ServerCall(ServerHost& host, Session& session, const Command& command,
             std::span<const std::string_view> args)
      : Call(host, session, command, args) {}
  // The call of another command, with the same host and session.
  ServerCall Of(const Command& command, std::span<const std::string_view> args) const {
    return ServerCall(server(), session(), command, args);
  }

  ServerState& state() const { return server().state(); }
  Administration& administration() const { return server().administration(); }
  // The options and the clock as of this turn.
  TurnContext& turn() const { return server().turn(); }
  uint64_t monotonic_ms() const { return turn().monotonic_ms(); }

  // The engine of the session's keyspace, or what rehearses a transaction (rehearsal.h).
  Engine& engine() const { return server().EngineOf(session()); }
  bool rehearses() const { return server().rehearses(); }
  // The reply, and all replies encoded after it, wait until the engine has released the ticket.
  void Await(Engine& engine, Version ticket) const {
    server().gates().Mark(session(), engine, ticket);
  }
  MessageDelivery& deliveries() const { return server().deliveries(); }
  ReplyGates& gates() const { return server().gates(); }
  SideThread& side_thread() const { return server().side_thread(); }
  TurnContext& side_turn() const { return server().side_turn(); }
  bool MayGoAside() const { return server().MayGoAside(session()); }
  ServerHost HostBeside(TurnContext& turn, ReplyGates& gates) const {
    return server().HostBeside(turn, gates);
  }
  // Replies through a task from the next turn on.
  void Start(std::unique_ptr<Task> task) const { session().task = std::move(task); }
  // Lets the session wait for a key. Returns true if the waiter has ended at once: the caller
  // replies.
  bool Wait(std::shared_ptr<KeyWaiter> waiter) const {
    return server().waiting().Wait(session(), std::move(waiter), [this](Engine& its, Batch& pop) {
      return turn().ExecuteAlone(its, pop);
    });
  }

 private:
  friend class RehearsalScope;

  // The host of a ServerCall is a ServerHost: no other host makes such calls.
  ServerHost& server() const { return static_cast<ServerHost&>(host()); }
};

// While it lives, the commands of the call's host see `engine` instead of that of the keyspace.
class RehearsalScope {
 public:
  RehearsalScope(const ServerCall& call, Engine& engine) : host_(call.server()) {
    host_.set_rehearsal(&engine);
  }
  ~RehearsalScope() { host_.set_rehearsal(nullptr); }
  RehearsalScope(const RehearsalScope&) = delete;
  RehearsalScope& operator=(const RehearsalScope&) = delete;

 private:
  ServerHost& host_;
};

}  // namespace skep
