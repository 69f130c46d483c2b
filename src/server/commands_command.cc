// COMMAND, which tells clients the table of commands.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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
    {Command::kBlocks, "blocking"},
};

void ReplyWords(RespWriter reply, std::span<const std::string_view> words) {
  reply.Set(words.size());
  for (const std::string_view word : words) reply.SimpleString(word);
}

void ReplyKeySpec(RespWriter reply, const KeySpec& spec) {
  const auto integer = [&](std::string_view name, int number) {
    reply.Bulk(name);
    reply.Integer(number);
  };
  const auto kind = [&](std::string_view name, std::string_view type, size_t fields) {
    reply.Bulk(name);
    reply.Map(2);
    reply.Bulk("type");
    reply.Bulk(type);
    reply.Bulk("spec");
    reply.Map(fields);
  };
  reply.Map(3);
  reply.Bulk("flags");
  ReplyWords(reply, SplitFlags(spec.flags));
  kind("begin_search", "index", 1);
  integer("index", spec.first);
  kind("find_keys", "range", 3);
  integer("lastkey", spec.last);
  integer("keystep", spec.step);
  integer("limit", 0);
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
  ReplyInfoHead(reply, fmt::format("{}|{}", command.name, sub.name), sub.arity, {});
  for (int i = 0; i < 3; ++i) reply.Integer(0);
  reply.Set(1);
  reply.SimpleString("@slow");
  for (int i = 0; i < 3; ++i) reply.Set(0);
}

void ReplyInfo(RespWriter reply, const Command& command) {
  std::vector<std::string_view> flags;
  for (const auto& [flag, name] : kFlagNames) {
    if (command.has(flag)) flags.push_back(name);
  }
  if (!command.no_multi.empty()) flags.push_back("no_multi");
  ReplyInfoHead(reply, command.name, command.arity, flags);
  reply.Integer(command.first_key);
  reply.Integer(command.last_key);
  reply.Integer(command.key_step);
  const std::vector<std::string> categories = CategoriesOf(command);
  reply.Set(categories.size());
  for (const std::string& category : categories) reply.SimpleString(category);
  reply.Set(0);  // tips
  const std::vector<KeySpec> specs = KeySpecsOf(command);
  reply.Set(specs.size());
  for (const KeySpec& spec : specs) ReplyKeySpec(reply, spec);
  const auto subcommands =
      command.subcommands == nullptr ? std::span<const Subcommand>() : command.subcommands();
  reply.Set(subcommands.size());
  for (const Subcommand& sub : subcommands) ReplySubcommandInfo(reply, command, sub);
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

// A bound above the number of commands: a reply is made as a whole, and would else be a multiple of
// the request's size.
constexpr size_t kNamesMax = 1024;
constexpr std::string_view kTooManyNames =
    "ERR COMMAND INFO and COMMAND DOCS take 1024 names at most";
static_assert(kNamesMax == 1024);

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
    const Command* const command = FindCommand(name);
    if (command == nullptr) {
      reply.Null();
    } else {
      ReplyInfo(reply, *command);
    }
  }
}

void CommandDocs(const ServerCall& call) {
  const auto names = call.args().subspan(2);
  if (names.size() > kNamesMax) return call.Error(kTooManyNames);
  std::vector<const Command*> found;
  for (const std::string_view name : names) {
    if (const Command* const command = FindCommand(name)) found.push_back(command);
  }
  if (names.empty()) {
    for (const Command& command : AllCommands()) found.push_back(&command);
  }
  call.reply().Map(found.size());
  for (const Command* command : found) ReplyDocs(call.reply(), *command);
}

// Whether the command is in a category of Redis's access lists.
bool IsOf(const Command& command, std::string_view category) {
  return std::ranges::any_of(CategoriesOf(command), [&](std::string_view has) {
    return EqualsIgnoringCase(has.substr(1), category);
  });
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
  std::vector<std::string_view> names;
  for (const Command& command : AllCommands()) {
    const bool matches = by_pattern    ? GlobMatch(wanted, command.name)
                         : by_category ? IsOf(command, wanted)
                                       : false;  // there are no modules
    if (matches) names.push_back(command.name);
  }
  call.reply().Array(names.size());
  for (const std::string_view name : names) call.reply().Bulk(name);
}

// The keys of the command that follows; nullopt, with the error sent, if it has none or is wrong.
std::optional<std::vector<KeyInCall>> KeysOf(const ServerCall& call) {
  const auto words = call.args().subspan(2);
  const Command* const command = FindCommand(words[0]);
  std::string_view error;
  if (command == nullptr) {
    error = "ERR Invalid command specified";
  } else if (!HasKeys(*command)) {
    error = "ERR The command has no key arguments";
  } else if (!AcceptsCount(command->arity, words.size())) {
    error = "ERR Invalid number of arguments specified for command";
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
  for (const Subcommand& sub : subcommands) {
    reply.Bulk(fmt::format("{}|{}", command.name, sub.name));
    reply.Map(kDocsFields);
    ReplyDocsFields(reply, command, sub.summary, sub.arguments);
  }
}

void FinishCommand(const ServerCall& call, const Batch&, uint32_t) {
  if (call.args().size() == 1) return CommandInfo(call);
  RunSubcommand(call);
}

std::span<const Subcommand> CommandSubcommands() { return kCommandSubcommands; }

}  // namespace skep::commands
