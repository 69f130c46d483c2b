// Commands about keys, whatever their values, and their deadlines.
#include "server/command_table.h"
#include "server/commands.h"

namespace skep::command_table {
namespace {

using namespace commands;
using enum Command::Flag;

constexpr Command kKeyCommands[] = {
    {"del", -2, kWrite | kAtomicKeys | kKeyByKey, 1, -1, 1, "generic", "1.0.0", "key [key ...]",
     "Deletes keys, all at one instant.", PlanDel, FinishDoneCount},
    {"exists", -2, kPointRead | kRange | kAtomicKeys | kKeyByKey, 1, -1, 1, "generic", "1.0.0",
     "key [key ...]", "Counts which of the keys exist.", PlanExists, FinishDoneCount},
    {"expire", -3, kPointWrite, 1, 1, 1, "generic", "1.0.0", "key seconds [NX | XX | GT | LT]",
     "Gives a key seconds to live.", PlanExpire, FinishWhether},
    {"expireat", -3, kPointWrite, 1, 1, 1, "generic", "1.2.0",
     "key unix-time-seconds [NX | XX | GT | LT]", "Gives a key a deadline.", PlanExpireAt,
     FinishWhether},
    {"expiretime", 2, kPointRead, 1, 1, 1, "generic", "7.0.0", "key",
     "Returns the deadline of a key in Unix seconds.", PlanLength, FinishExpireTime},
    {"keys", 2, kReadOnly | kRange, 0, 0, 0, "generic", "1.0.0", "pattern",
     "Returns all keys that match a pattern; in a keyspace with an order: in order, at one "
     "instant.",
     PlanKeys, FinishKeys, RunKeys},
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
    {"pttl", 2, kPointRead, 1, 1, 1, "generic", "2.6.0", "key",
     "Returns how many milliseconds a key has to live.", PlanLength, FinishPttl},
    {"randomkey", 1, kReadOnly | kRange, 0, 0, 0, "generic", "1.0.0", "",
     "Returns a key, each with the same probability.", PlanRandomKey, FinishRandomKey},
    {"rename", 3, kWrite | kStores | kAtomic, 1, 2, 1, "generic", "1.0.0", "key newkey",
     "Renames a key and overwrites the destination.", PlanRename, FinishRename},
    {"renamenx", 3, kPointStore | kAtomic, 1, 2, 1, "generic", "1.0.0", "key newkey",
     "Renames a key if the destination does not exist.", PlanRenameNx, FinishRenameNx},
    {"scan", -2, kReadOnly | kRange, 0, 0, 0, "generic", "2.8.0",
     "cursor [MATCH pattern] [COUNT count] [TYPE type]",
     "Iterates over the keys, in the keyspace's order if it has one.", PlanScan, FinishScan,
     RunScan},
    {"ttl", 2, kPointRead, 1, 1, 1, "generic", "1.0.0", "key",
     "Returns how many seconds a key has to live.", PlanLength, FinishTtl},
    {"type", 2, kPointRead, 1, 1, 1, "generic", "1.0.0", "key",
     "Returns the type of a value: string, hash, set, list, zset, or none.", PlanLength,
     FinishType},
    {"unlink", -2, kPointWrite | kAtomicKeys | kKeyByKey, 1, -1, 1, "generic", "4.0.0",
     "key [key ...]", "Deletes keys, all at one instant.", PlanDel, FinishDoneCount},
    {"copy", -3, kWrite | kStores | kRange | kReadsFirst | kWhole, 1, 2, 1, "generic", "6.2.0",
     "source destination [DB index] [REPLACE]", "Copies a key, with its deadline.", nullptr,
     nullptr, RunCopy},
    {"move", 3, kPointWrite, 1, 1, 1, "generic", "1.0.0", "key index",
     "Returns an error: nothing happens in two databases at one instant.", nullptr, nullptr,
     RunMove, kOneDatabase},
    {"swapdb", 3, kPointWrite, 0, 0, 0, "server", "4.0.0", "index index",
     "Returns an error: nothing happens in two databases at one instant.", nullptr, nullptr,
     RunSwapDb, kOneDatabase},
    {"object",
     -2,
     kReadOnly,
     0,
     0,
     0,
     "generic",
     "2.2.3",
     "subcommand [argument ...]",
     "Tells how a value is kept.",
     PlanObject,
     FinishObject,
     RunObject,
     {},
     ObjectSubcommands},
    {"touch", -2, kPointRead | kRange | kAtomicKeys | kKeyByKey, 1, -1, 1, "generic", "3.2.1",
     "key [key ...]", "Counts which of the keys exist.", PlanExists, FinishDoneCount},
};

}  // namespace

std::span<const Command> KeyCommands() { return kKeyCommands; }

}  // namespace skep::command_table
