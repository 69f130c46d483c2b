#include "server/function_args.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/ascii.h"
#include "base/decimal.h"

namespace skep {
namespace {

constexpr std::string_view kSyntax = "syntax error";
constexpr size_t kShownBytes = 64;  // of a word that an error quotes

std::string Lower(std::string_view text) {
  std::string lower;
  for (const char c : text) lower.push_back(LowerCase(c));
  return lower;
}

template <class T>
bool Append(std::string_view text, std::string* bytes) {
  T element;
  if constexpr (std::floating_point<T>) {
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, element);
    if (error != std::errc{} || stopped != end) return false;
  } else {
    const auto number = ParseDecimal<T>(text);
    if (!number) return false;
    element = *number;
  }
  bytes->append(reinterpret_cast<const char*>(&element), sizeof(element));
  return true;
}

std::string NoNumber(std::string_view text, Element element) {
  return fmt::format("'{}' is not a number of type {}, or out of range",
                     text.substr(0, kShownBytes), NameOf(element));
}

// [RETURN OLD | NEW | NONE] [CREATE n]
bool ParseUpdateOptions(std::span<const std::string_view> words, UpdateOptions* options) {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (EqualsIgnoringCase(words[i], "return")) {
      if (EqualsIgnoringCase(value, "old")) {
        options->returns = UpdateOptions::Returns::kOld;
      } else if (EqualsIgnoringCase(value, "new")) {
        options->returns = UpdateOptions::Returns::kNew;
      } else if (EqualsIgnoringCase(value, "none")) {
        options->returns = UpdateOptions::Returns::kNothing;
      } else {
        return false;
      }
    } else if (EqualsIgnoringCase(words[i], "create")) {
      const auto elements = ParseDecimal<uint32_t>(value);
      if (!elements || *elements == 0) return false;
      options->create = *elements;
    } else {
      return false;
    }
  }
  return words.size() % 2 == 0;
}

}  // namespace

bool AppendElement(std::string_view number, Element element, std::string* bytes) {
  switch (element) {
    case Element::kI8:
      return Append<int8_t>(number, bytes);
    case Element::kI16:
      return Append<int16_t>(number, bytes);
    case Element::kI32:
      return Append<int32_t>(number, bytes);
    case Element::kI64:
      return Append<int64_t>(number, bytes);
    case Element::kU8:
      return Append<uint8_t>(number, bytes);
    case Element::kU16:
      return Append<uint16_t>(number, bytes);
    case Element::kU32:
      return Append<uint32_t>(number, bytes);
    case Element::kU64:
      return Append<uint64_t>(number, bytes);
    case Element::kF32:
      return Append<float>(number, bytes);
    case Element::kF64:
      return Append<double>(number, bytes);
  }
  return false;
}

std::string ParseFunctionArgs(FunctionKind kind, std::span<const std::string_view> words,
                              FunctionArgs* args) {
  const auto element = ElementNamed(Lower(words[1]));
  if (!element) return fmt::format("unknown type '{}'", words[1].substr(0, kShownBytes));
  args->function = FindFunction(kind, Lower(words[0]), *element);
  if (args->function == nullptr) {
    return fmt::format("unknown {} function '{}' of {}", NameOf(kind),
                       words[0].substr(0, kShownBytes), NameOf(*element));
  }
  words = words.subspan(2);
  if (kind == FunctionKind::kReduce) {
    if (words.empty()) return {};
    if (words.size() > 1) return std::string(kSyntax);
    if (AppendElement(words[0], args->function->state, &args->operands)) return {};
    return NoNumber(words[0], args->function->state);
  }
  if (kind == FunctionKind::kUpdate && words.size() >= 2 &&
      EqualsIgnoringCase(words[0], "vector")) {
    args->options.is_vector = true;
    args->operands = words[1];
    words = words.subspan(2);
  } else {
    const size_t operands = args->function->operands;
    if (words.size() < operands) return "too few operands";
    for (const std::string_view word : words.first(operands)) {
      if (!AppendElement(word, *element, &args->operands)) return NoNumber(word, *element);
    }
    words = words.subspan(operands);
  }
  const bool is_done =
      kind == FunctionKind::kUpdate ? ParseUpdateOptions(words, &args->options) : words.empty();
  return is_done ? std::string() : std::string(kSyntax);
}

}  // namespace skep
