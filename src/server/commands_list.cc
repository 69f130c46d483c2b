// Commands about lists. The functions that do their work are in types/list.h.
#include <climits>
#include <optional>

#include "base/decimal.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/portions.h"
#include "server/type_args.h"
#include "types/text.h"

namespace skep {
namespace commands_list {
namespace {

const Function* const kPushLeft = TypeFunctionNamed("list-push-left");
const Function* const kPushRight = TypeFunctionNamed("list-push-right");
const Function* const kPushxLeft = TypeFunctionNamed("list-pushx-left");
const Function* const kPushxRight = TypeFunctionNamed("list-pushx-right");
const Function* const kPopLeft = TypeFunctionNamed("list-pop-left");
const Function* const kPopRight = TypeFunctionNamed("list-pop-right");
const Function* const kRotate = TypeFunctionNamed("list-rotate");
const Function* const kLength = TypeFunctionNamed("list-length");
const Function* const kElements = TypeFunctionNamed("list-range");
const Function* const kIndex = TypeFunctionNamed("list-index");
const Function* const kSet = TypeFunctionNamed("list-set");
const Function* const kInsert = TypeFunctionNamed("list-insert");
const Function* const kRemove = TypeFunctionNamed("list-remove");
const Function* const kTrim = TypeFunctionNamed("list-trim");
const Function* const kFind = TypeFunctionNamed("list-find");

// The words behind the key are the function's operand.
template <const Function* const* kFunction>
Plan PlanRest(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, *kFunction, call.args().subspan(2));
}

// Likewise, if the word at `kFirst` and `kMore` behind it are integers.
template <const Function* const* kFunction, size_t kFirst, size_t kMore>
Plan PlanNumbers(const Call& call, Batch& batch) {
  for (size_t i = kFirst; i <= kFirst + kMore; ++i) {
    if (!ParseInt64(call.arg(i))) return Plan::Error(kNotAnInteger);
  }
  return PlanRest<kFunction>(call, batch);
}

template <const Function* const* kFunction>
Plan PlanPop(const Call& call, Batch& batch) {
  static constexpr std::string_view kOne[] = {"1"};
  if (call.args().size() > 3) return WrongCount(call, batch);
  if (call.args().size() == 2) return PlanOnKey(call, batch, *kFunction, kOne);
  const auto count = ParseInt64(call.arg(2));
  if (!count || *count < 0) return Plan::Error(kNotPositive);
  return PlanRest<kFunction>(call, batch);
}

Plan PlanLinsert(const Call& call, Batch& batch) {
  const bool before = EqualsIgnoringCase(call.arg(2), "before");
  if (!before && !EqualsIgnoringCase(call.arg(2), "after")) return Plan::Error(kSyntaxError);
  const std::string_view words[] = {before ? "before" : "after", call.arg(3), call.arg(4)};
  return PlanOnKey(call, batch, kInsert, words);
}

struct FindArgs {
  std::string_view rank = "1";
  std::optional<std::string_view> count;
  std::string_view most = "0";
};

bool IsNotNegative(std::string_view word) {
  const auto number = ParseInt64(word);
  return number && *number >= 0;
}

// LPOS's options; returns an error text if they are wrong, else an empty one.
std::string_view ParseFind(std::span<const std::string_view> options, FindArgs& find) {
  for (size_t i = 0; i < options.size(); i += 2) {
    if (i + 1 == options.size()) return kSyntaxError;
    const std::string_view word = options[i + 1];
    if (EqualsIgnoringCase(options[i], "rank")) {
      const auto rank = ParseInt64(word);
      if (!rank) return kNotAnInteger;
      if (*rank == 0) {
        return "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
               "or use negative to start from the end of the list";
      }
      // As in Redis, whose negation of this number is the number itself.
      find.rank = *rank == INT64_MIN ? "-1" : word;
    } else if (EqualsIgnoringCase(options[i], "count")) {
      if (!IsNotNegative(word)) return "ERR COUNT can't be negative";
      find.count = word;
    } else if (EqualsIgnoringCase(options[i], "maxlen")) {
      if (!IsNotNegative(word)) return "ERR MAXLEN can't be negative";
      find.most = word;
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

Plan PlanLpos(const Call& call, Batch& batch) {
  FindArgs find;
  if (const auto error = ParseFind(call.args().subspan(3), find); !error.empty()) {
    return Plan::Error(error);
  }
  const std::string_view words[] = {call.arg(2), find.rank, find.count.value_or("1"), find.most};
  return PlanOnKey(call, batch, kFind, words);
}

Plan PlanTransfer(const Call& call, Batch& batch, bool from_left, bool to_left) {
  AddTransfer(batch, call.arg(1), call.arg(2), from_left, to_left);
  return Plan::Requests();
}

Plan PlanLmove(const Call& call, Batch& batch) {
  const auto is_left = [](std::string_view word) -> std::optional<bool> {
    if (EqualsIgnoringCase(word, "left")) return true;
    if (EqualsIgnoringCase(word, "right")) return false;
    return std::nullopt;
  };
  const auto from = is_left(call.arg(3));
  const auto to = is_left(call.arg(4));
  if (!from || !to) return Plan::Error(kSyntaxError);
  return PlanTransfer(call, batch, *from, *to);
}
Plan PlanRpoplpush(const Call& call, Batch& batch) {
  return PlanTransfer(call, batch, false, true);
}

void FinishTransfer(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t slots = call.arg(1) == call.arg(2) ? 1 : 2;
  if (!call.Refused(batch, slot, slots)) FinishText(call, batch, slot);
}

void FinishPop(const Call& call, const Batch& batch, uint32_t slot) {
  if (call.args().size() == 2) return FinishText(call, batch, slot);
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().NullArray();
  FinishTextArray(call, batch, slot);
}

void FinishOk(const Call& call, const Batch& batch, uint32_t slot) {
  if (!call.Refused(batch.outcome(slot))) call.reply().SimpleString("OK");
}

void FinishLpos(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  FindArgs find;
  ParseFind(call.args().subspan(3), find);
  const auto texts = TextsOf(out);
  RespWriter reply = call.reply();
  if (!find.count && texts.empty()) return reply.Null();
  if (find.count) reply.Array(texts.size());
  for (const std::string_view text : texts) reply.Integer(ParseInt64(text).value_or(0));
}

using commands::FinishInteger;
using enum Command::Flag;
constexpr uint32_t kPushes = kWrite | kStores | kFast;

constexpr Command kCommands[] = {
    {"lindex", 3, kReadOnly, 1, 1, 1, "list", "1.0.0", "key index",
     "Returns an element of a list by its index.", PlanRest<&kIndex>, FinishText},
    {"linsert", 5, kWrite | kStores, 1, 1, 1, "list", "2.2.0", "key BEFORE | AFTER pivot element",
     "Inserts an element before or after another one.", PlanLinsert, FinishInteger},
    {"llen", 2, kReadOnly | kFast, 1, 1, 1, "list", "1.0.0", "key",
     "Returns how many elements a list has.", PlanRest<&kLength>, FinishInteger},
    {"lmove", 5, kWrite | kStores | kAtomic, 1, 2, 1, "list", "6.2.0",
     "source destination LEFT | RIGHT LEFT | RIGHT", "Moves an element from one list to another.",
     PlanLmove, FinishTransfer},
    {"lpop", -2, kWrite | kFast, 1, 1, 1, "list", "1.0.0", "key [count]",
     "Takes elements off the front of a list.", PlanPop<&kPopLeft>, FinishPop},
    {"lpos", -3, kReadOnly, 1, 1, 1, "list", "6.0.6",
     "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
     "Returns the index of an element, or several.", PlanLpos, FinishLpos},
    {"lpush", -3, kPushes, 1, 1, 1, "list", "1.0.0", "key element [element ...]",
     "Puts elements before the front of a list.", PlanRest<&kPushLeft>, FinishInteger},
    {"lpushx", -3, kPushes, 1, 1, 1, "list", "2.2.0", "key element [element ...]",
     "Puts elements before the front of a list that exists.", PlanRest<&kPushxLeft>, FinishInteger},
    {"lrange",
     4,
     kReadOnly,
     1,
     1,
     1,
     "list",
     "1.0.0",
     "key start stop",
     "Returns elements of a list.",
     PlanNumbers<&kElements, 2, 1>,
     FinishTextArray,
     nullptr,
     {},
     nullptr,
     PortionsOfList},
    {"lrem", 4, kWrite, 1, 1, 1, "list", "1.0.0", "key count element",
     "Removes elements that are equal to one.", PlanNumbers<&kRemove, 2, 0>, FinishInteger},
    {"lset", 4, kWrite | kStores, 1, 1, 1, "list", "1.0.0", "key index element",
     "Replaces an element of a list.", PlanRest<&kSet>, FinishOk},
    {"ltrim", 4, kWrite, 1, 1, 1, "list", "1.0.0", "key start stop",
     "Keeps only these elements of a list.", PlanNumbers<&kTrim, 2, 1>, FinishOk},
    {"rpop", -2, kWrite | kFast, 1, 1, 1, "list", "1.0.0", "key [count]",
     "Takes elements off the end of a list.", PlanPop<&kPopRight>, FinishPop},
    {"rpoplpush", 3, kWrite | kStores | kAtomic, 1, 2, 1, "list", "1.2.0", "source destination",
     "Moves the last element of a list to the front of another.", PlanRpoplpush, FinishTransfer},
    {"rpush", -3, kPushes, 1, 1, 1, "list", "1.0.0", "key element [element ...]",
     "Puts elements behind the end of a list.", PlanRest<&kPushRight>, FinishInteger},
    {"rpushx", -3, kPushes, 1, 1, 1, "list", "2.2.0", "key element [element ...]",
     "Puts elements behind the end of a list that exists.", PlanRest<&kPushxRight>, FinishInteger},
};

}  // namespace
}  // namespace commands_list

void AddTransfer(Batch& batch, std::string_view source, std::string_view destination,
                 bool from_left, bool to_left) {
  using namespace commands_list;
  if (source == destination) {
    const std::string_view ends[] = {from_left ? "left" : "right", to_left ? "left" : "right"};
    batch.Apply(source, kRotate, types::JoinTexts(ends, batch.scratch()));
    return;
  }
  const std::string_view one = "1";
  const uint32_t popped = batch.Apply(source, from_left ? kPopLeft : kPopRight,
                                      types::JoinTexts(std::span(&one, 1), batch.scratch()));
  AddChained(batch, destination, to_left ? kPushLeft : kPushRight, popped, Request::kUnlessNone);
}

std::span<const Command> ListCommands() { return commands_list::kCommands; }

}  // namespace skep
