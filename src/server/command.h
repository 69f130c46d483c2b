// command.h: commands as data. The table (command_table.cc) says of each command how it looks, what
// it does and how it is run; everything else about commands is derived from it.
//
// Four ways to run. All keep the rule that a connection's commands behave as if run one after
// another (design: contracts).
//   local   finish only. Needs no engine; runs in its turn among the replies of the batch.
//   point   plan, finish. Plan adds requests to the batch of its keyspace, which the requests of
//           every connection of the turn share; finish encodes the reply from their outcomes.
//   atomic  plan, finish. Plan finds that its requests must act as one: the shared batch is
//           executed first, then plan is called again with an atomic batch of the command's own.
//   alone   The batch is executed first, then the command runs by itself: it may execute batches of
//           its own, as many as it needs, or start a Task.
// In a transaction (transaction.h) the plans of all its commands fill one atomic batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/store_now.h"
#include "server/session.h"
#include "skep/batch.h"
#include "wire/resp_writer.h"

namespace skep {

class Administration;
class ServerState;
class Worker;
struct Command;
struct Subcommand;

// Who runs commands without being a server: a client that makes batches of them. There are the
// plans and finishes that ask neither server nor worker nor engine for anything, and EXEC.
class CommandHost {
 public:
  virtual ~CommandHost() = default;
  virtual StoreNow now() const = 0;
  virtual void Execute(Batch& batch) = 0;
};

// One command being run. Views are valid until the flush ends.
class Call {
 public:
  Call(ServerState& state, Worker& worker, Session& session, const Command& command,
       std::span<const std::string_view> args)
      : state_(&state), worker_(&worker), session_(session), command_(command), args_(args) {}
  // Without a server: state(), worker(), administration() and engine() must not be asked for.
  Call(CommandHost& host, Session& session, const Command& command,
       std::span<const std::string_view> args)
      : host_(&host), session_(session), command_(command), args_(args) {}
  // Of another command, in the same place.
  Call Of(const Command& command, std::span<const std::string_view> args) const {
    return host_ != nullptr ? Call(*host_, session_, command, args)
                            : Call(*state_, *worker_, session_, command, args);
  }

  ServerState& state() const { return *state_; }
  Administration& administration() const;
  Worker& worker() const { return *worker_; }
  Session& session() const { return session_; }
  // The one "now" of the turn.
  StoreNow now() const;
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

  // The engine of the session's keyspace.
  Engine& engine() const;
  // Runs a batch of this command alone and makes the reply wait for its ticket.
  void Execute(Batch& batch) const;
  // What the answers of an atomic batch that it executes may take.
  size_t AnswerBytesMax() const;
  // Makes room for a reply that has all that the batch has answered, if that is large: one that
  // grows step by step takes twice as much.
  void ReserveReply(const Batch& batch) const;
  // Replies through a task from the next turn on.
  void Start(std::unique_ptr<Task> task) const { session_.task = std::move(task); }

 private:
  CommandHost* host_ = nullptr;  // null: a server
  ServerState* state_ = nullptr;
  Worker* worker_ = nullptr;
  Session& session_;
  const Command& command_;
  std::span<const std::string_view> args_;
};

// Redis's texts for what many commands can get wrong.
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";

// What planning a command came to.
struct Plan {
  enum class Kind : uint8_t { kRequests, kAtomic, kAlone, kError };
  Kind kind = Kind::kRequests;
  std::string_view error = {};  // with its code; a literal or in the batch's scratch

  static Plan Requests() { return {}; }
  static Plan Atomic() { return {.kind = Kind::kAtomic}; }
  static Plan Alone() { return {.kind = Kind::kAlone}; }
  static Plan Error(std::string_view text) { return {.kind = Kind::kError, .error = text}; }
};

// Adds requests only if it returns Requests(). Atomic() and Alone() answer the shared, unordered
// batch only: a batch of Kind::kAtomic takes every plan's requests.
using PlanFunction = Plan (*)(const Call& call, Batch& batch);
// `slot` is the first one the plan added. The batch may hold other commands' requests, so only the
// verdicts of its own slots say what became of the command.
using FinishFunction = void (*)(const Call& call, const Batch& batch, uint32_t slot);
using AloneFunction = void (*)(Call& call);

// Whether a command of this arity (see Command) takes so many words.
constexpr bool AcceptsCount(int arity, size_t words) {
  return arity >= 0 ? words == static_cast<size_t>(arity) : words >= static_cast<size_t>(-arity);
}

struct Command {
  enum Flag : uint32_t {
    kWrite = 1,
    kReadOnly = 2,
    kStores = 4,   // may need memory ("denyoom")
    kFast = 8,     // O(1) or O(log n)
    kRange = 16,   // reads a range, or several keys at one version
    kNoAuth = 32,  // allowed before AUTH
    kAdmin = 64,
    kUnqueued = 128,  // runs at once in a transaction, and knows what to make of it
  };

  std::string_view name;  // lower case
  int arity;              // counts the name; negative: at least so many
  uint32_t flags;
  int first_key, last_key, key_step;  // as in COMMAND INFO; 0: no keys
  std::string_view group, since, arguments, summary;

  PlanFunction plan = nullptr;
  FinishFunction finish = nullptr;
  AloneFunction alone = nullptr;

  // Why it is not allowed in a transaction; empty if it is. A command that is, and that has no
  // plan, runs while EXEC's replies are encoded: it must reply at once and execute no batch.
  std::string_view no_multi = {};
  // Of a command whose second word says what it does; subcommands.h.
  std::span<const Subcommand> (*subcommands)() = nullptr;

  bool has(Flag flag) const { return (flags & flag) != 0; }
};

// "ERR wrong number of arguments for ... command", as Redis; of a command that takes a range, which
// Redis does not have, also how it is written.
std::string WrongCountError(const Command& command);

// Sorted by name.
std::span<const Command> AllCommands();

// Any case. Null if there is none.
const Command* FindCommand(std::string_view name);

}  // namespace skep
