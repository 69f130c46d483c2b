// Commands about deadlines of a hash's fields: HEXPIRE and HTTL and their kin, HPERSIST, HGETDEL,
// HGETEX and HSETEX. The functions that do their work are in types/hash_fields.h.
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/expiry_args.h"
#include "server/type_args.h"
#include "types/hash_fields.h"
#include "types/text.h"

namespace skep {
namespace commands_hash_expiry {
namespace {

using types::FieldDeadline;
using Words = std::span<const std::string_view>;

const Function* const kExpire = TypeFunctionNamed("hash-expire");
const Function* const kDeadlines = TypeFunctionNamed("hash-deadlines");
const Function* const kPersist = TypeFunctionNamed("hash-persist");
const Function* const kTake = TypeFunctionNamed("hash-take");
const Function* const kGetUntil = TypeFunctionNamed("hash-get-until");
const Function* const kSetUntil = TypeFunctionNamed("hash-set-until");

constexpr std::string_view kNoFields =
    "ERR Mandatory argument FIELDS is missing or not at the right position";
constexpr std::string_view kOtherCount =
    "ERR The `numfields` parameter must match the number of arguments";
constexpr std::string_view kNotPositiveCount = "ERR Number of fields must be a positive integer";
constexpr std::string_view kNoCount = "ERR Parameter `numFields` should be greater than 0";

// Reads FIELDS numfields field ..., which are the words from `at` on. Returns an error text or an
// empty one; `no_count` is that of a number that is none above 0.
std::string_view ParseFields(Words words, size_t at, std::string_view no_count, Words* fields) {
  if (at >= words.size() || !EqualsIgnoringCase(words[at], "fields")) return kNoFields;
  const auto count = at + 1 < words.size() ? ParseInt64(words[at + 1]) : std::nullopt;
  if (!count || *count < 1) return no_count;
  *fields = words.subspan(at + 2);
  return static_cast<uint64_t>(*count) == fields->size() ? std::string_view() : kOtherCount;
}

// The deadline that a word means. Returns an error text or an empty one.
std::string_view ParseTime(const Call& call, std::string_view word, TimeForm form, Scratch& scratch,
                           FieldDeadline* to) {
  const auto number = ParseInt64(word);
  if (number && *number < 0) return "ERR invalid expire time, must be >= 0";
  return ParseDeadline(word, form, PastTimes::kAllowed, call.now(), call.command().name, scratch,
                       to->deadline_ms);
}

Plan PlanUntil(const Call& call, Batch& batch, const Function* function,
               const FieldDeadline& deadline, Words words) {
  const std::string_view texts = types::JoinTexts(words, batch.scratch());
  batch.Apply(call.arg(1), function, WriteFieldDeadline(deadline, texts, batch.scratch()));
  return Plan::Requests();
}

// ---- HEXPIRE key time [NX | XX | GT | LT] FIELDS numfields field [field ...] ----

Plan PlanExpireAs(const Call& call, Batch& batch, TimeForm form) {
  constexpr std::pair<std::string_view, FieldDeadline::When> kWords[] = {
      {"nx", FieldDeadline::kHasNone},
      {"xx", FieldDeadline::kHasOne},
      {"gt", FieldDeadline::kLater},
      {"lt", FieldDeadline::kEarlier}};
  FieldDeadline deadline;
  Words fields;
  auto error = ParseTime(call, call.arg(2), form, batch.scratch(), &deadline);
  if (!error.empty()) return Plan::Error(error);
  for (const auto& [word, when] : kWords) {
    if (EqualsIgnoringCase(call.arg(3), word)) deadline.when = when;
  }
  error = ParseFields(call.args(), deadline.when == 0 ? 3 : 4, kNoCount, &fields);
  if (!error.empty()) return Plan::Error(error);
  return PlanUntil(call, batch, kExpire, deadline, fields);
}

template <int64_t kUnitMs, bool kFromNow>
Plan PlanHexpire(const Call& call, Batch& batch) {
  return PlanExpireAs(call, batch, {.unit_ms = kUnitMs, .from_now = kFromNow});
}

// ---- HTTL, HPERSIST, HGETDEL: key FIELDS numfields field [field ...] ----

Plan PlanOnFields(const Call& call, Batch& batch, const Function* function) {
  Words fields;
  const auto error = ParseFields(call.args(), 2, kNotPositiveCount, &fields);
  return error.empty() ? PlanOnKey(call, batch, function, fields) : Plan::Error(error);
}
Plan PlanHttl(const Call& call, Batch& batch) { return PlanOnFields(call, batch, kDeadlines); }
Plan PlanHpersist(const Call& call, Batch& batch) { return PlanOnFields(call, batch, kPersist); }
Plan PlanHgetdel(const Call& call, Batch& batch) { return PlanOnFields(call, batch, kTake); }

// Replies with what `tell` makes of the function's number for each field.
template <typename Tell>
void ReplyNumbers(const Call& call, const Outcome& out, Tell tell) {
  if (call.Refused(out)) return;
  const size_t count = out.value.size() / sizeof(int64_t);
  RespWriter reply = call.reply();
  reply.Array(count);
  for (size_t i = 0; i < count; ++i) {
    int64_t number = 0;
    std::memcpy(&number, out.value.data() + i * sizeof(number), sizeof(number));
    reply.Integer(tell(number));
  }
}
void FinishCodes(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyNumbers(call, batch.outcome(slot), [](int64_t code) { return code; });
}

// Seconds are rounded up, as in Redis.
template <int64_t kUnitMs, bool kFromNow>
void FinishHttl(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyNumbers(call, batch.outcome(slot), [&](int64_t number) {
    if (number < 0) return number;
    const auto deadline_ms = static_cast<uint64_t>(number);
    const uint64_t ms = kFromNow ? deadline_ms - std::min(deadline_ms, call.time_ms())
                                 : call.now().ToWall(deadline_ms);
    return (static_cast<int64_t>(ms) + kUnitMs - 1) / kUnitMs;
  });
}

// ---- HGETEX and HSETEX ----

std::optional<TimeForm> FormNamed(std::string_view word) {
  constexpr std::pair<std::string_view, TimeForm> kForms[] = {
      {"ex", kSeconds}, {"px", kMilliseconds}, {"exat", kUnixSeconds}, {"pxat", kUnixMilliseconds}};
  for (const auto& [name, form] : kForms) {
    if (EqualsIgnoringCase(word, name)) return form;
  }
  return std::nullopt;
}

// HGETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST] FIELDS numfields field [field ...]
Plan PlanHgetex(const Call& call, Batch& batch) {
  static const Function* const get = TypeFunctionNamed("hash-get");
  FieldDeadline deadline;
  Words fields;
  size_t at = 2;
  const bool persists = EqualsIgnoringCase(call.arg(2), "persist");
  const auto form = FormNamed(call.arg(2));
  if (form) {
    const auto error = ParseTime(call, call.arg(3), *form, batch.scratch(), &deadline);
    if (!error.empty()) return Plan::Error(error);
  }
  at += form ? 2 : persists ? 1 : 0;
  const auto error = ParseFields(call.args(), at, kNotPositiveCount, &fields);
  if (!error.empty()) return Plan::Error(error);
  if (!form && !persists) return PlanOnKey(call, batch, get, fields);
  return PlanUntil(call, batch, kGetUntil, deadline, fields);
}

void FinishHgetdel(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyMaybeTexts(call, batch.outcome(slot), call.args().size() - 4);
}
// The words in front of the fields are as many as the option has, and four.
void FinishHgetex(const Call& call, const Batch& batch, uint32_t slot) {
  const size_t option = FormNamed(call.arg(2))                      ? 2
                        : EqualsIgnoringCase(call.arg(2), "fields") ? 0
                                                                    : 1;
  ReplyMaybeTexts(call, batch.outcome(slot), call.args().size() - 4 - option);
}

struct SetUntilArgs {
  FieldDeadline deadline;
  bool has_lifetime = false;
  bool has_wrong_count = false;
  Words pairs;
};

// Reads the words of HSETEX behind its key. Returns an error text or an empty one.
std::string_view ParseHsetex(const Call& call, Scratch& scratch, SetUntilArgs* to) {
  constexpr std::string_view kOneLifetime =
      "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
  const Words words = call.args();
  for (size_t i = 2; i < words.size(); ++i) {
    const auto form = FormNamed(words[i]);
    const bool keeps = EqualsIgnoringCase(words[i], "keepttl");
    const bool needs_none = EqualsIgnoringCase(words[i], "fnx");
    if (EqualsIgnoringCase(words[i], "fields")) {
      const auto count = i + 3 < words.size() ? ParseInt64(words[i + 1]) : 0;
      to->has_wrong_count = i + 3 >= words.size();
      if (to->has_wrong_count) return {};
      if (!count || *count < 1 || *count > INT32_MAX) return "ERR invalid number of fields";
      to->pairs = words.subspan(i + 2);
      to->has_wrong_count = to->pairs.size() != 2 * static_cast<size_t>(*count);
      return {};
    }
    if (form || keeps) {
      if (std::exchange(to->has_lifetime, true)) return kOneLifetime;
      if (keeps) {
        to->deadline.when |= FieldDeadline::kKeeps;
        continue;
      }
      if (++i == words.size()) return "ERR missing expire time";
      const auto error = ParseTime(call, words[i], *form, scratch, &to->deadline);
      if (!error.empty()) return error;
    } else if (needs_none || EqualsIgnoringCase(words[i], "fxx")) {
      constexpr uint8_t kConditions = FieldDeadline::kNoneThere | FieldDeadline::kAllThere;
      if ((to->deadline.when & kConditions) != 0) {
        return "ERR Only one of FXX or FNX arguments can be specified";
      }
      to->deadline.when |= needs_none ? FieldDeadline::kNoneThere : FieldDeadline::kAllThere;
    } else {
      constexpr size_t kShownMax = 128;  // bytes of a word that an error quotes
      return scratch.Concat("ERR unknown argument: ", words[i].substr(0, kShownMax));
    }
  }
  to->has_wrong_count = true;  // there is no FIELDS
  return {};
}

// HSETEX key [FNX | FXX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL] FIELDS numfields field value
// [field value ...]
Plan PlanHsetex(const Call& call, Batch& batch) {
  SetUntilArgs args;
  const auto error = ParseHsetex(call, batch.scratch(), &args);
  if (!error.empty()) return Plan::Error(error);
  if (args.has_wrong_count) return WrongCount(call, batch);
  return PlanUntil(call, batch, kSetUntil, args.deadline, args.pairs);
}

using enum Command::Flag;
constexpr uint32_t kReads = kReadOnly | kFast;
constexpr uint32_t kStoresFast = kWrite | kStores | kFast;

constexpr std::string_view kFieldWords = "key FIELDS numfields field [field ...]";

constexpr Command kCommands[] = {
    {"hexpire", -6, kStoresFast, 1, 1, 1, "hash", "7.4.0",
     "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
     "Gives fields of a hash a time to live in seconds.", PlanHexpire<1000, true>, FinishCodes},
    {"hexpireat", -6, kStoresFast, 1, 1, 1, "hash", "7.4.0",
     "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
     "Gives fields of a hash a deadline in Unix seconds.", PlanHexpire<1000, false>, FinishCodes},
    {"hexpiretime", -5, kReads, 1, 1, 1, "hash", "7.4.0", kFieldWords,
     "Returns the deadlines of fields of a hash in Unix seconds.", PlanHttl,
     FinishHttl<1000, false>},
    {"hgetdel", -5, kWrite | kFast, 1, 1, 1, "hash", "8.0.0", kFieldWords,
     "Returns the values of fields of a hash, and deletes them.", PlanHgetdel, FinishHgetdel},
    {"hgetex", -5, kStoresFast, 1, 1, 1, "hash", "8.0.0",
     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
     "PERSIST] FIELDS numfields field [field ...]",
     "Returns the values of fields of a hash, and sets or removes their deadlines.", PlanHgetex,
     FinishHgetex},
    {"hpersist", -5, kStoresFast, 1, 1, 1, "hash", "7.4.0", kFieldWords,
     "Removes the deadlines of fields of a hash.", PlanHpersist, FinishCodes},
    {"hpexpire", -6, kStoresFast, 1, 1, 1, "hash", "7.4.0",
     "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
     "Gives fields of a hash a time to live in milliseconds.", PlanHexpire<1, true>, FinishCodes},
    {"hpexpireat", -6, kStoresFast, 1, 1, 1, "hash", "7.4.0",
     "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
     "Gives fields of a hash a deadline in Unix milliseconds.", PlanHexpire<1, false>, FinishCodes},
    {"hpexpiretime", -5, kReads, 1, 1, 1, "hash", "7.4.0", kFieldWords,
     "Returns the deadlines of fields of a hash in Unix milliseconds.", PlanHttl,
     FinishHttl<1, false>},
    {"hpttl", -5, kReads, 1, 1, 1, "hash", "7.4.0", kFieldWords,
     "Returns how many milliseconds fields of a hash have left.", PlanHttl, FinishHttl<1, true>},
    {"hsetex", -6, kStoresFast, 1, 1, 1, "hash", "8.0.0",
     "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
     "unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
     "Sets fields of a hash, and their deadlines.", PlanHsetex, commands::FinishInteger},
    {"httl", -5, kReads, 1, 1, 1, "hash", "7.4.0", kFieldWords,
     "Returns how many seconds fields of a hash have left.", PlanHttl, FinishHttl<1000, true>},
};

}  // namespace
}  // namespace commands_hash_expiry

std::span<const Command> HashExpiryCommands() { return commands_hash_expiry::kCommands; }

}  // namespace skep
