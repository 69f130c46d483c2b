#include "server/key_specs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace skep {
namespace {

constexpr std::string_view kReads = "RO access";
constexpr std::string_view kChanges = "RW access update";
constexpr std::string_view kVaries = "RW access update variable_flags";

// The commands whose keys have other flags than kReads and kChanges. With `second` the last key, or
// for BITOP all keys but the first, have those.
struct Exception {
  std::string_view name;
  std::string_view flags;
  std::string_view second = {};
};

constexpr Exception kExceptions[] = {
    {"append", "RW insert"},
    {"bitfield", kVaries},
    {"bitop", "OW update", kReads},
    {"copy", kReads, "OW update"},
    {"del", "RM delete"},
    {"exists", "RO"},
    {"expire", "RW update"},
    {"expireat", "RW update"},
    {"getdel", "RW access delete"},
    {"mset", "OW update"},
    {"msetnx", "OW insert"},
    {"object", "RO"},
    {"persist", "RW update"},
    {"pexpire", "RW update"},
    {"pexpireat", "RW update"},
    {"psetex", "OW update"},
    {"rename", "RW access delete", "OW update"},
    {"renamenx", "RW access delete", "OW insert"},
    {"restore", "OW update"},
    {"set", kVaries},
    {"setex", "OW update"},
    {"setnx", "OW insert"},
    {"setrange", "RW update"},
    {"strlen", "RO"},
    {"touch", "RO"},
    {"type", "RO"},
    {"unlink", "RM delete"},
    {"watch", "RO"},
};

bool HasWord(std::span<const std::string_view> words, std::string_view wanted) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return EqualsIgnoringCase(word, wanted); });
}

// The flags of a command whose flags depend on its options.
std::string_view FlagsInCall(const Command& command, std::span<const std::string_view> words,
                             std::string_view flags) {
  if (flags != kVaries) return flags;
  if (command.name == "set") return HasWord(words.subspan(3), "get") ? kChanges : "OW update";
  const bool writes = HasWord(words, "set") || HasWord(words, "incrby");
  return writes ? kChanges : kReads;
}

}  // namespace

std::vector<KeySpec> KeySpecsOf(const Command& command) {
  if (command.first_key == 0) return {};
  const auto found = std::ranges::find(kExceptions, command.name, &Exception::name);
  const bool is_usual = found == std::end(kExceptions);
  const bool only_reads = command.has(Command::kReadOnly);
  KeySpec first{.flags = !is_usual    ? found->flags
                         : only_reads ? kReads
                                      : kChanges,
                .first = command.first_key,
                .last = command.last_key < 0 ? -1 : command.last_key - command.first_key,
                .step = command.key_step};
  if (is_usual || found->second.empty()) return {first};
  const KeySpec second{.flags = found->second,
                       .first = command.first_key + 1,
                       .last = first.last < 0 ? -1 : 0,
                       .step = 1};
  first.last = 0;
  return {first, second};
}

std::vector<KeyInCall> KeysInCall(const Command& command, std::span<const std::string_view> words) {
  std::vector<KeyInCall> keys;
  for (const KeySpec& spec : KeySpecsOf(command)) {
    const auto first = static_cast<size_t>(spec.first);
    const size_t last = spec.last < 0 ? words.size() - 1 : first + static_cast<size_t>(spec.last);
    const std::string_view flags = FlagsInCall(command, words, spec.flags);
    for (size_t i = first; i <= last && i < words.size(); i += static_cast<size_t>(spec.step)) {
      keys.push_back({.key = words[i], .flags = flags});
    }
  }
  return keys;
}

std::vector<std::string_view> SplitFlags(std::string_view flags) {
  std::vector<std::string_view> words;
  while (!flags.empty()) {
    const size_t end = std::min(flags.find(' '), flags.size());
    words.push_back(flags.substr(0, end));
    flags.remove_prefix(std::min(end + 1, flags.size()));
  }
  return words;
}

std::vector<std::string> CategoriesOf(const Command& command) {
  std::vector<std::string> categories;
  if (command.has(Command::kWrite)) categories.emplace_back("@write");
  if (command.has(Command::kReadOnly)) categories.emplace_back("@read");
  const std::string_view group = command.group == "generic"        ? "keyspace"
                                 : command.group == "transactions" ? "transaction"
                                                                   : command.group;
  categories.push_back(fmt::format("@{}", group));
  if (command.has(Command::kAdmin)) {
    categories.emplace_back("@admin");
    categories.emplace_back("@dangerous");
  }
  categories.emplace_back(command.has(Command::kFast) ? "@fast" : "@slow");
  return categories;
}

}  // namespace skep
