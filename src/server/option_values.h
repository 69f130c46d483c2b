// option_values.h: how the value of one option is read and printed. Each template is a pair of
// functions for one member of ServerOptions; the errors are Redis's texts.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/options.h"

namespace skep {

// A number of bytes: digits and perhaps a unit, in either case: b, k (1000), kb (1024), m, mb, g,
// gb. nullopt for anything else, or if it is 2^64 or more.
std::optional<uint64_t> ParseBytes(std::string_view text);

// The words between spaces.
std::vector<std::string> SplitWords(std::string_view text);

// True for "127.0.0.1", "::1" and the like; false for host names.
bool IsNumericAddress(std::string_view address);

namespace option_values {

template <auto kMin, auto kMax>
Status NotBetween() {
  static const std::string what =
      fmt::format("argument must be between {} and {} inclusive", kMin, kMax);
  return {Code::kInvalidArgument, what.c_str()};
}

template <auto kMember, auto kMin, auto kMax>
struct Number {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    const std::optional<int64_t> number = ParseInt64(value);
    if (!number) return {Code::kInvalidArgument, "argument couldn't be parsed into an integer"};
    if (std::cmp_less(*number, kMin) || std::cmp_greater(*number, kMax)) {
      return NotBetween<kMin, kMax>();
    }
    auto& member = options.*kMember;
    member = static_cast<std::remove_reference_t<decltype(member)>>(*number);
    return {};
  }
  static std::string Get(const ServerOptions& options) { return fmt::to_string(options.*kMember); }
};

template <auto kMember, uint64_t kMin, uint64_t kMax = INT64_MAX>
struct Bytes {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    const std::optional<uint64_t> bytes = ParseBytes(value);
    if (!bytes) return {Code::kInvalidArgument, "argument must be a memory value"};
    if (*bytes < kMin || *bytes > kMax) return NotBetween<kMin, kMax>();
    auto& member = options.*kMember;
    member = static_cast<std::remove_reference_t<decltype(member)>>(*bytes);
    return {};
  }
  static std::string Get(const ServerOptions& options) { return fmt::to_string(options.*kMember); }
};

template <auto kMember>
struct Flag {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    const bool yes = EqualsIgnoringCase(value, "yes");
    if (!yes && !EqualsIgnoringCase(value, "no")) {
      return {Code::kInvalidArgument, "argument must be 'yes' or 'no'"};
    }
    options.*kMember = yes;
    return {};
  }
  static std::string Get(const ServerOptions& options) { return options.*kMember ? "yes" : "no"; }
};

template <auto kMember>
struct Text {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    options.*kMember = value;
    return {};
  }
  static std::string Get(const ServerOptions& options) { return options.*kMember; }
};

template <typename Choices>
std::string NotOneOf(const Choices& choices) {
  return fmt::format("argument(s) must be one of the following: {}", fmt::join(choices, ", "));
}

template <auto kMember, const auto& kChoices>
struct OneOf {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    for (const std::string_view choice : kChoices) {
      if (!EqualsIgnoringCase(value, choice)) continue;
      options.*kMember = choice;
      return {};
    }
    static const std::string what = NotOneOf(kChoices);
    return {Code::kInvalidArgument, what.c_str()};
  }
  static std::string Get(const ServerOptions& options) { return options.*kMember; }
};

// An enumeration whose values are numbered as their names.
template <auto kMember, const auto& kNames>
struct Choice {
  static constexpr bool kIsList = false;
  static Status Set(ServerOptions& options, std::string_view value) {
    using Value = std::remove_cvref_t<decltype(options.*kMember)>;
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (!EqualsIgnoringCase(value, kNames[i])) continue;
      options.*kMember = static_cast<Value>(i);
      return {};
    }
    static const std::string what = NotOneOf(kNames);
    return {Code::kInvalidArgument, what.c_str()};
  }
  static std::string Get(const ServerOptions& options) {
    return std::string(kNames[static_cast<size_t>(options.*kMember)]);
  }
};

template <auto kMember>
struct Addresses {
  static constexpr bool kIsList = true;
  static Status Set(ServerOptions& options, std::string_view value) {
    std::vector<std::string> addresses = SplitWords(value);
    for (const std::string& address : addresses) {
      if (!IsNumericAddress(address)) {
        return {Code::kInvalidArgument, "argument must be a list of numeric addresses"};
      }
    }
    options.*kMember = std::move(addresses);
    return {};
  }
  static std::string Get(const ServerOptions& options) {
    return fmt::format("{}", fmt::join(options.*kMember, " "));
  }
};

template <auto kMember>
struct Words {
  static constexpr bool kIsList = true;
  static Status Set(ServerOptions& options, std::string_view value) {
    options.*kMember = SplitWords(value);
    return {};
  }
  static std::string Get(const ServerOptions& options) {
    return fmt::format("{}", fmt::join(options.*kMember, " "));
  }
};

// A map from numbers to names: "1=hash 3=model".
template <auto kMember>
struct NumberedNames {
  static constexpr bool kIsList = true;
  static Status Set(ServerOptions& options, std::string_view value) {
    std::remove_cvref_t<decltype(options.*kMember)> names;
    for (const std::string& word : SplitWords(value)) {
      const size_t equal = word.find('=');
      const auto number = ParseDecimal<uint32_t>(std::string_view(word).substr(0, equal));
      if (!number || equal == std::string::npos || equal + 1 == word.size()) {
        return {Code::kInvalidArgument, "argument must be a list of number=name"};
      }
      if (!names.emplace(*number, word.substr(equal + 1)).second) {
        return {Code::kInvalidArgument, "argument names a number twice"};
      }
    }
    options.*kMember = std::move(names);
    return {};
  }
  static std::string Get(const ServerOptions& options) {
    std::string text;
    for (const auto& [number, name] : options.*kMember) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", number, name);
    }
    return text;
  }
};

}  // namespace option_values
}  // namespace skep
