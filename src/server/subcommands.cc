#include "server/subcommands.h"

#include <fmt/format.h>

#include <algorithm>

namespace skep {
namespace {

void ReplyHelp(const Call& call, std::span<const Subcommand> subcommands) {
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
  reply.SimpleString("    Print this help.");
}

}  // namespace

void RunSubcommand(const Call& call, std::span<const Subcommand> subcommands) {
  const std::string_view name = call.arg(1);
  const size_t count = call.args().size();
  if (EqualsIgnoringCase(name, "help") && count == 2) return ReplyHelp(call, subcommands);
  const auto sub = std::ranges::find_if(
      subcommands, [&](const Subcommand& s) { return EqualsIgnoringCase(name, s.name); });
  if (sub == subcommands.end()) {
    return call.Error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", name.substr(0, 128),
                                  UpperCase(call.command().name)));
  }
  if (!AcceptsCount(sub->arity, count)) {
    return call.Error(fmt::format("ERR wrong number of arguments for '{}|{}' command",
                                  call.command().name, sub->name));
  }
  sub->run(call);
}

}  // namespace skep
