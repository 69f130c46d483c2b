// Commands about values.
#include "server/command_table.h"
#include "server/commands.h"

namespace skep::command_table {
namespace {

using namespace commands;
using enum Command::Flag;

constexpr Command kStringCommands[] = {
    {"append", 3, kPointStore, 1, 1, 1, "string", "2.0.0", "key value",
     "Appends a string to the value of a key.", PlanAppend, FinishInteger},
    {"decr", 2, kPointStore, 1, 1, 1, "string", "1.0.0", "key",
     "Decrements the integer value of a key by one.", PlanDecr, FinishInteger},
    {"decrby", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key decrement",
     "Decrements the integer value of a key.", PlanDecrBy, FinishInteger},
    {"delex", -2, kPointWrite, 1, 1, 1, "string", "8.4.0",
     "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
     "Deletes a key if its value, or its digest, is or is not the given one.", PlanDelEx,
     FinishWhether},
    {"digest", 2, kPointRead | kWhole, 1, 1, 1, "string", "8.4.0", "key",
     "Returns the digest of a value: XXH3 in 128 bits.", PlanGet, FinishDigest},
    {"get", 2, kPointRead, 1, 1, 1, "string", "1.0.0", "key", "Returns the value of a key.",
     PlanGetToSend, FinishValue},
    {"getdel", 2, kPointWrite, 1, 1, 1, "string", "6.2.0", "key",
     "Returns the value of a key and deletes it.", PlanGetDel, FinishValue},
    {"getex", -2, kPointWrite, 1, 1, 1, "string", "6.2.0",
     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
     "PERSIST]",
     "Returns the value of a key and changes its deadline.", PlanGetEx, FinishGetEx},
    {"getset", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key value",
     "Sets the value of a key and returns the one before.", PlanGetSet, FinishValue},
    {"incr", 2, kPointStore, 1, 1, 1, "string", "1.0.0", "key",
     "Increments the integer value of a key by one.", PlanIncr, FinishInteger},
    {"incrby", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key increment",
     "Increments the integer value of a key.", PlanIncrBy, FinishInteger},
    {"mget", -2, kPointRead | kRange | kAtomic | kKeyByKey, 1, -1, 1, "string", "1.0.0",
     "key [key ...]", "Returns the values of keys, at one instant.", PlanMget, FinishMget},
    {"mset", -3, kWrite | kStores | kAtomic | kKeyByKey, 1, -1, 2, "string", "1.0.1",
     "key value [key value ...]", "Sets the values of keys, all at one instant.", PlanMset,
     FinishMset},
    {"msetex", -4, kWrite | kStores | kAtomic, 0, 0, 0, "string", "8.4.0",
     "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | "
     "EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
     "Sets the values and deadline of keys, all or none, at one instant.", PlanMsetEx,
     FinishMsetEx},
    {"msetnx", -3, kWrite | kStores | kAtomic, 1, -1, 2, "string", "1.0.1",
     "key value [key value ...]", "Sets the values of keys if none of them exists.", PlanMsetNx,
     FinishMsetNx},
    {"psetex", 4, kWrite | kStores, 1, 1, 1, "string", "2.6.0", "key milliseconds value",
     "Sets the value of a key and its milliseconds to live.", PlanPsetEx, FinishSet},
    {"set", -3, kWrite | kStores, 1, 1, 1, "string", "1.0.0",
     "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] "
     "[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
     "KEEPTTL]",
     "Sets the value of a key.", PlanSet, FinishSet},
    {"setex", 4, kWrite | kStores, 1, 1, 1, "string", "2.0.0", "key seconds value",
     "Sets the value of a key and its seconds to live.", PlanSetEx, FinishSet},
    {"setnx", 3, kPointStore, 1, 1, 1, "string", "1.0.0", "key value",
     "Sets the value of a key if it does not exist.", PlanSetNx, FinishWhether},
    {"strlen", 2, kPointRead, 1, 1, 1, "string", "2.2.0", "key",
     "Returns the length of a value in bytes.", PlanLength, FinishStrlen},
    {"getrange", 4, kReadOnly, 1, 1, 1, "string", "2.4.0", "key start end",
     "Returns a part of a value.", PlanGetRange, FinishGetRange},
    {"incrbyfloat", 3, kPointStore, 1, 1, 1, "string", "2.6.0", "key increment",
     "Adds to the floating-point number that a value is.", PlanIncrByFloat, FinishIncrByFloat},
    {"lcs", -3, kReadOnly | kRange | kAtomic | kKeyByKey | kWhole, 1, 2, 1, "string", "7.0.0",
     "key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]",
     "Finds the longest common subsequence of two values.", PlanLcs, FinishLcs},
    {"setrange", 4, kWrite | kStores, 1, 1, 1, "string", "2.2.0", "key offset value",
     "Overwrites a part of a value and returns its length.", PlanSetRange, FinishSetRange},
    {"substr", 4, kReadOnly, 1, 1, 1, "string", "1.0.0", "key start end",
     "Returns a part of a value: GETRANGE by its old name.", PlanGetRange, FinishGetRange},
};

}  // namespace

std::span<const Command> StringCommands() { return kStringCommands; }

}  // namespace skep::command_table
