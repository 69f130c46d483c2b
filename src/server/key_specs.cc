#include "server/key_specs.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/subcommands.h"

namespace skep {
namespace {

using SpecKind = KeySpec::Kind;

constexpr std::string_view kReads = "RO access";
constexpr std::string_view kChanges = "RW access update";
constexpr std::string_view kVaries = "RW access update variable_flags";
constexpr std::string_view kPops = "RW access delete";
constexpr std::string_view kOverwrites = "OW update";
constexpr std::string_view kNoKey = "not_key";  // the name of a shard channel

// The commands whose keys have other flags than kReads and kChanges. With `second` the keys behind
// the first have those.
struct Exception {
  std::string_view name;
  std::string_view flags;
  std::string_view second = {};
};

constexpr Exception kExceptions[] = {
    {"append", "RW insert"},
    {"bitfield", kVaries},
    {"bitop", kOverwrites, kReads},
    {"blmove", kPops, "RW insert"},
    {"blpop", kPops},
    {"brpop", kPops},
    {"brpoplpush", kPops, "RW insert"},
    {"bzpopmax", kPops},
    {"bzpopmin", kPops},
    {"copy", kReads, kOverwrites},
    {"del", "RM delete"},
    {"exists", "RO"},
    {"expire", "RW update"},
    {"expireat", "RW update"},
    {"geoadd", "RW update"},
    {"georadius", kReads},
    {"georadiusbymember", kReads},
    {"geosearchstore", kOverwrites, kReads},
    {"getdel", kPops},
    {"hdel", "RW delete"},
    {"hexists", "RO"},
    {"hlen", "RO"},
    {"hmset", "RW update"},
    {"hset", "RW update"},
    {"hsetnx", "RW insert"},
    {"hstrlen", "RO"},
    {"linsert", "RW insert"},
    {"llen", "RO"},
    {"lmove", kPops, "RW insert"},
    {"lpop", kPops},
    {"lpush", "RW insert"},
    {"lpushx", "RW insert"},
    {"lrem", "RW delete"},
    {"lset", "RW update"},
    {"ltrim", "RW delete"},
    {"migrate", kPops},
    {"mset", kOverwrites},
    {"msetnx", "OW insert"},
    {"persist", "RW update"},
    {"pexpire", "RW update"},
    {"pexpireat", "RW update"},
    {"pfadd", "RW insert"},
    {"pfcount", "RW access"},
    {"pfdebug", "RW access"},
    {"pfmerge", "RW access insert", kReads},
    {"psetex", kOverwrites},
    {"rename", kPops, kOverwrites},
    {"renamenx", kPops, "OW insert"},
    {"restore", kOverwrites},
    {"restore-asking", kOverwrites},
    {"rpop", kPops},
    {"rpoplpush", kPops, "RW insert"},
    {"rpush", "RW insert"},
    {"rpushx", "RW insert"},
    {"sadd", "RW insert"},
    {"scard", "RO"},
    {"sdiffstore", kOverwrites, kReads},
    {"set", kVaries},
    {"setex", kOverwrites},
    {"setnx", "OW insert"},
    {"setrange", "RW update"},
    {"sinterstore", "RW update", kReads},
    {"sismember", "RO"},
    {"smove", kPops, "RW insert"},
    {"sort", kReads},
    {"spop", kPops},
    {"spublish", kNoKey},
    {"srem", "RW delete"},
    {"ssubscribe", kNoKey},
    {"strlen", "RO"},
    {"sunionstore", kOverwrites, kReads},
    {"sunsubscribe", kNoKey},
    {"touch", "RO"},
    {"type", "RO"},
    {"unlink", "RM delete"},
    {"watch", "RO"},
    {"zadd", "RW update"},
    {"zcard", "RO"},
    {"zdiffstore", kOverwrites},
    {"zinterstore", kOverwrites},
    {"zpopmax", kPops},
    {"zpopmin", kPops},
    {"zrangestore", kOverwrites, kReads},
    {"zrem", "RW delete"},
    {"zremrangebylex", "RW delete"},
    {"zremrangebyrank", "RW delete"},
    {"zremrangebyscore", "RW delete"},
    {"zunionstore", kOverwrites},
};

// The commands of which a word says how many keys follow it.
struct CountedKeys {
  std::string_view name;
  int count_at;
  std::string_view flags;
};
constexpr CountedKeys kCountedKeys[] = {
    {"blmpop", 2, kPops},      {"bzmpop", 2, kPops},      {"lmpop", 1, kPops},
    {"sintercard", 1, kReads}, {"zdiff", 1, kReads},      {"zdiffstore", 2, kReads},
    {"zinter", 1, kReads},     {"zintercard", 1, kReads}, {"zinterstore", 2, kReads},
    {"zmpop", 1, kPops},       {"zunion", 1, kReads},     {"zunionstore", 2, kReads},
};

// Keys of commands beside those of the table: those that SORT's patterns name, and those behind
// STORE and STOREDIST.
struct FurtherKeys {
  std::string_view name;
  KeySpec spec;
};
constexpr std::string_view kMigrateKeys = "KEYS";
constexpr FurtherKeys kFurtherKeys[] = {
    {"georadius", {kOverwrites, SpecKind::kKeyword, 6, 0, 1, "STORE"}},
    {"georadius", {kOverwrites, SpecKind::kKeyword, 6, 0, 1, "STOREDIST"}},
    {"georadiusbymember", {kOverwrites, SpecKind::kKeyword, 5, 0, 1, "STORE"}},
    {"georadiusbymember", {kOverwrites, SpecKind::kKeyword, 5, 0, 1, "STOREDIST"}},
    {"migrate", {"RW access delete incomplete", SpecKind::kKeyword, -2, -1, 1, kMigrateKeys}},
    {"sort", {kReads, SpecKind::kUnknown}},
    {"sort", {kOverwrites, SpecKind::kUnknown}},
    {"sort_ro", {kReads, SpecKind::kUnknown}},
};

// The commands that may end with STORE and a key, or with STOREDIST and a key.
constexpr std::string_view kMayStore[] = {"georadius", "georadiusbymember", "sort"};

// False if the word that counts the keys of `spec` does not tell a number of them that there is.
bool AddCounted(const KeySpec& spec, std::span<const std::string_view> words,
                std::vector<KeyInCall>& keys) {
  const auto count_at = static_cast<size_t>(spec.first);
  const auto count = ParseInt64(words[count_at]);
  const auto rest = words.subspan(count_at + 1);
  if (!count || *count < 1 || std::cmp_greater(*count, rest.size())) return false;
  for (const std::string_view key : rest.first(static_cast<size_t>(*count))) {
    keys.push_back({.key = key, .flags = spec.flags});
  }
  return true;
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
  if (stored.data() != nullptr) keys.push_back({.key = stored, .flags = kOverwrites});
}

// MIGRATE ... "" ... KEYS key ...: those keys in place of the empty one. A key that is not empty
// before KEYS is an error of the whole, as in Redis.
void ReplaceMigrated(std::span<const std::string_view> words, std::vector<KeyInCall>& keys) {
  constexpr size_t kOptions = 6;
  const auto options = words.subspan(std::min(kOptions, words.size()));
  const auto at = std::ranges::find_if(
      options, [](std::string_view word) { return EqualsIgnoringCase(word, kMigrateKeys); });
  if (at == options.end()) return;
  const bool replaces = keys[0].key.empty();
  keys.clear();
  if (!replaces) return;
  for (auto key = at + 1; key != options.end(); ++key)
    keys.push_back({.key = *key, .flags = kPops});
}

bool HasWord(std::span<const std::string_view> words, std::string_view wanted) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return EqualsIgnoringCase(word, wanted); });
}

// The flags of a command whose flags depend on its options.
std::string_view FlagsInCall(const Command& command, std::span<const std::string_view> words,
                             std::string_view flags) {
  if (flags != kVaries) return flags;
  if (command.name == "set") return HasWord(words.subspan(3), "get") ? kChanges : kOverwrites;
  const bool writes = HasWord(words, "set") || HasWord(words, "incrby");
  return writes ? kChanges : kReads;
}

void AddRange(const Command& command, const KeySpec& spec, std::span<const std::string_view> words,
              std::vector<KeyInCall>& keys) {
  const auto first = static_cast<size_t>(spec.first);
  const size_t end = spec.last < 0 ? words.size() - static_cast<size_t>(-spec.last - 1)
                                   : first + static_cast<size_t>(spec.last) + 1;
  const std::string_view flags = FlagsInCall(command, words, spec.flags);
  for (size_t i = first; i < std::min(end, words.size()); i += static_cast<size_t>(spec.step)) {
    keys.push_back({.key = words[i], .flags = flags});
  }
}

}  // namespace

std::vector<KeySpec> KeySpecsOf(const Command& command) {
  std::vector<KeySpec> specs;
  if (command.first_key != 0) {
    const auto found = std::ranges::find(kExceptions, command.name, &Exception::name);
    const bool is_usual = found == std::end(kExceptions);
    const bool only_reads = command.has(Command::kReadOnly);
    const int last = command.last_key < 0 ? command.last_key : command.last_key - command.first_key;
    const bool has_second = !is_usual && !found->second.empty();
    specs.push_back({.flags = !is_usual    ? found->flags
                              : only_reads ? kReads
                                           : kChanges,
                     .first = command.first_key,
                     .last = has_second ? 0 : last,
                     .step = command.key_step});
    if (has_second) {
      specs.push_back(
          {.flags = found->second, .first = command.first_key + 1, .last = last < 0 ? last : 0});
    }
  }
  const auto counted = std::ranges::find(kCountedKeys, command.name, &CountedKeys::name);
  if (counted != std::end(kCountedKeys)) {
    specs.push_back(
        {.flags = counted->flags, .kind = SpecKind::kCounted, .first = counted->count_at});
  }
  for (const auto& [name, spec] : kFurtherKeys) {
    if (name == command.name) specs.push_back(spec);
  }
  return specs;
}

std::vector<KeySpec> KeySpecsOf(const Subcommand& subcommand) {
  if (subcommand.key == 0) return {};
  return {{.flags = "RO", .first = subcommand.key}};
}

bool HasKeys(const Command& command) {
  return std::ranges::any_of(KeySpecsOf(command),
                             [](const KeySpec& spec) { return spec.flags != kNoKey; });
}

std::vector<KeyInCall> KeysInCall(const Command& command, std::span<const std::string_view> words) {
  std::vector<KeyInCall> keys;
  for (const KeySpec& spec : KeySpecsOf(command)) {
    if (spec.flags == kNoKey) continue;
    if (spec.kind == SpecKind::kRange) AddRange(command, spec, words, keys);
    // As in Redis, a wrong number of keys is an error of the whole.
    if (spec.kind == SpecKind::kCounted && !AddCounted(spec, words, keys)) return {};
  }
  AddStored(command, words, keys);
  if (command.name == "migrate") ReplaceMigrated(words, keys);
  return keys;
}

std::vector<KeyInCall> KeysInCall(const Subcommand& subcommand,
                                  std::span<const std::string_view> words) {
  std::vector<KeyInCall> keys;
  for (const KeySpec& spec : KeySpecsOf(subcommand)) {
    keys.push_back({.key = words[static_cast<size_t>(spec.first)], .flags = spec.flags});
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

}  // namespace skep
