#include "server/key_specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/decimal.h"

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

// The commands of which a word says how many keys follow it.
struct CountedKeys {
  std::string_view name;
  size_t count_at;
  std::string_view flags;
};
constexpr std::string_view kPops = "RW access delete";
constexpr CountedKeys kCountedKeys[] = {
    {"blmpop", 2, kPops},      {"bzmpop", 2, kPops},      {"lmpop", 1, kPops},
    {"sintercard", 1, kReads}, {"zdiff", 1, kReads},      {"zdiffstore", 2, kReads},
    {"zinter", 1, kReads},     {"zintercard", 1, kReads}, {"zinterstore", 2, kReads},
    {"zmpop", 1, kPops},       {"zunion", 1, kReads},     {"zunionstore", 2, kReads},
};

// The commands that may end with STORE and a key, or with STOREDIST and a key.
constexpr std::string_view kMayStore[] = {"georadius", "georadiusbymember", "sort"};

void AddCounted(const Command& command, std::span<const std::string_view> words,
                std::vector<KeyInCall>& keys) {
  const auto counted = std::ranges::find(kCountedKeys, command.name, &CountedKeys::name);
  if (counted == std::end(kCountedKeys)) return;
  const auto count = ParseInt64(words[counted->count_at]);
  const auto rest = words.subspan(counted->count_at + 1);
  // As in Redis, a wrong number of keys is an error of the whole.
  if (!count || *count < 1 || std::cmp_greater(*count, rest.size())) return keys.clear();
  for (const std::string_view key : rest.first(static_cast<size_t>(*count))) {
    keys.push_back({.key = key, .flags = counted->flags});
  }
}

void AddStored(const Command& command, std::span<const std::string_view> words,
               std::vector<KeyInCall>& keys) {
  if (std::ranges::find(kMayStore, command.name) == std::end(kMayStore)) return;
  std::string_view stored;
  for (size_t i = 2; i + 1 < words.size(); ++i) {
    const bool stores = EqualsIgnoringCase(words[i], "store") ||
                        (command.name != "sort" && EqualsIgnoringCase(words[i], "storedist"));
    if (stores) stored = words[++i];
  }
  if (stored.data() != nullptr) keys.push_back({.key = stored, .flags = "OW update"});
}

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

bool HasKeys(const Command& command) {
  return command.first_key != 0 || std::ranges::find(kCountedKeys, command.name,
                                                     &CountedKeys::name) != std::end(kCountedKeys);
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
  AddCounted(command, words, keys);
  AddStored(command, words, keys);
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
