#include "server/batch_args.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/compare_args.h"
#include "server/expiry_args.h"
#include "server/range_args.h"

namespace skep {
namespace {

using Words = std::span<const std::string_view>;

constexpr size_t kShownMax = 64;  // bytes of a word that an error quotes

struct Context {
  StoreNow now;
  Scratch& scratch;
  Batch& out;
};

struct Operands {
  Words words;
  ExpiryOption expiry;  // of PUT
  std::string_view operator[](size_t i) const { return words[i]; }
};

// An error in the operands, without a code; empty if there is none.
using Reason = std::string_view;

std::string_view WithoutCode(std::string_view error) {
  constexpr std::string_view kCode = "ERR ";
  return error.starts_with(kCode) ? error.substr(kCode.size()) : error;
}

// ---- Conditions ----

Reason Value(const Context& c, const Operands& w) {
  c.out.RequireValue(w[0], w[1]);
  return {};
}

Reason HasDigest(const Context& c, const Operands& w) {
  const auto digest = ParseDigest(w[1]);
  if (!digest) return WithoutCode(kNotADigest);
  c.out.RequireDigest(w[0], *digest);
  return {};
}

Reason Absent(const Context& c, const Operands& w) {
  c.out.Add(
      {.op = Op::kRequireAbsent, .flags = Request::kReturnPrevious, .key = w[0], .other = {}});
  return {};
}

Reason Present(const Context& c, const Operands& w) {
  c.out.RequirePresent(w[0]);
  return {};
}

Reason Empty(const Context& c, const Operands& w) {
  const auto range = ParseRangeWords(w[0], w[1], c.scratch);
  if (!range) return range.error().what();
  c.out.RequireEmpty(*range);
  return {};
}

// ---- Operations ----

Reason Get(const Context& c, const Operands& w) {
  c.out.Get(w[0]);
  return {};
}

Reason Put(const Context& c, const Operands& w) {
  Request request{.op = Op::kPut, .key = w[0], .value = w[1], .other = {}};
  const auto error = w.expiry.Resolve(c.now, "kbatch", c.scratch, request.deadline_ms);
  c.out.Add(request);
  return WithoutCode(error);
}

Reason Delete(const Context& c, const Operands& w) {
  c.out.Delete(w[0]);
  return {};
}

Reason IncrBy(const Context& c, const Operands& w) {
  if (!ParseInt64(w[1])) return "value is not an integer or out of range";
  c.out.Apply(w[0], functions::kAddDecimal, w[1]);
  return {};
}

Reason Append(const Context& c, const Operands& w) {
  c.out.Apply(w[0], functions::kAppend, w[1]);
  return {};
}

Reason ExpireIn(const Context& c, const Operands& w, TimeForm form) {
  uint64_t deadline_ms = 0;
  const auto error =
      ParseDeadline(w[1], form, PastTimes::kAllowed, c.now, "kbatch", c.scratch, deadline_ms);
  c.out.Expire(w[0], deadline_ms);
  return WithoutCode(error);
}

Reason Expire(const Context& c, const Operands& w) { return ExpireIn(c, w, kSeconds); }
Reason PexpireMs(const Context& c, const Operands& w) { return ExpireIn(c, w, kMilliseconds); }

Reason Persist(const Context& c, const Operands& w) {
  c.out.Persist(w[0]);
  return {};
}

Reason DeleteRange(const Context& c, const Operands& w) {
  const auto range = ParseRangeWords(w[0], w[1], c.scratch);
  if (!range) return range.error().what();
  c.out.DeleteRange(*range);
  return {};
}

struct Form {
  std::string_view name;
  size_t operands;
  std::string_view takes;
  Reason (*add)(const Context& context, const Operands& operands);
  unsigned options = ExpiryOption::kNone;  // options that may follow the operands
};

constexpr Form kConditions[] = {
    {"VALUE", 2, "key value", Value},
    {"DIGEST", 2, "key digest", HasDigest},
    {"ABSENT", 1, "key", Absent},
    {"PRESENT", 1, "key", Present},
    {"EMPTY", 2, "min max, or PREFIX prefix", Empty},
};

constexpr Form kOperations[] = {
    {"GET", 1, "key", Get},
    {"PUT", 2, "key value", Put, ExpiryOption::kTime | ExpiryOption::kKeep},
    {"DELETE", 1, "key", Delete},
    {"INCRBY", 2, "key number", IncrBy},
    {"APPEND", 2, "key value", Append},
    {"EXPIRE", 2, "key seconds", Expire},
    {"PEXPIRE", 2, "key milliseconds", PexpireMs},
    {"PERSIST", 1, "key", Persist},
    {"DELRANGE", 2, "min max, or PREFIX prefix", DeleteRange},
};

class Parser {
 public:
  Parser(Words words, const Context& context) : words_(words), c_(context) {}

  std::string_view Parse() {
    while (left() > 0 && EqualsIgnoringCase(words_[at_], "if")) {
      ++at_;
      if (const auto error = One("condition", kConditions); !error.empty()) return error;
    }
    if (left() == 0) return "ERR KBATCH: DO and its operations are missing";
    if (!EqualsIgnoringCase(words_[at_], "do")) {
      return Text(fmt::format("ERR KBATCH: expected IF or DO, not '{}'", Shown()));
    }
    ++at_;
    if (left() == 0) return "ERR KBATCH: no operation after DO";
    index_ = 0;
    while (left() > 0) {
      if (const auto error = One("operation", kOperations); !error.empty()) return error;
    }
    return {};
  }

 private:
  size_t left() const { return words_.size() - at_; }
  std::string_view Shown() const { return words_[at_].substr(0, kShownMax); }
  std::string_view Text(std::string_view text) { return c_.scratch.Copy(text); }
  std::string_view Wrong(std::string_view what, std::string_view reason) {
    return Text(fmt::format("ERR KBATCH {} {}: {}", what, index_, reason));
  }

  // Reads one condition or operation, from its name on. Returns an error text, or an empty one.
  std::string_view One(std::string_view what, std::span<const Form> forms) {
    if (c_.out.size() == kKbatchMax) {
      return Text(fmt::format("ERR KBATCH takes at most {} conditions and operations", kKbatchMax));
    }
    if (left() == 0) return Wrong(what, "it is missing");
    if (const Reason reason = Read(what, forms); !reason.empty()) return Wrong(what, reason);
    ++index_;
    return {};
  }

  Reason Read(std::string_view what, std::span<const Form> forms) {
    const auto form = std::ranges::find_if(
        forms, [&](const Form& f) { return EqualsIgnoringCase(f.name, words_[at_]); });
    if (form == forms.end()) return Text(fmt::format("there is no {} '{}'", what, Shown()));
    if (left() <= form->operands) {
      return Text(fmt::format("{} takes {}", form->name, form->takes));
    }
    Operands operands{.words = words_.subspan(at_ + 1, form->operands)};
    at_ += 1 + form->operands;
    while (left() > 0 && operands.expiry.Read(words_, at_, form->options)) {
    }
    return form->add(c_, operands);
  }

  const Words words_;
  const Context& c_;
  size_t at_ = 0;
  size_t index_ = 0;  // of the condition or operation
};

}  // namespace

std::string_view ParseKbatch(std::span<const std::string_view> words, const StoreNow& now,
                             Scratch& scratch, Batch& out) {
  return Parser(words, {.now = now, .scratch = scratch, .out = out}).Parse();
}

}  // namespace skep
