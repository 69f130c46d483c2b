// call.h: one command being run, wherever it is run: in a server, or by a client that makes batches
// of commands (tools/cli).
//
//   Call        the command's words, its session, and the host that executes its batches. All there
//               is of it may be asked for anywhere
//   ServerCall  what only a server has besides: server_call.h. A command whose function takes a
//               ServerCall cannot be run by anybody else (command.h)
//
// Callers: whoever runs commands makes calls; the functions of the command table and tasks take
// them.
// Thread safety: the one that owns the session.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/store_now.h"
#include "server/session.h"
#include "skep/batch.h"
#include "wire/resp_writer.h"

namespace skep {

struct Command;

// Runs the batches of commands.
class CommandHost {
 public:
  // `now` is the time as of which commands are run. It must outlive the host, which only looks.
  explicit CommandHost(const StoreNow& now) : now_(now) {}
  virtual ~CommandHost() = default;

  const StoreNow& now() const { return now_; }
  // Executes a batch on the keyspace of the session. The replies that are encoded from then on wait
  // for its ticket.
  virtual void Execute(Session& session, Batch& batch) = 0;
  // What the answers of an atomic batch of the session may take.
  virtual size_t AnswerBytesMax(const Session&) const { return kAnswerBytesMax; }
  // A reply is an error.
  virtual void CountError() {}

 private:
  const StoreNow& now_;
};

// Views are valid until the batch of the turn is flushed (turn_batch.h).
class Call {
 public:
  Call(CommandHost& host, Session& session, const Command& command,
       std::span<const std::string_view> args)
      : host_(host), session_(session), command_(command), args_(args) {}
  // Of another command, in the same place.
  Call Of(const Command& command, std::span<const std::string_view> args) const {
    return Call(host_, session_, command, args);
  }

  Session& session() const { return session_; }
  // The one "now" of the turn.
  const StoreNow& now() const { return host_.now(); }
  uint64_t time_ms() const { return now().ms; }
  const Command& command() const { return command_; }
  // args()[0] is the command's name.
  std::span<const std::string_view> args() const { return args_; }
  std::string_view arg(size_t i) const { return args_[i]; }

  // Where the reply goes.
  RespWriter reply() const { return RespWriter(session_.out, session_.protocol); }
  void Error(std::string_view text) const;
  // As Redis words it where Redis has it.
  void Error(Status status) const;
  // If the request, or one of the batch's, was refused: true, and the error is the reply.
  bool Refused(const Outcome& out) const;
  bool Refused(const Batch& batch) const;
  // The same of `count` slots from `slot` on.
  bool Refused(const Batch& batch, uint32_t slot, size_t count) const;

  // Runs a batch of this command alone and makes the reply wait for its ticket.
  void Execute(Batch& batch) const { host_.Execute(session_, batch); }
  // What the answers of an atomic batch that it executes may take.
  size_t AnswerBytesMax() const { return host_.AnswerBytesMax(session_); }
  // Makes room for a reply that has all that the batch has answered, if that is large: one that
  // grows step by step takes twice as much.
  void ReserveReply(const Batch& batch) const;

 protected:
  CommandHost& host() const { return host_; }

 private:
  CommandHost& host_;
  Session& session_;
  const Command& command_;
  std::span<const std::string_view> args_;
};

// Redis's texts for what many commands can get wrong.
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";

}  // namespace skep
