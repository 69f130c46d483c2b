#include "server/subcommands.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/server_call.h"

namespace skep {
namespace {

void ReplyHelp(const ServerCall& call, std::span<const Subcommand> subcommands) {
  RespWriter reply = call.reply();
  reply.Array(2 * subcommands.size() + 3);
  reply.SimpleString(fmt::format("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                                 UpperCase(call.command().name)));
  for (const Subcommand& sub : subcommands) {
    reply.SimpleString(fmt::format("{}{}{}", UpperCase(sub.name), sub.arguments.empty() ? "" : " ",
                                   sub.arguments));
    reply.SimpleString(fmt::format("    {}", sub.summary));
  }
  reply.SimpleString("HELP");
  reply.SimpleString(fmt::format("    {}", kHelpSubcommand.summary));
}

bool IsHelp(std::span<const std::string_view> args) {
  return args.size() == 2 && EqualsIgnoringCase(args[1], "help");
}

}  // namespace

std::string FullName(const Command& command, std::string_view subcommand) {
  return fmt::format("{}|{}", command.name, subcommand);
}

const Subcommand* FindSubcommand(const Command& command, std::string_view name) {
  if (command.subcommands == nullptr) return nullptr;
  const auto subcommands = command.subcommands();
  const auto at = std::ranges::find_if(
      subcommands, [&](const Subcommand& s) { return EqualsIgnoringCase(name, s.name); });
  return at == subcommands.end() ? nullptr : &*at;
}

std::string SubcommandError(const Command& command, std::span<const std::string_view> args) {
  if (args.size() < 2 || IsHelp(args)) return {};
  if (EqualsIgnoringCase(args[1], "help")) {
    return fmt::format("ERR wrong number of arguments for '{}|help' command", command.name);
  }
  const Subcommand* const sub = FindSubcommand(command, args[1]);
  if (sub == nullptr) {
    return fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", args[1].substr(0, 128),
                       UpperCase(command.name));
  }
  if (AcceptsCount(sub->arity, args.size())) return {};
  return fmt::format("ERR wrong number of arguments for '{}' command",
                     FullName(command, sub->name));
}

void ReplyWrongCount(const ServerCall& call) {
  call.Error(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  call.arg(1).substr(0, 128), UpperCase(call.command().name)));
}

void RunSubcommand(const ServerCall& call) {
  if (IsHelp(call.args())) return ReplyHelp(call, call.command().subcommands());
  FindSubcommand(call.command(), call.arg(1))->run(call);
}

}  // namespace skep
