#include "tools/cli/store_commands.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "server/commands.h"
#include "wire/resp_writer.h"

namespace skep::cli {
namespace {

constexpr std::string_view kSince = "0.1.0";
constexpr std::string_view kNotOfIt = "it is not of the transaction";

// The server's commands that need nothing but a CommandHost.
constexpr std::string_view kPlanned[] = {
    "append",  "decr",      "decrby",      "del",      "delex",      "digest",  "discard",
    "exec",    "exists",    "expire",      "expireat", "expiretime", "flushdb", "get",
    "getdel",  "getex",     "getset",      "incr",     "incrby",     "kbatch",  "kcas",
    "kceil",   "kcount",    "kdelrange",   "kexpire",  "kfirst",     "kfloor",  "klast",
    "krange",  "mget",      "mset",        "msetex",   "msetnx",     "multi",   "persist",
    "pexpire", "pexpireat", "pexpiretime", "psetex",   "pttl",       "rename",  "renamenx",
    "set",     "setex",     "setnx",       "strlen",   "ttl",        "type",    "unlink",
    "vfilter", "vreduce",   "vupdate"};

constexpr Command kDbsize = {.name = "dbsize",
                             .arity = 1,
                             .group = "server",
                             .since = "1.0.0",
                             .summary = "Returns the number of keys.",
                             .no_multi = kNotOfIt};
constexpr Command kInfo = {.name = "info",
                           .arity = 1,
                           .group = "server",
                           .since = "1.0.0",
                           .summary = "Describes the keyspaces that are used.",
                           .no_multi = kNotOfIt};
constexpr Command kSnapshot = {
    .name = "snapshot",
    .arity = -1,
    .group = "server",
    .since = kSince,
    .arguments = "[END]",
    .summary =
        "Pins the database as it is now: reads are at it until SNAPSHOT END. Returns its "
        "version.",
    .no_multi = kNotOfIt};

// Returns whether the functions of the command that StoreSession::RunPlanned calls need no server.
bool RunsHere(const Command& command) {
  if (command.plan == nullptr && command.finish == nullptr) return !command.alone.needs_server();
  return !command.plan.needs_server() && !command.finish.needs_server();
}

// Returns all commands, sorted by name.
std::vector<StoreCommand> MakeAll() {
  std::vector<StoreCommand> all = {{&kDbsize, OwnCommand::kDbsize},
                                   {&kInfo, OwnCommand::kInfo},
                                   {FindCommand("ping"), OwnCommand::kPing},
                                   {FindCommand("save"), OwnCommand::kSave},
                                   {FindCommand("select"), OwnCommand::kSelect},
                                   {&kSnapshot, OwnCommand::kSnapshot}};
  for (const std::string_view name : kPlanned) all.push_back({.command = FindCommand(name)});
  for (const StoreCommand& c : all) SKEP_CHECK(c.command != nullptr);
  for (const StoreCommand& c : all) SKEP_CHECK(c.own != OwnCommand::kNone || RunsHere(*c.command));
  std::ranges::sort(all, {}, [](const StoreCommand& c) { return c.command->name; });
  return all;
}

std::span<const StoreCommand> All() {
  static const std::vector<StoreCommand> all = MakeAll();
  return all;
}

}  // namespace

StoreCommand FindStoreCommand(std::string_view name) {
  const auto at = std::ranges::find_if(
      All(), [&](const StoreCommand& c) { return EqualsIgnoringCase(c.command->name, name); });
  return at == All().end() ? StoreCommand() : *at;
}

std::string StoreCommandNames() {
  std::string names;
  for (const StoreCommand& c : All()) {
    if (!names.empty()) names += ' ';
    names += UpperCase(c.command->name);
  }
  return names;
}

RespReply StoreCommandDocs() {
  std::string bytes;
  RespWriter(bytes, 2).Map(All().size());
  for (const StoreCommand& c : All()) commands::ReplyDocs(RespWriter(bytes, 2), *c.command);
  return ReplyOf(bytes);
}

RespReply ReplyOf(std::string_view bytes) {
  RespReplyParser parser;
  RespReply reply;
  SKEP_CHECK(parser.Next(bytes, reply) == RespReplyParser::Event::kReply);
  return reply;
}

}  // namespace skep::cli
