// command.h: commands as data. The table (command_table.cc) says of each command how it looks, what
// it does and how it is run; everything else about commands is derived from it.
//
// Four ways to run. All keep the rule that a connection's commands behave as if run one after
// another (design: contracts).
//   local   finish only. Needs no engine; runs in its turn among the replies of the batch.
//   point   plan, finish. Plan adds requests to the batch of its keyspace, which the requests of
//           every connection of the turn share; finish encodes the reply from their outcomes.
//   atomic  plan, finish. Its requests act as one (Command::IsAtomic): the shared batch is executed
//           first, then plan fills an atomic batch of the command's own.
//   alone   The batch is executed first, then the command runs by itself: it may execute batches of
//           its own, as many as it needs, or start a Task.
// In a transaction (transaction.h) the plans of all its commands fill one atomic batch.
//
// A function of a command takes a Call (call.h), and can be run by anybody who has a CommandHost;
// or a ServerCall (server_call.h), and can only be run by a server. What administrates the server
// asks the Administration that a ServerCall has (administration.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "server/call.h"
#include "skep/batch.h"

namespace skep {

class ServerCall;
struct Subcommand;

// What planning a command came to.
struct Plan {
  enum class Kind : uint8_t { kRequests, kAlone, kError };
  Kind kind = Kind::kRequests;
  std::string_view error = {};  // with its code; a literal or in the batch's scratch

  static Plan Requests() { return {}; }
  static Plan Alone() { return {.kind = Kind::kAlone}; }
  static Plan Error(std::string_view text) { return {.kind = Kind::kError, .error = text}; }
};

// A function of a command: for any host, for a server, one for each, or none.
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
  // Whether nobody but a server can call it.
  bool needs_server() const { return any_ == nullptr && server_ != nullptr; }

  Result operator()(const ServerCall& call, Args... args) const {
    return server_ != nullptr ? server_(call, args...) : any_(call, args...);
  }
  // Not if it needs a server.
  Result operator()(const Call& call, Args... args) const { return any_(call, args...); }

 private:
  ForAny any_ = nullptr;
  ForServer server_ = nullptr;
};

// Adds requests only if it returns Requests(). Alone() answers the shared, unordered batch only: a
// batch of Kind::kAtomic takes every plan's requests.
using PlanFunction = CommandFunction<Plan, Batch&>;
// `slot` is the first one the plan added. The batch may hold other commands' requests, so only the
// verdicts of its own slots say what became of the command.
using FinishFunction = CommandFunction<void, const Batch&, uint32_t>;
using AloneFunction = CommandFunction<void>;

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
    kUnqueued = 128,    // runs at once in a transaction, and knows what to make of it
    kAtomic = 256,      // its requests act as one, so they have a batch of their own
    kAtomicKeys = 512,  // the same if it has more than one key; they are all its words
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
  // Whether the command, with so many words, has an atomic batch of its own.
  bool IsAtomic(size_t words) const { return has(kAtomic) || (has(kAtomicKeys) && words > 2); }
};

// "ERR wrong number of arguments for ... command", as Redis; of a command that takes a range, which
// Redis does not have, also how it is written.
std::string WrongCountError(const Command& command);

// Sorted by name.
std::span<const Command> AllCommands();

// Any case. Null if there is none.
const Command* FindCommand(std::string_view name);

}  // namespace skep
