// call.h: one command being run, in a server, or by a client that makes batches of commands
// (tools/cli).
//
//   Call        the command's words, its session, and the host that executes its batches. Any host
//               has all of it
//   ServerCall  adds what only a server has: server_call.h. A command whose function takes a
//               ServerCall can only be run by a server (command.h)
//
// Callers: hosts of commands make calls; the functions of the command table and tasks take them.
// Thread safety: the thread that owns the session.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/store_now.h"
#include "server/planned_command.h"
#include "server/session.h"
#include "skep/batch.h"
#include "wire/resp_writer.h"

namespace skep {

struct Command;

// Runs the batches of commands.
class CommandHost {
 public:
  // `now` is the time as of which commands are run. It must outlive the host, which only reads it.
  explicit CommandHost(const StoreNow& now) : now_(now) {}
  virtual ~CommandHost() = default;

  const StoreNow& now() const { return now_; }
  // Executes a batch, which these commands have planned, on the keyspace of the session. Replies
  // that are encoded from then on wait for its ticket.
  virtual void Execute(Session& session, Batch& batch,
                       std::span<const PlannedCommand> commands) = 0;
  // The bytes that an atomic batch of the session may return, and those that its answers may take.
  virtual size_t ReturnedBytesMax(const Session&) const { return kAnswerBytesMax; }
  virtual size_t AnswerBytesMax(const Session&) const { return kAnswerBytesMax; }
  // Called when a reply is an error.
  virtual void CountError([[maybe_unused]] std::string_view error) {}
  // What a host that counts commands (command_statistics.h) needs: the time, how many errors there
  // were so far, and a command that has run as a part of another.
  virtual uint64_t MonotonicNs() const { return 0; }
  virtual uint64_t error_count() const { return 0; }
  virtual void CountCommand([[maybe_unused]] Session& session,
                            [[maybe_unused]] const Command& command,
                            [[maybe_unused]] std::span<const std::string_view> args,
                            [[maybe_unused]] uint64_t ns, [[maybe_unused]] bool has_failed) {}

 private:
  const StoreNow& now_;
};

// Views are valid until the batch of the turn is flushed (turn_batch.h).
class Call {
 public:
  Call(CommandHost& host, Session& session, const Command& command,
       std::span<const std::string_view> args)
      : host_(host), session_(session), command_(command), args_(args) {}
  // The call of another command, with the same host and session.
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

  // The writer of the reply.
  RespWriter reply() const { return RespWriter(session_.out, session_.protocol); }
  // Replies with the value of an outcome. One that is pinned is not copied.
  void Bulk(const Batch& batch, uint32_t slot) const;
  void Error(std::string_view text) const;
  // The text is Redis's where Redis has the error.
  void Error(Status status) const;
  // If the request, or one of the batch's requests, was refused, replies with the error and returns
  // true.
  bool Refused(const Outcome& out) const;
  bool Refused(const Batch& batch) const;
  // Likewise for `count` slots from `slot` on.
  bool Refused(const Batch& batch, uint32_t slot, size_t count) const;

  uint64_t MonotonicNs() const { return host_.MonotonicNs(); }
  uint64_t error_count() const { return host_.error_count(); }
  // Counts this command, which has run as a part of another.
  void Count(uint64_t ns, bool has_failed) const {
    host_.CountCommand(session_, command_, args_, ns, has_failed);
  }

  // Executes a batch of this command alone and makes the reply wait for its ticket.
  void Execute(Batch& batch) const {
    const PlannedCommand all{.first_slot = 0, .command = &command_};
    Execute(batch, {&all, 1});
  }
  // Likewise a batch that other commands have planned.
  void Execute(Batch& batch, std::span<const PlannedCommand> commands) const {
    host_.Execute(session_, batch, commands);
  }
  // The bytes that the answers of an atomic batch executed by the command may take.
  size_t AnswerBytesMax() const { return host_.AnswerBytesMax(session_); }
  // Makes room for a reply that has all answers of the batch, if they are large: a string that
  // grows step by step takes twice as much memory.
  void ReserveReply(const Batch& batch) const;

 protected:
  CommandHost& host() const { return host_; }

 private:
  CommandHost& host_;
  Session& session_;
  const Command& command_;
  std::span<const std::string_view> args_;
};

// Redis's texts for errors that many commands can have.
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";

}  // namespace skep
