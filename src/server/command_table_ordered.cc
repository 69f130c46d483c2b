// Skep's own commands: conditional ones, those of the ordered keyspace, functions at the data.
#include "server/command_table.h"
#include "server/commands.h"

namespace skep::command_table {
namespace {

using namespace commands;
using enum Command::Flag;

constexpr Command kOrderedCommands[] = {
    {"fn",
     -2,
     kLocal,
     0,
     0,
     0,
     "function",
     kSkep,
     "LIST",
     "Describes the functions that run at the data.",
     nullptr,
     FinishFn,
     nullptr,
     {},
     FnSubcommands},
    {"kbatch", -4, kWrite | kStores | kRange | kAtomic, 0, 0, 0, "conditional", kSkep,
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
    {"kfirst", -1, kPointRead | kRange, 0, 0, 0, "ordered", kSkep, "[WITHVALUE]",
     "Returns the smallest key.", PlanKfirst, FinishNeighbour},
    {"kfloor", -2, kPointRead | kRange, 1, 1, 1, "ordered", kSkep, "key [WITHVALUE]",
     "Returns the largest key not above the given one.", PlanKfloor, FinishNeighbour},
    {"klast", -1, kPointRead | kRange, 0, 0, 0, "ordered", kSkep, "[WITHVALUE]",
     "Returns the largest key.", PlanKlast, FinishNeighbour},
    {"krange",
     -3,
     kReadOnly | kRange,
     0,
     0,
     0,
     "ordered",
     kSkep,
     "min max | PREFIX prefix [REV] [LIMIT offset count] [TYPE type] [WITHVALUES]",
     "Returns the keys of a range, in order, at one instant.",
     {PlanKrange, PlanServerKrange},
     FinishKrange,
     RunKrange},
    {"kreduce", -5, kReadOnly | kRange, 0, 0, 0, "ordered", kSkep,
     "min max | PREFIX prefix function type [init]",
     "Folds the elements of all values of a range, at one instant.", nullptr, nullptr, RunKreduce,
     "it reads at a version of its own"},
    {"kscan", -3, kReadOnly | kRange, 0, 0, 0, "ordered", kSkep,
     "min max | PREFIX prefix | NEXT token [REV] [COUNT count] [WITHVALUES] [WITHDEADLINES]",
     "Returns a range chunk by chunk, all of one version.", nullptr, nullptr, RunKscan,
     "it reads at a version of its own"},
    {"vfilter", 5, kPointRead, 1, 1, 1, "function", kSkep, "key predicate type operand",
     "Returns the elements of a value that the predicate holds for.", PlanVfilter, FinishVfilter},
    {"vreduce", -4, kPointRead, 1, 1, 1, "function", kSkep, "key function type [init]",
     "Folds the elements of a value.", PlanVreduce, FinishVreduce},
    {"vupdate", -4, kPointStore, 1, 1, 1, "function", kSkep,
     "key function type [operand ... | VECTOR bytes] [RETURN OLD | NEW | NONE] [CREATE n]",
     "Applies a function to each element of a value.", PlanVupdate, FinishVupdate},
};

}  // namespace

std::span<const Command> OrderedCommands() { return kOrderedCommands; }

}  // namespace skep::command_table
