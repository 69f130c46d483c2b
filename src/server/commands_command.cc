// COMMAND: the table, to clients.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "server/commands.h"

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

void ReplyDocs(RespWriter reply, const Command& command) {
  reply.Bulk(command.name);
  reply.Map(4);
  reply.Bulk("summary");
  reply.Bulk(command.summary);
  reply.Bulk("since");
  reply.Bulk(command.since);
  reply.Bulk("group");
  reply.Bulk(command.group);
  // The arguments as one that stands for all of them: clients print its name.
  reply.Bulk("arguments");
  reply.Array(command.arguments.empty() ? 0 : 1);
  if (command.arguments.empty()) return;
  reply.Map(3);
  reply.Bulk("name");
  reply.Bulk(command.arguments);
  reply.Bulk("type");
  reply.Bulk("string");
  reply.Bulk("display_text");
  reply.Bulk(command.arguments);
}

void ReplyAllInfo(const Call& call) {
  call.reply().Array(AllCommands().size());
  for (const Command& command : AllCommands()) ReplyInfo(call.reply(), command);
}

void ReplySomeInfo(const Call& call, std::span<const std::string_view> names) {
  call.reply().Array(names.size());
  for (const std::string_view name : names) {
    const Command* const command = FindCommand(name);
    if (command == nullptr) {
      call.reply().NullArray();
    } else {
      ReplyInfo(call.reply(), *command);
    }
  }
}

void ReplyAllDocs(const Call& call) {
  call.reply().Map(AllCommands().size());
  for (const Command& command : AllCommands()) ReplyDocs(call.reply(), command);
}

void ReplySomeDocs(const Call& call, std::span<const std::string_view> names) {
  std::vector<const Command*> found;
  for (const std::string_view name : names) {
    if (const Command* const command = FindCommand(name)) found.push_back(command);
  }
  call.reply().Map(found.size());
  for (const Command* command : found) ReplyDocs(call.reply(), *command);
}

}  // namespace

void FinishCommand(const Call& call, const Batch&, uint32_t) {
  const auto args = call.args();
  if (args.size() == 1) return ReplyAllInfo(call);
  const auto names = args.subspan(2);
  if (EqualsIgnoringCase(args[1], "count") && names.empty()) {
    return call.reply().Integer(static_cast<int64_t>(AllCommands().size()));
  }
  if (EqualsIgnoringCase(args[1], "list") && names.empty()) {
    call.reply().Array(AllCommands().size());
    for (const Command& command : AllCommands()) call.reply().Bulk(command.name);
    return;
  }
  if (EqualsIgnoringCase(args[1], "info")) {
    return names.empty() ? ReplyAllInfo(call) : ReplySomeInfo(call, names);
  }
  if (EqualsIgnoringCase(args[1], "docs")) {
    return names.empty() ? ReplyAllDocs(call) : ReplySomeDocs(call, names);
  }
  ReplyUnknownSubcommand(call);
}

void ReplyUnknownSubcommand(const Call& call) {
  std::string upper(call.command().name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  call.Error(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  call.arg(1).substr(0, 128), upper));
}

}  // namespace skep::commands
