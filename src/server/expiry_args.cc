#include "server/expiry_args.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/decimal.h"

namespace skep {
namespace {

struct Word {
  std::string_view name;
  ExpiryOption::Kind kind;
  TimeForm form = {};
};

constexpr Word kWords[] = {
    {"ex", ExpiryOption::kTime, kSeconds},
    {"px", ExpiryOption::kTime, kMilliseconds},
    {"exat", ExpiryOption::kTime, kUnixSeconds},
    {"pxat", ExpiryOption::kTime, kUnixMilliseconds},
    {"keepttl", ExpiryOption::kKeep},
    {"persist", ExpiryOption::kPersist},
};

const Word* FindWord(std::string_view name) {
  const auto at = std::ranges::find_if(
      kWords, [&](const Word& word) { return EqualsIgnoringCase(word.name, name); });
  return at == std::end(kWords) ? nullptr : at;
}

// Nullopt if the deadline does not fit; one before 1970 is negative.
std::optional<int64_t> DeadlineOf(int64_t number, TimeForm form, const StoreNow& now) {
  int64_t deadline = 0;
  const int64_t from = form.from_now ? static_cast<int64_t>(now.ms) : 0;
  if (__builtin_mul_overflow(number, form.unit_ms, &deadline)) return std::nullopt;
  if (__builtin_add_overflow(deadline, from, &deadline)) return std::nullopt;
  if (deadline > static_cast<int64_t>(kDeadlineMax)) return std::nullopt;
  return deadline;
}

}  // namespace

std::string_view ParseDeadline(std::string_view number, TimeForm form, PastTimes past,
                               const StoreNow& now, std::string_view command, Scratch& scratch,
                               uint64_t& deadline_ms) {
  const auto parsed = ParseInt64(number);
  if (!parsed) return "ERR value is not an integer or out of range";
  const auto deadline = DeadlineOf(*parsed, form, now);
  if (!deadline || (past == PastTimes::kInvalid && *parsed <= 0)) {
    return scratch.Concat(scratch.Concat("ERR invalid expire time in '", command), "' command");
  }
  deadline_ms = static_cast<uint64_t>(std::max<int64_t>(*deadline, 1));
  if (!form.from_now) deadline_ms = now.FromWall(deadline_ms);
  return {};
}

bool ExpiryOption::Read(std::span<const std::string_view> args, size_t& i, unsigned allowed) {
  const Word* const word = FindWord(args[i]);
  if (word == nullptr || (allowed & word->kind) == 0) return false;
  if (kind_ != kNone && (kind_ != word->kind || form_ != word->form)) return false;
  if (word->kind == kTime) {
    if (i + 1 == args.size()) return false;
    number_ = args[++i];
  }
  kind_ = word->kind;
  form_ = word->form;
  ++i;
  return true;
}

std::string_view ExpiryOption::Resolve(const StoreNow& now, std::string_view command,
                                       Scratch& scratch, uint64_t& deadline_ms) const {
  deadline_ms = kind_ == kKeep ? kKeepDeadline : 0;
  if (kind_ != kTime) return {};
  return ParseDeadline(number_, form_, PastTimes::kInvalid, now, command, scratch, deadline_ms);
}

}  // namespace skep
