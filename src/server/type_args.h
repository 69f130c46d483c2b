// type_args.h: what the commands of collections have in common: their requests, and replies made of
// the bytes that functions return (types/function_table.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "server/command.h"
#include "server/server_call.h"

namespace skep {

// The function of that name, which there must be.
const Function* TypeFunctionNamed(std::string_view name);

// Adds a request of the function on the command's key, args()[1]; its operand has the words.
Plan PlanOnKey(const Call& call, Batch& batch, const Function* function,
               std::span<const std::string_view> words);

// Replies with the error of a command with a wrong count of words.
Plan WrongCount(const Call& call, Batch& batch);

// The bytes in one value with which a collection may be stored in the session's keyspace by an
// atomic batch, which makes it a large one if it has to be.
size_t CollectionBytesMax(const ServerCall& call);
// The error of a collection that would be stored with so many bytes; kOk if it may.
Status CollectionSizeError(const ServerCall& call, size_t bytes);

// Redis's texts for numbers of the wrong size.
inline constexpr std::string_view kNotPositive = "ERR value is out of range, must be positive";
inline constexpr std::string_view kOutOfLongRange =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";

// Adds a request of the function whose operand is what the earlier slot returns; its slot.
uint32_t AddChained(Batch& batch, std::string_view key, const Function* function, uint32_t of_slot,
                    uint8_t flags = 0);

// Adds what takes an element from the source's list and puts it into the destination's: one slot,
// which returns the element, and another one if the keys differ.
void AddTransfer(Batch& batch, std::string_view source, std::string_view destination,
                 bool from_left, bool to_left);

// The count of a command that draws members, HRANDFIELD and its kin: args()[2] if it is there, with
// the option `with` behind it.
struct DrawArgs {
  std::optional<int64_t> count;
  bool with_more = false;  // the option was given
};
// Returns an error text if they are wrong, else an empty one. `with` may be empty: no option.
std::string_view ParseDraw(std::span<const std::string_view> args, std::string_view with,
                           DrawArgs& draw);
// Adds a request of a function that draws members (types/collection.h).
Plan PlanDraw(const ServerCall& call, Batch& batch, const Function* function, int64_t count);

// Reply with the strings that a function has returned: one, or null; all of them, as an array, a
// set or a map. Each replies with the error if the request was refused.
void FinishText(const Call& call, const Batch& batch, uint32_t slot);
void FinishTextArray(const Call& call, const Batch& batch, uint32_t slot);
void FinishTextSet(const Call& call, const Batch& batch, uint32_t slot);

// Replies with an array of so many strings, and of nils where the function has returned none.
void ReplyMaybeTexts(const Call& call, const Outcome& out, size_t texts);

// The strings that a function has returned.
std::vector<std::string_view> TextsOf(const Outcome& out);

}  // namespace skep
