// command.h: commands as data. The table (command_table.h) has each command's syntax, functions
// and way to run; everything else about commands is derived from it.
//
// Four ways to run. All keep the rule that a connection's commands behave as if run one after
// another (design: contracts).
//   local   finish only. Needs no engine; runs in its turn among the replies of the batch.
//   point   plan, finish. Plan adds requests to the batch of its keyspace, which the requests of
//           every connection of the turn share; finish encodes the reply from their outcomes.
//   atomic  plan, finish. Its requests act as one (Command::IsAtomic): the shared batch is executed
//           first, then plan fills an atomic batch of the command's own; an unordered one for a
//           command that is kKeyByKey where the engine has no atomic batches.
//   alone   The batch is executed first, then the command runs by itself: it may execute batches of
//           its own, as many as it needs, or start a Task.
// In a transaction (transaction.h) the plans of all its commands fill one atomic batch.
//
// The functions of a command take either a Call (call.h), and can be run by any CommandHost, or a
// ServerCall (server_call.h), and can only be run by a server. Commands that administrate the
// server use the Administration of their ServerCall (administration.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "server/call.h"
#include "skep/batch.h"

namespace skep {

class Portions;
class ServerCall;
struct Subcommand;

// The result of planning a command.
struct Plan {
  enum class Kind : uint8_t { kRequests, kAlone, kError };
  Kind kind = Kind::kRequests;
  std::string_view error = {};  // with its code; a literal or in the batch's scratch

  static Plan Requests() { return {}; }
  static Plan Alone() { return {.kind = Kind::kAlone}; }
  static Plan Error(std::string_view text) { return {.kind = Kind::kError, .error = text}; }
};

// A function of a command: one that any host can call, one that only a server can, both, or none.
template <typename Result, typename... Args>
class CommandFunction {
 public:
  using ForAny = Result (*)(const Call&, Args...);
  using ForServer = Result (*)(const ServerCall&, Args...);

  constexpr CommandFunction(std::nullptr_t = nullptr) {}
  constexpr CommandFunction(ForAny any) : any_(any) {}
  constexpr CommandFunction(ForServer server) : server_(server) {}
  constexpr CommandFunction(ForAny any, ForServer server) : any_(any), server_(server) {}

  bool operator==(std::nullptr_t) const { return any_ == nullptr && server_ == nullptr; }
  // Whether only a server can call it.
  bool needs_server() const { return any_ == nullptr && server_ != nullptr; }

  Result operator()(const ServerCall& call, Args... args) const {
    return server_ != nullptr ? server_(call, args...) : any_(call, args...);
  }
  // Requires that needs_server() is false.
  Result operator()(const Call& call, Args... args) const { return any_(call, args...); }

 private:
  ForAny any_ = nullptr;
  ForServer server_ = nullptr;
};

// A plan adds requests only if it returns Requests(). Alone() is only an answer for the shared,
// unordered batch: for a batch of Kind::kAtomic every plan adds requests, but for that of a command
// with kReadsFirst.
using PlanFunction = CommandFunction<Plan, Batch&>;
// `slot` is the first slot that the plan added. The batch may hold other commands' requests, so
// only the verdicts of its own slots tell the outcome of the command.
using FinishFunction = CommandFunction<void, const Batch&, uint32_t>;
using AloneFunction = CommandFunction<void>;

// Whether a command of this arity (see Command) accepts this number of words.
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
    kUnqueued = 128,     // in a transaction, runs at once and handles that itself
    kAtomic = 256,       // its requests act as one, in a batch of their own
    kAtomicKeys = 512,   // kAtomic if it has more than one key; all its words are keys
    kBlocks = 2048,      // may wait for a key, outside of a transaction
    kReadsFirst = 4096,  // makes its writes of what it reads: alone() does both. In a transaction
                         // it is rehearsed (rehearsal.h)
    kMessages = 8192,    // of messages ("pubsub")
    kWhenSubscribed = 16384,  // allowed while a client of RESP2 is subscribed
    kWhole = 32768,           // looks at the whole of its keys: if that is much, see aside_task.h
    kKeyByKey = 1024,  // where the engine has no atomic batches each of its keys is done by itself
  };

  std::string_view name;  // lower case
  int arity;              // counts the name; negative: the least number
  uint32_t flags;
  int first_key, last_key, key_step;  // as in COMMAND INFO; 0: no keys
  std::string_view group, since, arguments, summary;

  PlanFunction plan = nullptr;
  FinishFunction finish = nullptr;
  AloneFunction alone = nullptr;

  // Why the command is not allowed in a transaction; empty if it is. A command that is allowed and
  // has no plan runs while EXEC's replies are encoded, unless it has kReadsFirst: it must reply at
  // once and execute no batch.
  std::string_view no_multi = {};
  // For commands whose second word selects a subcommand; subcommands.h.
  std::span<const Subcommand> (*subcommands)() = nullptr;
  // For a command of one read, whose reply may be long: reads it in portions (portions.h). May
  // return null.
  std::unique_ptr<Portions> (*portions)(const Call& call) = nullptr;

  bool has(Flag flag) const { return (flags & flag) != 0; }
  // Whether the command, with this number of words, has an atomic batch of its own.
  bool IsAtomic(size_t words) const { return has(kAtomic) || (has(kAtomicKeys) && words > 2); }
};

// "ERR wrong number of arguments for ... command", as Redis says it; for a command that takes a
// range, which Redis does not have, with its syntax.
std::string WrongCountError(const Command& command);

// Sorted by name.
std::span<const Command> AllCommands();

// Upper and lower case are the same. Null if there is no such command.
const Command* FindCommand(std::string_view name);

}  // namespace skep
