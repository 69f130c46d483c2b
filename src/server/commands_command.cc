// COMMAND, which tells clients the table of commands.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "server/command_categories.h"
#include "server/commands.h"
#include "server/glob.h"
#include "server/key_specs.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep::commands {
namespace {

constexpr std::pair<Command::Flag, std::string_view> kFlagNames[] = {
    {Command::kWrite, "write"},     {Command::kReadOnly, "readonly"}, {Command::kStores, "denyoom"},
    {Command::kFast, "fast"},       {Command::kNoAuth, "no_auth"},    {Command::kAdmin, "admin"},
    {Command::kBlocks, "blocking"}, {Command::kMessages, "pubsub"},
};

void ReplyWords(RespWriter reply, std::span<const std::string_view> words) {
  reply.Set(words.size());
  for (const std::string_view word : words) reply.SimpleString(word);
}

// A map of a type and, in a map, what belongs to it: names and numbers or words.
class SpecReply {
 public:
  SpecReply(RespWriter reply, std::string_view name, std::string_view type, size_t fields)
      : reply_(reply) {
    reply_.Bulk(name);
    reply_.Map(2);
    reply_.Bulk("type");
    reply_.Bulk(type);
    reply_.Bulk("spec");
    reply_.Map(fields);
  }
  SpecReply& Number(std::string_view name, int number) {
    reply_.Bulk(name);
    reply_.Integer(number);
    return *this;
  }
  SpecReply& Word(std::string_view name, std::string_view word) {
    reply_.Bulk(name);
    reply_.Bulk(word);
    return *this;
  }

 private:
  RespWriter reply_;
};

void ReplyKeySpec(RespWriter reply, const KeySpec& spec) {
  using enum KeySpec::Kind;
  constexpr std::string_view kBegin = "begin_search";
  constexpr std::string_view kFind = "find_keys";
  reply.Map(3);
  reply.Bulk("flags");
  ReplyWords(reply, SplitFlags(spec.flags));
  if (spec.kind == kUnknown) {
    SpecReply(reply, kBegin, "unknown", 0);
    SpecReply(reply, kFind, "unknown", 0);
    return;
  }
  if (spec.kind == kKeyword) {
    SpecReply(reply, kBegin, "keyword", 2)
        .Word("keyword", spec.keyword)
        .Number("startfrom", spec.first);
  } else {
    SpecReply(reply, kBegin, "index", 1).Number("index", spec.first);
  }
  if (spec.kind == kCounted) {
    SpecReply(reply, kFind, "keynum", 3)
        .Number("keynumidx", 0)
        .Number("firstkey", 1)
        .Number("keystep", spec.step);
  } else {
    SpecReply(reply, kFind, "range", 3)
        .Number("lastkey", spec.last)
        .Number("keystep", spec.step)
        .Number("limit", 0);
  }
}

void ReplyKeySpecs(RespWriter reply, std::span<const KeySpec> specs) {
  reply.Set(specs.size());
  for (const KeySpec& spec : specs) ReplyKeySpec(reply, spec);
}

void ReplyCategories(RespWriter reply, std::span<const std::string_view> categories) {
  reply.Set(categories.size());
  for (const std::string_view category : categories) {
    reply.SimpleString(fmt::format("@{}", category));
  }
}

// A command, or a subcommand, up to its categories.
void ReplyInfoHead(RespWriter reply, std::string_view name, int arity,
                   std::span<const std::string_view> flags) {
  reply.Array(10);
  reply.Bulk(name);
  reply.Integer(arity);
  ReplyWords(reply, flags);
}

void ReplySubcommandInfo(RespWriter reply, const Command& command, const Subcommand& sub) {
  ReplyInfoHead(reply, FullName(command, sub.name), sub.arity, {});
  reply.Integer(sub.key);
  reply.Integer(sub.key);
  reply.Integer(sub.key == 0 ? 0 : 1);
  ReplyCategories(reply, CategoriesOf(command, sub));
  reply.Set(0);  // tips
  ReplyKeySpecs(reply, KeySpecsOf(sub));
  reply.Set(0);  // subcommands
}

void ReplyInfo(RespWriter reply, const Command& command) {
  std::vector<std::string_view> flags;
  for (const auto& [flag, name] : kFlagNames) {
    if (command.has(flag)) flags.push_back(name);
  }
  if (!command.no_multi.empty()) flags.push_back("no_multi");
  const std::vector<KeySpec> specs = KeySpecsOf(command);
  const bool has_movable_keys = std::ranges::any_of(
      specs, [](const KeySpec& spec) { return spec.kind != KeySpec::Kind::kRange; });
  if (has_movable_keys) flags.push_back("movablekeys");
  ReplyInfoHead(reply, command.name, command.arity, flags);
  reply.Integer(command.first_key);
  reply.Integer(command.last_key);
  reply.Integer(command.key_step);
  ReplyCategories(reply, CategoriesOf(command));
  reply.Set(0);  // tips
  ReplyKeySpecs(reply, specs);
  if (command.subcommands == nullptr) return reply.Set(0);
  const auto subcommands = command.subcommands();
  reply.Set(subcommands.size() + 1);
  for (const Subcommand& sub : subcommands) ReplySubcommandInfo(reply, command, sub);
  ReplySubcommandInfo(reply, command, kHelpSubcommand);
}

// The fields that both commands and subcommands have, without the head of their map.
constexpr size_t kDocsFields = 4;
void ReplyDocsFields(RespWriter reply, const Command& command, std::string_view summary,
                     std::string_view arguments) {
  reply.Bulk("summary");
  reply.Bulk(summary);
  reply.Bulk("since");
  reply.Bulk(command.since);
  reply.Bulk("group");
  reply.Bulk(command.group);
  // One argument stands for all of them: clients print its name.
  reply.Bulk("arguments");
  reply.Array(arguments.empty() ? 0 : 1);
  if (arguments.empty()) return;
  reply.Map(3);
  reply.Bulk("name");
  reply.Bulk(arguments);
  reply.Bulk("type");
  reply.Bulk("string");
  reply.Bulk("display_text");
  reply.Bulk(arguments);
}

void ReplySubcommandDocs(RespWriter reply, const Command& command, const Subcommand& sub) {
  reply.Bulk(FullName(command, sub.name));
  reply.Map(kDocsFields);
  ReplyDocsFields(reply, command, sub.summary, sub.arguments);
}

// A bound above the number of commands: a reply is made as a whole, and would else be a multiple of
// the request's size.
constexpr size_t kNamesMax = 1024;
constexpr std::string_view kTooManyNames =
    "ERR COMMAND INFO and COMMAND DOCS take 1024 names at most";
static_assert(kNamesMax == 1024);

// A command, and with "config|get" its subcommand. Null if there is none of that name.
struct Found {
  const Command* command = nullptr;
  const Subcommand* sub = nullptr;
};
Found FindByFullName(std::string_view name) {
  const size_t bar = name.find('|');
  const Command* const command = FindCommand(name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return {.command = command};
  const bool is_help = command->subcommands != nullptr &&
                       EqualsIgnoringCase(name.substr(bar + 1), kHelpSubcommand.name);
  const Subcommand* const sub =
      is_help ? &kHelpSubcommand : FindSubcommand(*command, name.substr(bar + 1));
  return sub == nullptr ? Found() : Found{.command = command, .sub = sub};
}

void CommandInfo(const ServerCall& call) {
  const auto names = call.args().subspan(std::min<size_t>(2, call.args().size()));
  if (names.size() > kNamesMax) return call.Error(kTooManyNames);
  RespWriter reply = call.reply();
  if (names.empty()) {
    reply.Array(AllCommands().size());
    for (const Command& command : AllCommands()) ReplyInfo(reply, command);
    return;
  }
  reply.Array(names.size());
  for (const std::string_view name : names) {
    const auto [command, sub] = FindByFullName(name);
    if (command == nullptr) {
      reply.Null();
    } else if (sub != nullptr) {
      ReplySubcommandInfo(reply, *command, *sub);
    } else {
      ReplyInfo(reply, *command);
    }
  }
}

void CommandDocs(const ServerCall& call) {
  const auto names = call.args().subspan(2);
  if (names.size() > kNamesMax) return call.Error(kTooManyNames);
  std::vector<Found> found;
  for (const std::string_view name : names) {
    const Found one = FindByFullName(name);
    if (one.command != nullptr) found.push_back(one);
  }
  if (names.empty()) {
    for (const Command& command : AllCommands()) found.push_back({.command = &command});
  }
  call.reply().Map(found.size());
  for (const auto& [command, sub] : found) {
    if (sub == nullptr) {
      ReplyDocs(call.reply(), *command);
    } else {
      ReplySubcommandDocs(call.reply(), *command, *sub);
    }
  }
}

void CommandCount(const ServerCall& call) {
  call.reply().Integer(static_cast<int64_t>(AllCommands().size()));
}

// COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]
void CommandList(const ServerCall& call) {
  const auto options = call.args().subspan(2);
  const bool has_filter = options.size() == 3 && EqualsIgnoringCase(options[0], "filterby");
  const std::string_view kind = has_filter ? options[1] : "pattern";
  const std::string_view wanted = has_filter ? options[2] : "*";
  const bool by_pattern = EqualsIgnoringCase(kind, "pattern");
  const bool by_category = EqualsIgnoringCase(kind, "aclcat");
  const bool is_known = by_pattern || by_category || EqualsIgnoringCase(kind, "module");
  if ((!options.empty() && !has_filter) || !is_known) return call.Error(kSyntaxError);
  std::vector<std::string> names;
  for (CommandName& command : AllCommandNames()) {
    const bool matches = by_pattern    ? GlobMatch(wanted, command.name)
                         : by_category ? command.IsOf(wanted)
                                       : false;  // there are no modules
    if (matches) names.push_back(std::move(command.name));
  }
  call.reply().Array(names.size());
  for (const std::string& name : names) call.reply().Bulk(name);
}

// The keys of the command that follows; nullopt, with the error sent, if it has none or is wrong.
std::optional<std::vector<KeyInCall>> KeysOf(const ServerCall& call) {
  constexpr std::string_view kWrongCount = "ERR Invalid number of arguments specified for command";
  const auto words = call.args().subspan(2);
  const Command* const command = FindCommand(words[0]);
  const Subcommand* const sub = command == nullptr ? nullptr : FindSubcommand(*command, words[1]);
  std::string_view error;
  if (command == nullptr) {
    error = "ERR Invalid command specified";
  } else if (sub != nullptr && sub->key != 0) {
    if (AcceptsCount(sub->arity, words.size())) return KeysInCall(*sub, words);
    error = kWrongCount;
  } else if (!HasKeys(*command)) {
    error = "ERR The command has no key arguments";
  } else if (!AcceptsCount(command->arity, words.size())) {
    error = kWrongCount;
  }
  if (error.empty()) {
    auto keys = KeysInCall(*command, words);
    if (!keys.empty()) return keys;
    error = "ERR Invalid arguments specified for command";
  }
  call.Error(error);
  return std::nullopt;
}

void CommandGetKeys(const ServerCall& call) {
  const auto keys = KeysOf(call);
  if (!keys) return;
  call.reply().Array(keys->size());
  for (const KeyInCall& key : *keys) call.reply().Bulk(key.key);
}

void CommandGetKeysAndFlags(const ServerCall& call) {
  const auto keys = KeysOf(call);
  if (!keys) return;
  call.reply().Array(keys->size());
  for (const KeyInCall& key : *keys) {
    call.reply().Array(2);
    call.reply().Bulk(key.key);
    ReplyWords(call.reply(), SplitFlags(key.flags));
  }
}

constexpr Subcommand kCommandSubcommands[] = {
    {"count", 2, "", "Return the number of commands.", CommandCount},
    {"docs", -2, "[<command-name> ...]", "Return what commands are for.", CommandDocs},
    {"getkeys", -4, "<full-command>", "Return the keys of a command.", CommandGetKeys},
    {"getkeysandflags", -4, "<full-command>",
     "Return the keys of a command, and what it does with them.", CommandGetKeysAndFlags},
    {"info", -2, "[<command-name> ...]", "Return what commands look like.", CommandInfo},
    {"list", -2, "[FILTERBY (MODULE <name> | ACLCAT <category> | PATTERN <pattern>)]",
     "Return the names of the commands.", CommandList},
};

}  // namespace

void ReplyDocs(RespWriter reply, const Command& command) {
  const bool has_subcommands = command.subcommands != nullptr;
  reply.Bulk(command.name);
  reply.Map(kDocsFields + (has_subcommands ? 1 : 0));
  ReplyDocsFields(reply, command, command.summary, command.arguments);
  if (!has_subcommands) return;
  const auto subcommands = command.subcommands();
  reply.Bulk("subcommands");
  reply.Map(subcommands.size());
  for (const Subcommand& sub : subcommands) ReplySubcommandDocs(reply, command, sub);
}

void FinishCommand(const ServerCall& call, const Batch&, uint32_t) {
  if (call.args().size() == 1) return CommandInfo(call);
  RunSubcommand(call);
}

std::span<const Subcommand> CommandSubcommands() { return kCommandSubcommands; }

}  // namespace skep::commands
