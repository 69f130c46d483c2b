#include "server/output_limits.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/option_values.h"

namespace skep {
namespace {

constexpr size_t kWordsOfAClass = 4;

// Null if there is no such class.
OutputLimit* ClassOf(std::string_view name, OutputLimits& limits) {
  if (EqualsIgnoringCase(name, "normal")) return &limits.normal;
  if (EqualsIgnoringCase(name, "slave") || EqualsIgnoringCase(name, "replica")) {
    return &limits.replica;
  }
  return EqualsIgnoringCase(name, "pubsub") ? &limits.pubsub : nullptr;
}

}  // namespace

Status SetOutputLimits(std::string_view text, OutputLimits& limits) {
  const std::vector<std::string> words = SplitWords(text);
  OutputLimits changed = limits;
  const auto alone = words.size() == 1 ? ParseBytes(words[0]) : std::nullopt;
  if (alone) {
    changed.normal = {.hard_bytes = *alone};
  } else if (words.empty() || words.size() % kWordsOfAClass != 0) {
    return {Code::kInvalidArgument, "Wrong number of arguments in buffer limit configuration."};
  }
  for (size_t i = 0; i + kWordsOfAClass <= words.size(); i += kWordsOfAClass) {
    OutputLimit* const limit = ClassOf(words[i], changed);
    if (limit == nullptr) {
      return {Code::kInvalidArgument,
              "Invalid client class specified in buffer limit configuration."};
    }
    const auto hard = ParseBytes(words[i + 1]);
    const auto soft = ParseBytes(words[i + 2]);
    const auto seconds = ParseDecimal<uint32_t>(words[i + 3]);
    if (!hard || !soft || !seconds) {
      return {Code::kInvalidArgument,
              "Error in hard, soft or soft_seconds setting in buffer limit configuration."};
    }
    *limit = {.hard_bytes = *hard, .soft_bytes = *soft, .soft_seconds = *seconds};
  }
  limits = changed;
  return {};
}

std::string TextOf(const OutputLimits& limits) {
  const auto text = [](std::string_view name, const OutputLimit& limit) {
    return fmt::format("{} {} {} {}", name, limit.hard_bytes, limit.soft_bytes, limit.soft_seconds);
  };
  return fmt::format("{} {} {}", text("normal", limits.normal), text("slave", limits.replica),
                     text("pubsub", limits.pubsub));
}

}  // namespace skep
