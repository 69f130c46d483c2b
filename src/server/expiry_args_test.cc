#include "server/expiry_args.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace skep {
namespace {

constexpr uint64_t kNow = 1'700'000'000'123;
constexpr std::string_view kNotANumber = "ERR value is not an integer or out of range";
constexpr std::string_view kInvalidTime = "ERR invalid expire time in 'x' command";

struct Parsed {
  std::string error;
  uint64_t deadline_ms = 0;
};

Parsed Deadline(const std::string& number, TimeForm form, PastTimes past) {
  Scratch scratch;
  Parsed parsed;
  parsed.error = ParseDeadline(number, form, past, {.ms = kNow}, "x", scratch, parsed.deadline_ms);
  return parsed;
}

// The header's table in 128-bit arithmetic, where nothing overflows.
Parsed Expected(int64_t number, TimeForm form, PastTimes past) {
  const __int128 ms = static_cast<__int128>(number) * form.unit_ms;
  const __int128 deadline = ms + (form.from_now ? kNow : 0);
  const bool fits = ms >= INT64_MIN && deadline <= static_cast<__int128>(kDeadlineMax);
  if (!fits || (past == PastTimes::kInvalid && number <= 0)) {
    return {.error = std::string(kInvalidTime)};
  }
  return {.deadline_ms = deadline < 1 ? 1 : static_cast<uint64_t>(deadline)};
}

// Goal: every number means the deadline that its form says, or is refused.
// Method: the bounds of every form, their neighbours and random numbers, against 128-bit
// arithmetic.
TEST(ExpiryArgs, DeadlinesAgreeWithWideArithmetic) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  std::vector<int64_t> numbers;
  const int64_t max = static_cast<int64_t>(kDeadlineMax), now = static_cast<int64_t>(kNow);
  for (const int64_t edge : {int64_t{0}, now, -now, now / 1000, max, max / 1000, max - now,
                             (max - now) / 1000, INT64_MAX / 1000, INT64_MIN / 1000}) {
    for (int64_t d = -2; d <= 2; ++d) numbers.push_back(edge + d);
  }
  for (int64_t d = 0; d < 3; ++d) {
    numbers.push_back(INT64_MAX - d);
    numbers.push_back(INT64_MIN + d);
  }
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(static_cast<int64_t>(rng()) >> (rng() % 64));
  }
  for (const TimeForm form : {kSeconds, kMilliseconds, kUnixSeconds, kUnixMilliseconds}) {
    for (const PastTimes past : {PastTimes::kAllowed, PastTimes::kInvalid}) {
      for (const int64_t number : numbers) {
        const Parsed got = Deadline(std::to_string(number), form, past);
        const Parsed wanted = Expected(number, form, past);
        ASSERT_EQ(got.error, wanted.error) << number << " " << form.unit_ms << form.from_now;
        ASSERT_EQ(got.deadline_ms, wanted.deadline_ms) << number << " " << form.unit_ms;
      }
    }
  }
}

// Goal: a word that is not a number is refused as such.
TEST(ExpiryArgs, RefusesWhatIsNoNumber) {
  for (const char* bad : {"", " 1", "1 ", "+1", "01", "-0", "1.5", "abc", "9223372036854775808",
                          "-9223372036854775809"}) {
    EXPECT_EQ(Deadline(bad, kSeconds, PastTimes::kAllowed).error, kNotANumber) << bad;
  }
}

// Reads as many options as there are; returns the rest of the words, and the option.
size_t ReadAll(const std::vector<std::string_view>& words, unsigned allowed, ExpiryOption& option) {
  size_t i = 0;
  while (i < words.size() && option.Read(words, i, allowed)) {
  }
  return words.size() - i;
}

// Goal: an option goes only with itself, and only where it is allowed.
// Method: all pairs, in Redis's rule written down by hand: equal names.
TEST(ExpiryArgs, OneOptionOnly) {
  const std::vector<std::vector<std::string_view>> options = {
      {"EX", "1"}, {"px", "1"}, {"ExAt", "1"}, {"PXAT", "1"}, {"keepttl"}, {"PERSIST"}};
  const std::vector<ExpiryOption::Kind> kinds = {ExpiryOption::kTime, ExpiryOption::kTime,
                                                 ExpiryOption::kTime, ExpiryOption::kTime,
                                                 ExpiryOption::kKeep, ExpiryOption::kPersist};
  for (size_t a = 0; a < options.size(); ++a) {
    for (const unsigned allowed : {1u, 2u, 4u, 3u, 5u, 7u}) {
      ExpiryOption option;
      const bool fits = (allowed & kinds[a]) != 0;
      EXPECT_EQ(ReadAll(options[a], allowed, option), fits ? 0 : options[a].size());
      EXPECT_EQ(option.kind(), fits ? kinds[a] : ExpiryOption::kNone);
    }
    for (size_t b = 0; b < options.size(); ++b) {
      std::vector<std::string_view> words = options[a];
      words.insert(words.end(), options[b].begin(), options[b].end());
      ExpiryOption option;
      EXPECT_EQ(ReadAll(words, 7, option), a == b ? 0 : options[b].size()) << a << " " << b;
    }
  }
  for (const std::string_view lone : {"EX", "PX", "EXAT", "PXAT", "", "E", "EXX", "KEEP"}) {
    ExpiryOption option;
    EXPECT_EQ(ReadAll({lone}, 7, option), 1u) << lone;
    EXPECT_EQ(option.kind(), ExpiryOption::kNone);
  }
}

// Goal: the deadline of a request; the later of two numbers counts; numbers are judged only here.
TEST(ExpiryArgs, Resolves) {
  const auto resolve = [](const std::vector<std::string_view>& words) {
    ExpiryOption option;
    EXPECT_EQ(ReadAll(words, 7, option), 0u);
    Scratch scratch;
    Parsed parsed;
    parsed.error = option.Resolve({.ms = kNow}, "x", scratch, parsed.deadline_ms);
    return parsed;
  };
  EXPECT_EQ(resolve({}).deadline_ms, 0u);
  EXPECT_EQ(resolve({"PERSIST"}).deadline_ms, 0u);
  EXPECT_EQ(resolve({"KEEPTTL"}).deadline_ms, kKeepDeadline);
  EXPECT_EQ(resolve({"EX", "2"}).deadline_ms, kNow + 2000);
  EXPECT_EQ(resolve({"PX", "2"}).deadline_ms, kNow + 2);
  EXPECT_EQ(resolve({"EXAT", "2"}).deadline_ms, 2000u);
  EXPECT_EQ(resolve({"PXAT", "2"}).deadline_ms, 2u);
  EXPECT_EQ(resolve({"EX", "nonsense", "EX", "3"}).deadline_ms, kNow + 3000);
  EXPECT_EQ(resolve({"EX", "3", "EX", "nonsense"}).error, kNotANumber);
  EXPECT_EQ(resolve({"PX", "0"}).error, kInvalidTime);
  EXPECT_EQ(resolve({"EXAT", "-1"}).error, kInvalidTime);
}

}  // namespace
}  // namespace skep
