// function.h: functions that run at the data (KV-Direct, section 3.2).
//
// A function sees one value and an operand and says what becomes of the value. The engine runs it
// between reading and writing the value, so the whole is one atomic operation and one slot of a
// batch, without a round trip and without a compare-and-set loop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "skep/scratch.h"
#include "skep/status.h"

namespace skep {

struct FunctionInput {
  std::optional<std::string_view> value;  // the value now; nullopt if the key is absent
  std::string_view operand;               // what the request carried
  Scratch* scratch;                       // where to build results; lives as long as the batch
};

struct FunctionEffect {
  enum class Action : uint8_t { kKeep, kReplace, kErase };

  Action action = Action::kKeep;
  std::string_view value = {};     // kReplace: the new value; operand, input value or scratch bytes
  std::string_view returned = {};  // bytes for the caller, as above
  int64_t integer = 0;             // a number for the caller
  Status status = {};              // an error: the value is kept, `what` reaches the caller
};

// Must be deterministic (a log may replay it), must not block, must not keep what it is given.
// Any thread may run it at any time.
using FunctionBody = FunctionEffect (*)(const FunctionInput& input);

struct Function {
  std::string name;
  FunctionBody body;
};

// Registers `body` under `name`. Do it at start-up, before any store is open; a registered function
// lives as long as the process. Thread-safe.
//   kInvalidArgument  the name is empty, longer than 64 bytes, or taken
Result<const Function*> RegisterFunction(std::string_view name, FunctionBody body);

// The function of that name; null if there is none. Thread-safe; takes a lock, so look up once.
const Function* FindFunction(std::string_view name);

// Built in.
namespace functions {
// Adds the decimal signed 64-bit operand to a decimal value (absent counts as 0), as Redis's
// INCRBY: `integer` is the new number. Errors (kInvalidArgument): the value is no such number, or
// overflow.
extern const Function* const kAddDecimal;
// Appends the operand: `integer` is the new length in bytes.
extern const Function* const kAppend;
}  // namespace functions

}  // namespace skep
