// Commands about the bits of values.
#include "server/command_table.h"
#include "server/commands.h"

namespace skep::command_table {
namespace {

using namespace commands;
using enum Command::Flag;

constexpr Command kBitCommands[] = {
    {"bitcount", -2, kReadOnly | kWhole, 1, 1, 1, "bitmap", "2.6.0", "key [start end [BYTE | BIT]]",
     "Counts the bits of a value, or of a part of it, that are 1.", PlanBitCount, FinishBitCount},
    {"bitfield", -2, kWrite | kStores, 1, 1, 1, "bitmap", "3.2.0",
     "key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value | INCRBY type "
     "offset increment] ...",
     "Reads and changes numbers of any width in a value.", PlanBitField, FinishBitField},
    {"bitfield_ro", -2, kPointRead, 1, 1, 1, "bitmap", "6.0.0", "key [GET type offset ...]",
     "Reads numbers of any width in a value.", PlanBitFieldRo, FinishBitField},
    {"bitop", -4, kWrite | kStores | kRange | kReadsFirst | kWhole, 2, -1, 1, "bitmap", "2.6.0",
     "AND | OR | XOR | NOT destkey key [key ...]",
     "Combines values bit by bit, and stores the result.", nullptr, nullptr, RunBitOp},
    {"bitpos", -3, kReadOnly | kWhole, 1, 1, 1, "bitmap", "2.8.7",
     "key bit [start [end [BYTE | BIT]]]",
     "Finds the first bit that is 1, or 0, in a value or in a part of it.", PlanBitPos,
     FinishBitPos},
    {"getbit", 3, kPointRead, 1, 1, 1, "bitmap", "2.2.0", "key offset", "Returns a bit of a value.",
     PlanGetBit, FinishGetBit},
    {"setbit", 4, kWrite | kStores, 1, 1, 1, "bitmap", "2.2.0", "key offset value",
     "Sets a bit of a value and returns the one before.", PlanSetBit, FinishInteger},
};

}  // namespace

std::span<const Command> BitCommands() { return kBitCommands; }

}  // namespace skep::command_table
