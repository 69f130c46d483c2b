// COMMAND, which tells clients the table of commands.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "server/commands.h"
#include "server/glob.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep::commands {
namespace {

constexpr std::pair<Command::Flag, std::string_view> kFlagNames[] = {
    {Command::kWrite, "write"}, {Command::kReadOnly, "readonly"}, {Command::kStores, "denyoom"},
    {Command::kFast, "fast"},   {Command::kNoAuth, "no_auth"},    {Command::kAdmin, "admin"},
};

void ReplyInfo(RespWriter reply, const Command& command) {
  std::vector<std::string_view> flags;
  for (const auto& [flag, name] : kFlagNames) {
    if (command.has(flag)) flags.push_back(name);
  }
  if (!command.no_multi.empty()) flags.push_back("no_multi");
  reply.Array(10);
  reply.Bulk(command.name);
  reply.Integer(command.arity);
  reply.Set(flags.size());
  for (const std::string_view flag : flags) reply.SimpleString(flag);
  reply.Integer(command.first_key);
  reply.Integer(command.last_key);
  reply.Integer(command.key_step);
  reply.Set(1);
  reply.SimpleString(fmt::format("@{}", command.group));
  reply.Array(0);  // tips
  reply.Array(0);  // key specifications
  reply.Array(0);  // subcommands
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

void CommandCount(const ServerCall& call) {
  call.reply().Integer(static_cast<int64_t>(AllCommands().size()));
}

// COMMAND LIST [FILTERBY PATTERN pattern]
void CommandList(const ServerCall& call) {
  std::string_view pattern = "*";
  if (call.args().size() == 5 && EqualsIgnoringCase(call.arg(2), "filterby") &&
      EqualsIgnoringCase(call.arg(3), "pattern")) {
    pattern = call.arg(4);
  } else if (call.args().size() != 2) {
    return call.Error(kSyntaxError);
  }
  std::vector<std::string_view> names;
  for (const Command& command : AllCommands()) {
    if (GlobMatch(pattern, command.name)) names.push_back(command.name);
  }
  call.reply().Array(names.size());
  for (const std::string_view name : names) call.reply().Bulk(name);
}

constexpr Subcommand kCommandSubcommands[] = {
    {"count", 2, "", "Return the number of commands.", CommandCount},
    {"docs", -2, "[<command-name> ...]", "Return what commands are for.", CommandDocs},
    {"info", -2, "[<command-name> ...]", "Return what commands look like.", CommandInfo},
    {"list", -2, "[FILTERBY PATTERN <pattern>]", "Return the names of the commands.", CommandList},
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
