// command_dispatch.h: from the bytes of a connection to commands that run.
//
//   Read, Continue   decode the bytes that have come, or that were kept, as far as they may be.
//                    Bytes of the packed protocol go to packed_dispatch.h
//   Dispatch         refuses a whole command, queues it in its transaction, or runs it in one of
//                    the four ways of command.h
//
// A command that has to wait (for a gate, a task, a turn that has time) is not consumed: its bytes
// stay in Session::in, and it is decoded again when the session goes on.
//
// Callers: the worker. It adds to the batch of the turn (turn_batch.h), which decides when that is
// executed.
// Thread safety: the owning worker only.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "server/command.h"
#include "server/connections.h"
#include "server/packed_dispatch.h"
#include "server/server_call.h"
#include "server/session.h"
#include "server/turn_batch.h"

namespace skep {

class CommandDispatch {
 public:
  // All arguments must outlive the dispatch.
  CommandDispatch(ServerHost& host, Connections& connections, TurnBatch& batch,
                  PackedDispatch& packed)
      : host_(host),
        turn_(host.turn()),
        connections_(connections),
        batch_(batch),
        packed_(packed) {}

  // The session's stream is ready: reads once, and dispatches the commands in its input.
  void Read(Session& session);
  // Dispatches the input that was kept in Session::in.
  void Continue(Session& session);

  // The sessions that CLIENT PAUSE has made wait, once they need not wait any more.
  std::vector<Session*> TakeHeld();
  bool has_held() const { return !held_.empty(); }
  // Forgets the sessions that are closed.
  void DropClosed();

 private:
  void ReadAhead(Session& session);
  size_t Decode(Session& session, std::string_view input);
  size_t DecodeCommands(Session& session, std::string_view input);
  bool Dispatch(Session& session, std::span<const std::string_view> args);
  std::string_view Refusal(const Session& session, const Command* command,
                           std::span<const std::string_view> args);
  std::string_view RefusalToQueue(const Session& session, const Command& command,
                                  std::span<const std::string_view> args);
  bool IsHeld(Session& session, const Command& command);
  void AddRefusal(Session& session, const Command* command, std::span<const std::string_view> args,
                  std::string_view refusal);
  void HangUpOnWebPage(Session& session);
  bool Run(Session& session, const Command& command, std::span<const std::string_view> args);
  bool RunPlanned(Session& session, const Command& command, std::span<const std::string_view> args);
  bool RunAtomic(Session& session, const Command& command, std::span<const std::string_view> args);
  bool RunAside(Session& session, const Command& command, std::span<const std::string_view> args);
  void GoAside(const ServerCall& call);
  bool RunAlone(Session& session, const Command& command, std::span<const std::string_view> args);
  void NoteRunning(Session& session, const Command& command, std::span<const std::string_view> args,
                   uint64_t ns);

  ServerHost& host_;
  TurnContext& turn_;
  Connections& connections_;
  TurnBatch& batch_;
  PackedDispatch& packed_;
  std::vector<std::string_view> args_;  // words of the command being decoded
  std::vector<Session*> held_;          // by CLIENT PAUSE; Session::held
};

}  // namespace skep
