// Commands that pop from the first of several keys, and wait for one that has an element
// (key_waiters.h): BLPOP and its kin, LMPOP, ZMPOP.
#include <cmath>
#include <string>

#include "base/decimal.h"
#include "base/float_text.h"
#include "engine/request_chain.h"
#include "server/command_tables.h"
#include "server/type_args.h"
#include "server/zset_replies.h"
#include "types/sorted_set.h"
#include "types/text.h"
#include "types/value_type.h"

namespace skep {
namespace commands_blocking {
namespace {

const Function* const kPopLeft = TypeFunctionNamed("list-pop-left");
const Function* const kPopRight = TypeFunctionNamed("list-pop-right");
const Function* const kPopLowest = TypeFunctionNamed("zset-pop-lowest");
const Function* const kPopHighest = TypeFunctionNamed("zset-pop-highest");

// The keys that one command can wait for: the table of waiters has a place for each.
constexpr size_t kKeysMax = 16 * 1024;

// How the words of a command are ordered.
//   kEach      key [key ...] timeout
//   kCounted   [timeout] numkeys key [key ...] end [COUNT count]
//   kMove      source destination end end timeout
//   kTransfer  source destination timeout
enum class Form : uint8_t { kEach, kCounted, kMove, kTransfer };

struct Shape {
  Form form;
  uint8_t kind;
  bool waits = true;
  bool from_back = false;  // kEach
};

constexpr bool IsMove(const Shape& shape) {
  return shape.form == Form::kMove || shape.form == Form::kTransfer;
}

// The words of a command, understood.
struct PopArgs {
  std::span<const std::string_view> keys;
  int64_t count = 1;
  bool from_back = false;
  bool to_left = true;
  std::string_view destination;  // of a move
  uint64_t timeout_ms = 0;       // 0: for ever
};

// Reads the end of a list or a sorted set. Empty if it is one, else an error text.
std::string_view ParseEnd(std::string_view word, uint8_t kind, bool* from_back) {
  const bool is_list = kind == types::kList;
  *from_back = EqualsIgnoringCase(word, is_list ? "right" : "max");
  if (*from_back || EqualsIgnoringCase(word, is_list ? "left" : "min")) return {};
  return kSyntaxError;
}

std::string_view ParseTimeout(std::string_view word, uint64_t* timeout_ms) {
  constexpr long double kTooLong = 0x1p63L;
  constexpr int64_t kMsPerSecond = 1000;
  const auto seconds = ParseLongDouble(word);
  if (!seconds) return "ERR timeout is not a float or out of range";
  const long double ms = std::ceil(*seconds * kMsPerSecond);
  // As in Redis 7.0, whose number of milliseconds wraps around.
  if (ms < 0 || ms >= kTooLong) return "ERR timeout is negative";
  *timeout_ms = static_cast<uint64_t>(ms);
  return {};
}

std::string_view ParseCounted(std::span<const std::string_view> words, uint8_t kind, PopArgs& pop) {
  const auto keys = ParseInt64(words[0]);
  if (!keys || *keys < 1) return "ERR numkeys should be greater than 0";
  if (static_cast<uint64_t>(*keys) >= words.size() - 1) return kSyntaxError;
  pop.keys = words.subspan(1, static_cast<size_t>(*keys));
  const auto rest = words.subspan(1 + pop.keys.size());
  if (const auto error = ParseEnd(rest[0], kind, &pop.from_back); !error.empty()) return error;
  if (rest.size() == 1) return {};
  if (!EqualsIgnoringCase(rest[1], "count") || rest.size() == 2) return kSyntaxError;
  const auto count = ParseInt64(rest[2]);
  if (!count || *count < 1) return "ERR count should be greater than 0";
  pop.count = *count;
  return rest.size() == 3 ? std::string_view() : kSyntaxError;
}

std::string_view ParseMove(std::span<const std::string_view> args, PopArgs& pop) {
  bool to_back = false;
  if (const auto error = ParseEnd(args[3], types::kList, &pop.from_back); !error.empty()) {
    return error;
  }
  if (const auto error = ParseEnd(args[4], types::kList, &to_back); !error.empty()) return error;
  pop.to_left = !to_back;
  return {};
}

// Returns an error text if the words are wrong, else an empty one.
std::string_view Parse(std::span<const std::string_view> args, const Shape& shape, PopArgs& pop) {
  std::string_view error;
  std::string_view timeout = args.back();
  pop.from_back = shape.from_back || shape.form == Form::kTransfer;
  switch (shape.form) {
    case Form::kEach:
      pop.keys = args.subspan(1, args.size() - 2);
      break;
    case Form::kCounted:
      timeout = args[1];
      error = ParseCounted(args.subspan(shape.waits ? 2 : 1), shape.kind, pop);
      break;
    case Form::kMove:
      error = ParseMove(args, pop);
      [[fallthrough]];
    case Form::kTransfer:
      pop.keys = args.subspan(1, 1);
      pop.destination = args[2];
      break;
  }
  if (!error.empty() || !shape.waits) return error;
  return ParseTimeout(timeout, &pop.timeout_ms);
}

// Adds what pops from the first of the keys that has an element.
void AddPops(const Shape& shape, const PopArgs& pop, std::span<const std::string_view> keys,
             Batch& batch) {
  const bool is_list = shape.kind == types::kList;
  const Function* const first = is_list ? kPopLeft : kPopLowest;
  const Function* const last = is_list ? kPopRight : kPopHighest;
  const Function* const function = pop.from_back ? last : first;
  const std::string count = std::to_string(pop.count);
  const std::string_view word = count;
  const std::string_view operand = types::JoinTexts({&word, 1}, batch.scratch());
  uint32_t slot = batch.Apply(keys[0], function, operand);
  for (const std::string_view key : keys.subspan(1)) {
    slot = batch.Add(ChainedAfter(slot, key, function, operand));
  }
}

template <Shape kShape>
void AddTo(std::span<const std::string_view> args, std::span<const std::string_view> keys,
           Batch& batch) {
  PopArgs pop;
  Parse(args, kShape, pop);
  if (!IsMove(kShape)) return AddPops(kShape, pop, keys, batch);
  AddTransfer(batch, keys[0], pop.destination, !pop.from_back, pop.to_left);
}

template <Shape kShape>
Plan PlanPop(const Call& call, Batch& batch) {
  PopArgs pop;
  if (const auto error = Parse(call.args(), kShape, pop); !error.empty()) {
    return Plan::Error(error);
  }
  if (kShape.waits && batch.kind() == Batch::Kind::kUnordered) return Plan::Alone();
  AddTo<kShape>(call.args(), pop.keys, batch);
  return Plan::Requests();
}

void ReplyNothing(const Call& call, const Shape& shape) {
  IsMove(shape) ? call.reply().Null() : call.reply().NullArray();
}

// Replies with the key and what was popped from it.
void ReplyPopped(const Call& call, const Shape& shape, std::string_view key, const Outcome& out) {
  const bool is_list = shape.kind == types::kList;
  const auto texts = is_list ? TextsOf(out) : std::vector<std::string_view>();
  const auto entries = is_list ? std::vector<types::Entry>() : EntriesOf(out);
  const bool nests = shape.form == Form::kCounted;
  RespWriter reply = call.reply();
  reply.Array(nests || is_list ? 2 : 3);
  reply.Bulk(key);
  if (nests) reply.Array(is_list ? texts.size() : entries.size());
  for (const std::string_view text : texts) reply.Bulk(text);
  for (const types::Entry& entry : entries) {
    if (nests) reply.Array(2);
    reply.Bulk(entry.member);
    ReplyScore(reply, entry.score);
  }
}

// The slots from `slot` on are those that AddTo has added for the keys.
void FinishKeys(const Call& call, const Shape& shape, std::span<const std::string_view> keys,
                const Batch& batch, uint32_t slot) {
  if (IsMove(shape)) {
    const bool rotates = call.arg(1) == call.arg(2);
    if (!call.Refused(batch, slot, rotates ? 1 : 2)) FinishText(call, batch, slot);
    return;
  }
  if (call.Refused(batch, slot, keys.size())) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Outcome& out = batch.outcome(slot + static_cast<uint32_t>(i));
    if (!out.value.empty()) return ReplyPopped(call, shape, keys[i], out);
  }
  ReplyNothing(call, shape);
}

template <Shape kShape>
void FinishPop(const Call& call, const Batch& batch, uint32_t slot) {
  PopArgs pop;
  Parse(call.args(), kShape, pop);
  FinishKeys(call, kShape, pop.keys, batch, slot);
}

// The reply of a waiter that has ended.
template <Shape kShape>
void FinishWaiter(const ServerCall& call, const KeyWaiter& waiter) {
  switch (waiter.state) {
    case KeyWaiter::State::kPopped:
      call.Await(waiter.engine, waiter.ticket);
      return FinishKeys(call, kShape, waiter.popped_keys, *waiter.popped, 0);
    case KeyWaiter::State::kOtherType:
      return call.Error(kWrongType);
    case KeyWaiter::State::kUnblocked:
      return call.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    default:
      return call.reply().NullArray();
  }
}

template <Shape kShape>
void RunPop(const ServerCall& call) {
  PopArgs pop;
  Parse(call.args(), kShape, pop);
  if (pop.keys.size() > kKeysMax) {
    return call.Error("ERR a command can wait for 16384 keys at most");
  }
  auto waiter = std::make_shared<KeyWaiter>(call.engine(), call.command(), call.args(), pop.keys);
  waiter->kind = kShape.kind;
  waiter->add_pop = AddTo<kShape>;
  waiter->finish = FinishWaiter<kShape>;
  if (pop.timeout_ms != 0) {
    // Later than the clock goes is never.
    const uint64_t longest_ms = UINT64_MAX - call.monotonic_ms();
    waiter->deadline_ms = call.monotonic_ms() + std::min(pop.timeout_ms, longest_ms);
  }
  if (call.Wait(waiter)) waiter->finish(call, *waiter);
}

using enum Command::Flag;
constexpr uint32_t kPops = kWrite | kBlocks;
constexpr Shape kBlpop = {Form::kEach, types::kList};
constexpr Shape kBrpop = {Form::kEach, types::kList, true, true};
constexpr Shape kBzpopmin = {Form::kEach, types::kSortedSet};
constexpr Shape kBzpopmax = {Form::kEach, types::kSortedSet, true, true};
constexpr Shape kBlmpop = {Form::kCounted, types::kList};
constexpr Shape kBzmpop = {Form::kCounted, types::kSortedSet};
constexpr Shape kLmpop = {Form::kCounted, types::kList, false};
constexpr Shape kZmpop = {Form::kCounted, types::kSortedSet, false};
constexpr Shape kBlmove = {Form::kMove, types::kList};
constexpr Shape kBrpoplpush = {Form::kTransfer, types::kList};

constexpr Command kCommands[] = {
    {"blmove", 6, kPops | kStores, 1, 2, 1, "list", "6.2.0",
     "source destination LEFT | RIGHT LEFT | RIGHT timeout",
     "Moves an element from one list to another; waits for one.", PlanPop<kBlmove>,
     FinishPop<kBlmove>, RunPop<kBlmove>},
    {"blmpop", -5, kPops, 0, 0, 0, "list", "7.0.0",
     "timeout numkeys key [key ...] LEFT | RIGHT [COUNT count]",
     "Takes elements off the first list that has some; waits for one.", PlanPop<kBlmpop>,
     FinishPop<kBlmpop>, RunPop<kBlmpop>},
    {"blpop", -3, kPops, 1, -2, 1, "list", "2.0.0", "key [key ...] timeout",
     "Takes an element off the front of the first list that has one; waits for one.",
     PlanPop<kBlpop>, FinishPop<kBlpop>, RunPop<kBlpop>},
    {"brpop", -3, kPops, 1, -2, 1, "list", "2.0.0", "key [key ...] timeout",
     "Takes an element off the end of the first list that has one; waits for one.", PlanPop<kBrpop>,
     FinishPop<kBrpop>, RunPop<kBrpop>},
    {"brpoplpush", 4, kPops | kStores, 1, 2, 1, "list", "2.2.0", "source destination timeout",
     "Moves the last element of a list to the front of another; waits for one.",
     PlanPop<kBrpoplpush>, FinishPop<kBrpoplpush>, RunPop<kBrpoplpush>},
    {"bzmpop", -5, kPops, 0, 0, 0, "sorted-set", "7.0.0",
     "timeout numkeys key [key ...] MIN | MAX [COUNT count]",
     "Takes members out of the first sorted set that has some; waits for one.", PlanPop<kBzmpop>,
     FinishPop<kBzmpop>, RunPop<kBzmpop>},
    {"bzpopmax", -3, kPops | kFast, 1, -2, 1, "sorted-set", "5.0.0", "key [key ...] timeout",
     "Takes the member with the highest score out of the first sorted set that has one; waits for "
     "one.",
     PlanPop<kBzpopmax>, FinishPop<kBzpopmax>, RunPop<kBzpopmax>},
    {"bzpopmin", -3, kPops | kFast, 1, -2, 1, "sorted-set", "5.0.0", "key [key ...] timeout",
     "Takes the member with the lowest score out of the first sorted set that has one; waits for "
     "one.",
     PlanPop<kBzpopmin>, FinishPop<kBzpopmin>, RunPop<kBzpopmin>},
    {"lmpop", -4, kWrite | kAtomic, 0, 0, 0, "list", "7.0.0",
     "numkeys key [key ...] LEFT | RIGHT [COUNT count]",
     "Takes elements off the first list that has some.", PlanPop<kLmpop>, FinishPop<kLmpop>},
    {"zmpop", -4, kWrite | kAtomic, 0, 0, 0, "sorted-set", "7.0.0",
     "numkeys key [key ...] MIN | MAX [COUNT count]",
     "Takes members out of the first sorted set that has some.", PlanPop<kZmpop>,
     FinishPop<kZmpop>},
};

}  // namespace
}  // namespace commands_blocking

std::span<const Command> BlockingCommands() { return commands_blocking::kCommands; }

}  // namespace skep
