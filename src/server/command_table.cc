#include <algorithm>
#include <array>

#include "server/commands.h"

namespace skep {
namespace {

using namespace commands;
using enum Command::Flag;

constexpr uint32_t kPointRead = kReadOnly | kFast;
constexpr uint32_t kPointWrite = kWrite | kFast;
constexpr uint32_t kPointStore = kWrite | kStores | kFast;
constexpr uint32_t kLocal = kFast;

constexpr std::string_view kOneDatabase = "a transaction is about one database";
constexpr std::string_view kSkep = "0.1.0";  // commands that Redis does not have

// name, arity, flags, first and last key, step, group, since, arguments, summary,
// plan, finish, alone, no_multi, subcommands
constexpr Command kCommands[] = {
    {"append", 3, kPointStore, 1, 1, 1, "string", "2.0.0", "key value",
     "Appends a string to the value of a key.", PlanAppend, FinishInteger},
    {"auth", -2, kLocal | kNoAuth, 0, 0, 0, "connection", "1.0.0", "[username] password",
     "Authenticates the connection.", nullptr, nullptr, RunAuth},
    {"bgsave", -1, kAdmin, 0, 0, 0, "server", "1.0.0", "[SCHEDULE]",
     "Begins to write a snapshot of all databases.", nullptr, nullptr, RunBgSave,
     "it is not of the transaction"},
    {"client", -2, kLocal, 0, 0, 0, "connection", "2.4.0", "subcommand [argument ...]",
     "Describes and names client connections.", nullptr, FinishClient, nullptr, {},
     ClientSubcommands},
    {"command", -1, kLocal, 0, 0, 0, "server", "2.8.13", "[subcommand [name ...]]",
     "Describes the commands.", nullptr, FinishCommand, nullptr, {}, CommandSubcommands},
    {"config", -2, kAdmin, 0, 0, 0, "server", "2.0.0", "subcommand [argument ...]",
     "Reads and sets options.", nullptr, nullptr, RunConfig, {}, ConfigSubcommands},
    {"dbsize", 1, kPointRead, 0, 0, 0, "server", "1.0.0", "", "Returns the number of keys.",
     PlanDbsize, FinishCount, RunDbsize},
    {"decr", 2, kPointStore, 1, 1, 1, "string", "1.0.0", "key",
     "Decrements the integer value of a key by one.", PlanDecr, FinishInteger},
    {"decrby", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key decrement",
     "Decrements the integer value of a key.", PlanDecrBy, FinishInteger},
    {"del", -2, kWrite, 1, -1, 1, "generic", "1.0.0", "key [key ...]",
     "Deletes keys, all at one instant.", PlanDel, FinishDoneCount},
    {"delex", -2, kPointWrite, 1, 1, 1, "string", "8.4.0",
     "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
     "Deletes a key if its value, or its digest, is or is not the given one.", PlanDelEx,
     FinishWhether},
    {"digest", 2, kPointRead, 1, 1, 1, "string", "8.4.0", "key",
     "Returns the digest of a value: XXH3 in 128 bits.", PlanGet, FinishDigest},
    {"discard", 1, kLocal | kUnqueued, 0, 0, 0, "transactions", "2.0.0", "",
     "Drops the queued commands and unwatches all keys.", PlanDiscard, FinishOk},
    {"echo", 2, kLocal, 0, 0, 0, "connection", "1.0.0", "message", "Returns the message.", nullptr,
     FinishEcho},
    {"exec", 1, kRange | kUnqueued, 0, 0, 0, "transactions", "1.2.0", "",
     "Executes the queued commands at one instant, if no watched key has changed.", nullptr,
     nullptr, RunExec},
    {"exists", -2, kPointRead | kRange, 1, -1, 1, "generic", "1.0.0", "key [key ...]",
     "Counts which of the keys exist.", PlanExists, FinishDoneCount},
    {"expire", -3, kPointWrite, 1, 1, 1, "generic", "1.0.0", "key seconds [NX | XX | GT | LT]",
     "Gives a key seconds to live.", PlanExpire, FinishWhether},
    {"expireat", -3, kPointWrite, 1, 1, 1, "generic", "1.2.0",
     "key unix-time-seconds [NX | XX | GT | LT]", "Gives a key a deadline.", PlanExpireAt,
     FinishWhether},
    {"expiretime", 2, kPointRead, 1, 1, 1, "generic", "7.0.0", "key",
     "Returns the deadline of a key in Unix seconds.", PlanLength, FinishExpireTime},
    {"flushall", -1, kWrite, 0, 0, 0, "server", "1.0.0", "[ASYNC | SYNC]",
     "Removes all keys from all databases.", nullptr, nullptr, RunFlushAll, kOneDatabase},
    {"flushdb", -1, kWrite, 0, 0, 0, "server", "1.0.0", "[ASYNC | SYNC]",
     "Removes all keys from the current database.", PlanFlushDb, FinishFlushDb, RunFlushDb},
    {"fn", -2, kLocal, 0, 0, 0, "function", kSkep, "LIST",
     "Describes the functions that run at the data.", nullptr, FinishFn, nullptr, {},
     FnSubcommands},
    {"get", 2, kPointRead, 1, 1, 1, "string", "1.0.0", "key", "Returns the value of a key.",
     PlanGet, FinishValue},
    {"getdel", 2, kPointWrite, 1, 1, 1, "string", "6.2.0", "key",
     "Returns the value of a key and deletes it.", PlanGetDel, FinishValue},
    {"getex", -2, kPointWrite, 1, 1, 1, "string", "6.2.0",
     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
     "PERSIST]",
     "Returns the value of a key and changes its deadline.", PlanGetEx, FinishGetEx},
    {"getset", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key value",
     "Sets the value of a key and returns the one before.", PlanGetSet, FinishValue},
    {"hello", -1, kLocal | kNoAuth, 0, 0, 0, "connection", "6.0.0",
     "[protover [AUTH username password] [SETNAME clientname]]",
     "Shakes hands and chooses the protocol.", nullptr, nullptr, RunHello},
    {"incr", 2, kPointStore, 1, 1, 1, "string", "1.0.0", "key",
     "Increments the integer value of a key by one.", PlanIncr, FinishInteger},
    {"incrby", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key increment",
     "Increments the integer value of a key.", PlanIncrBy, FinishInteger},
    {"info", -1, 0, 0, 0, 0, "server", "1.0.0", "[section ...]", "Describes the server.", nullptr,
     nullptr, RunInfo},
    {"kbatch", -4, kWrite | kStores | kRange, 0, 0, 0, "conditional", kSkep,
     "[IF condition] ... DO operation [operation ...]",
     "Does operations on any keys, all or none, if all conditions hold.", PlanKbatch, FinishKbatch},
    {"kcas", -4, kPointStore, 1, 1, 1, "conditional", kSkep,
     "key old new [EX seconds | PX milliseconds | EXAT unix-time-seconds | "
     "PXAT unix-time-milliseconds | KEEPTTL]",
     "Sets the value of a key if it is the old one; else returns the one seen.", PlanKcas,
     FinishKcas},
    {"kceil", -2, kPointRead | kRange, 1, 1, 1, "ordered", kSkep, "key [WITHVALUE]",
     "Returns the smallest key not below the given one.", PlanKceil, FinishNeighbour},
    {"kcount", 3, kReadOnly | kRange, 0, 0, 0, "ordered", kSkep, "min max | PREFIX prefix",
     "Counts the keys of a range, at one instant.", PlanKcount, FinishCount, RunKcount},
    {"kdelrange", -3, kWrite, 0, 0, 0, "ordered", kSkep, "min max | PREFIX prefix [LIMIT count]",
     "Deletes the keys of a range, at one instant.", PlanKdelrange, FinishInteger, RunKdelrange},
    {"kexpire", -4, kWrite, 0, 0, 0, "ordered", kSkep,
     "min max | PREFIX prefix milliseconds [LIMIT count]",
     "Gives the keys of a range milliseconds to live, one after the other.", PlanKexpire,
     FinishInteger, RunKexpire},
    {"keys", 2, kReadOnly | kRange, 0, 0, 0, "generic", "1.0.0", "pattern",
     "Returns all keys that match a pattern; in a keyspace with an order: in order, at one "
     "instant.",
     PlanKeys, FinishKeys, RunKeys},
    {"kfirst", -1, kPointRead | kRange, 0, 0, 0, "ordered", kSkep, "[WITHVALUE]",
     "Returns the smallest key.", PlanKfirst, FinishNeighbour},
    {"kfloor", -2, kPointRead | kRange, 1, 1, 1, "ordered", kSkep, "key [WITHVALUE]",
     "Returns the largest key not above the given one.", PlanKfloor, FinishNeighbour},
    {"klast", -1, kPointRead | kRange, 0, 0, 0, "ordered", kSkep, "[WITHVALUE]",
     "Returns the largest key.", PlanKlast, FinishNeighbour},
    {"krange", -3, kReadOnly | kRange, 0, 0, 0, "ordered", kSkep,
     "min max | PREFIX prefix [REV] [LIMIT offset count] [WITHVALUES]",
     "Returns the keys of a range, in order, at one instant.", PlanKrange, FinishKrange, RunKrange},
    {"kreduce", -5, kReadOnly | kRange, 0, 0, 0, "ordered", kSkep,
     "min max | PREFIX prefix function type [init]",
     "Folds the elements of all values of a range, at one instant.", nullptr, nullptr, RunKreduce,
     "it reads at a version of its own"},
    {"kscan", -3, kReadOnly | kRange, 0, 0, 0, "ordered", kSkep,
     "min max | PREFIX prefix | NEXT token [REV] [COUNT count] [WITHVALUES] [WITHDEADLINES]",
     "Returns a range chunk by chunk, all of one version.", nullptr, nullptr, RunKscan,
     "it reads at a version of its own"},
    {"lastsave", 1, kLocal, 0, 0, 0, "server", "1.0.0", "",
     "Returns when the last snapshot was written, in seconds since 1970.", nullptr,
     FinishLastSave},
    {"mget", -2, kPointRead | kRange, 1, -1, 1, "string", "1.0.0", "key [key ...]",
     "Returns the values of keys, at one instant.", PlanMget, FinishMget},
    {"mset", -3, kWrite | kStores, 1, -1, 2, "string", "1.0.1", "key value [key value ...]",
     "Sets the values of keys, all at one instant.", PlanMset, FinishMset},
    {"msetex", -4, kWrite | kStores, 0, 0, 0, "string", "8.4.0",
     "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | "
     "EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
     "Sets the values and deadline of keys, all or none, at one instant.", PlanMsetEx,
     FinishMsetEx},
    {"msetnx", -3, kWrite | kStores, 1, -1, 2, "string", "1.0.1", "key value [key value ...]",
     "Sets the values of keys if none of them exists.", PlanMsetNx, FinishMsetNx},
    {"multi", 1, kLocal | kUnqueued, 0, 0, 0, "transactions", "1.2.0", "",
     "Begins a transaction: commands are queued until EXEC.", PlanMulti, FinishOk},
    {"persist", 2, kPointWrite, 1, 1, 1, "generic", "2.2.0", "key",
     "Takes the deadline of a key away.", PlanPersist, FinishWhether},
    {"pexpire", -3, kPointWrite, 1, 1, 1, "generic", "2.6.0",
     "key milliseconds [NX | XX | GT | LT]", "Gives a key milliseconds to live.", PlanPexpire,
     FinishWhether},
    {"pexpireat", -3, kPointWrite, 1, 1, 1, "generic", "2.6.0",
     "key unix-time-milliseconds [NX | XX | GT | LT]", "Gives a key a deadline.", PlanPexpireAt,
     FinishWhether},
    {"pexpiretime", 2, kPointRead, 1, 1, 1, "generic", "7.0.0", "key",
     "Returns the deadline of a key in Unix milliseconds.", PlanLength, FinishPexpireTime},
    {"ping", -1, kLocal, 0, 0, 0, "connection", "1.0.0", "[message]",
     "Returns the message, or PONG.", nullptr, FinishPing},
    {"psetex", 4, kWrite | kStores, 1, 1, 1, "string", "2.6.0", "key milliseconds value",
     "Sets the value of a key and its milliseconds to live.", PlanPsetEx, FinishSet},
    {"pttl", 2, kPointRead, 1, 1, 1, "generic", "2.6.0", "key",
     "Returns how many milliseconds a key has to live.", PlanLength, FinishPttl},
    {"quit", -1, kLocal | kNoAuth | kUnqueued, 0, 0, 0, "connection", "1.0.0", "",
     "Closes the connection.", nullptr, nullptr, RunQuit},
    {"randomkey", 1, kReadOnly | kRange, 0, 0, 0, "generic", "1.0.0", "",
     "Returns a key, each with the same probability.", PlanRandomKey, FinishRandomKey},
    {"rename", 3, kWrite | kStores, 1, 2, 1, "generic", "1.0.0", "key newkey",
     "Renames a key and overwrites the destination.", PlanRename, FinishRename},
    {"renamenx", 3, kPointStore, 1, 2, 1, "generic", "1.0.0", "key newkey",
     "Renames a key if the destination does not exist.", PlanRenameNx, FinishRenameNx},
    {"reset", 1, kLocal | kNoAuth | kUnqueued, 0, 0, 0, "connection", "6.2.0", "",
     "Puts the connection back into its first state.", nullptr, nullptr, RunReset},
    {"save", 1, kAdmin, 0, 0, 0, "server", "1.0.0", "",
     "Writes a snapshot of all databases, and waits for it.", nullptr, nullptr, RunSave,
     "it is not of the transaction"},
    {"scan", -2, kReadOnly | kRange, 0, 0, 0, "generic", "2.8.0",
     "cursor [MATCH pattern] [COUNT count] [TYPE type]",
     "Iterates over the keys, in the keyspace's order if it has one.", PlanScan, FinishScan,
     RunScan},
    {"select", 2, kLocal, 0, 0, 0, "connection", "1.0.0", "index", "Changes the database.", nullptr,
     nullptr, RunSelect, kOneDatabase},
    {"set", -3, kWrite | kStores, 1, 1, 1, "string", "1.0.0",
     "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] "
     "[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
     "KEEPTTL]",
     "Sets the value of a key.", PlanSet, FinishSet},
    {"setex", 4, kWrite | kStores, 1, 1, 1, "string", "2.0.0", "key seconds value",
     "Sets the value of a key and its seconds to live.", PlanSetEx, FinishSet},
    {"setnx", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key value",
     "Sets the value of a key if it does not exist.", PlanSetNx, FinishWhether},
    {"shutdown", -1, kAdmin, 0, 0, 0, "server", "1.0.0", "[NOSAVE | SAVE] [NOW] [FORCE]",
     "Ends the server.", nullptr, nullptr, RunShutdown, "it ends the server"},
    {"strlen", 2, kPointRead, 1, 1, 1, "string", "2.2.0", "key",
     "Returns the length of a value in bytes.", PlanLength, FinishInteger},
    {"time", 1, kLocal, 0, 0, 0, "server", "2.6.0", "",
     "Returns the server's time: seconds and microseconds.", nullptr, FinishTime},
    {"ttl", 2, kPointRead, 1, 1, 1, "generic", "1.0.0", "key",
     "Returns how many seconds a key has to live.", PlanLength, FinishTtl},
    {"type", 2, kPointRead, 1, 1, 1, "generic", "1.0.0", "key",
     "Returns the type of a value: string, or none.", PlanLength, FinishType},
    {"unlink", -2, kPointWrite, 1, -1, 1, "generic", "4.0.0", "key [key ...]",
     "Deletes keys, all at one instant.", PlanDel, FinishDoneCount},
    {"unwatch", 1, kLocal, 0, 0, 0, "transactions", "2.2.0", "", "Unwatches all keys.", nullptr,
     nullptr, RunUnwatch},
    {"vfilter", 5, kPointRead, 1, 1, 1, "function", kSkep, "key predicate type operand",
     "Returns the elements of a value that the predicate holds for.", PlanVfilter, FinishVfilter},
    {"vreduce", -4, kPointRead, 1, 1, 1, "function", kSkep, "key function type [init]",
     "Folds the elements of a value.", PlanVreduce, FinishVreduce},
    {"vupdate", -4, kPointStore, 1, 1, 1, "function", kSkep,
     "key function type [operand ... | VECTOR bytes] [RETURN OLD | NEW | NONE] [CREATE n]",
     "Applies a function to each element of a value.", PlanVupdate, FinishVupdate},
    {"watch", -2, kLocal | kUnqueued, 1, -1, 1, "transactions", "2.2.0", "key [key ...]",
     "The next EXEC executes nothing if any of the keys has changed.", nullptr, nullptr, RunWatch},
};
static_assert(std::ranges::is_sorted(kCommands, {}, &Command::name));

constexpr size_t kNameBytesMax = std::ranges::max_element(kCommands, {}, [](const Command& c) {
                                   return c.name.size();
                                 })->name.size();

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  if (name.size() > kNameBytesMax) return nullptr;
  std::array<char, kNameBytesMax> lower{};
  std::ranges::transform(name, lower.begin(), [](char c) { return LowerCase(c); });
  const std::string_view wanted(lower.data(), name.size());
  const auto at = std::ranges::lower_bound(kCommands, wanted, {}, &Command::name);
  return at != std::end(kCommands) && at->name == wanted ? at : nullptr;
}

}  // namespace skep
