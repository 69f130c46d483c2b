// Commands about replicas, clusters, modules and users: the answers of a server that is alone, has
// no modules and one user.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "server/command_categories.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/glob.h"
#include "server/server_call.h"
#include "server/subcommands.h"
#include "server/version.h"

namespace skep {
namespace commands_alone {
namespace {

// ---- Replicas

// WAIT count milliseconds: no replica will ever acknowledge anything, so nobody waits.
void FinishWait(const Call& call, const Batch&, uint32_t) {
  if (!ParseInt64(call.arg(1))) return call.Error(kNotAnInteger);
  const auto timeout_ms = ParseInt64(call.arg(2));
  if (!timeout_ms) return call.Error("ERR timeout is not an integer or out of range");
  if (*timeout_ms < 0) return call.Error("ERR timeout is negative");
  call.reply().Integer(0);
}

void FinishRole(const Call& call, const Batch&, uint32_t) {
  RespWriter reply = call.reply();
  reply.Array(3);
  reply.Bulk("master");
  reply.Integer(0);  // the offset of the replication
  reply.Array(0);    // the replicas
}

// REPLICAOF NO ONE: it is that already.
void FinishReplicaOf(const Call& call, const Batch&, uint32_t) {
  if (EqualsIgnoringCase(call.arg(1), "no") && EqualsIgnoringCase(call.arg(2), "one")) {
    return call.reply().SimpleString("OK");
  }
  call.Error("ERR this server can be nobody's replica");
}

void FinishFailover(const Call& call, const Batch&, uint32_t) {
  call.Error("ERR FAILOVER requires connected replicas.");
}

// ---- Clusters

void FinishNoCluster(const Call& call, const Batch&, uint32_t) {
  call.Error("ERR This instance has cluster support disabled");
}

// ---- Modules

void ModuleList(const ServerCall& call) { call.reply().Array(0); }

constexpr Subcommand kModuleSubcommands[] = {
    {"list", 2, "", "Return an empty array: there are no modules.", ModuleList},
};
std::span<const Subcommand> ModuleSubcommands() { return kModuleSubcommands; }

// ---- Users

void AclWhoAmI(const ServerCall& call) { call.reply().Bulk("default"); }

void AclUsers(const ServerCall& call) {
  call.reply().Array(1);
  call.reply().Bulk("default");
}

// What the one user may do: everything. Its password is not told, nor a digest of it.
constexpr std::string_view kHidden = "(redacted)";
constexpr std::string_view kOneUser =
    "ERR there is one user, default, who may do everything; CONFIG SET requirepass changes the "
    "password";

bool IsDefault(std::string_view user) { return user == "default"; }

void AclList(const ServerCall& call) {
  const bool has_password = !call.turn().options().requirepass.empty();
  call.reply().Array(1);
  call.reply().Bulk(fmt::format("user default on {}{} ~* &* +@all", has_password ? "#" : "nopass",
                                has_password ? kHidden : ""));
}

void AclGetUser(const ServerCall& call) {
  if (!IsDefault(call.arg(2))) return call.reply().Null();
  const bool has_password = !call.turn().options().requirepass.empty();
  RespWriter reply = call.reply();
  reply.Map(6);
  reply.Bulk("flags");
  reply.Set(has_password ? 1 : 2);
  reply.Bulk("on");
  if (!has_password) reply.Bulk("nopass");
  reply.Bulk("passwords");
  reply.Array(has_password ? 1 : 0);
  if (has_password) reply.Bulk(kHidden);
  for (const auto& [name, value] :
       {std::pair("commands", "+@all"), {"keys", "~*"}, {"channels", "&*"}}) {
    reply.Bulk(name);
    reply.Bulk(value);
  }
  reply.Bulk("selectors");
  reply.Array(0);
}

// ACL DELUSER user ...: as in Redis, the users who are not there are not counted.
void AclDelUser(const ServerCall& call) {
  if (std::ranges::any_of(call.args().subspan(2), IsDefault)) {
    return call.Error("ERR The 'default' user cannot be removed");
  }
  call.reply().Integer(0);
}

void AclSetUser(const ServerCall& call) { call.Error(kOneUser); }

void AclNoFile(const ServerCall& call) {
  call.Error("ERR This server is not configured to use an ACL file: it has one user");
}

// ACL DRYRUN user command [argument ...]: whether the user may do that.
void AclDryRun(const ServerCall& call) {
  if (!IsDefault(call.arg(2))) {
    return call.Error(fmt::format("ERR User '{}' not found", call.arg(2)));
  }
  const Command* const command = FindCommand(call.arg(3));
  if (command == nullptr) {
    return call.Error(fmt::format("ERR Command '{}' not found", call.arg(3)));
  }
  if (!AcceptsCount(command->arity, call.args().size() - 3)) {
    return call.Error(WrongCountError(*command));
  }
  call.reply().SimpleString("OK");
}

// The categories without their @, or the commands of one.
void AclCat(const ServerCall& call) {
  const bool is_one = call.args().size() == 3;
  if (call.args().size() > 3) return ReplyWrongCount(call);
  std::vector<std::string> names;
  for (const CommandName& command : AllCommandNames()) {
    if (!is_one) {
      names.insert(names.end(), command.categories.begin(), command.categories.end());
    } else if (command.IsOf(call.arg(2))) {
      names.push_back(command.name);
    }
  }
  if (names.empty()) return call.Error(fmt::format("ERR Unknown category '{}'", call.arg(2)));
  std::ranges::sort(names);
  const auto rest = std::ranges::unique(names);
  names.erase(rest.begin(), rest.end());
  call.reply().Array(names.size());
  for (const std::string& name : names) call.reply().Bulk(name);
}

// ACL GENPASS [bits]: as many hexadecimal digits as have the bits.
void AclGenPass(const ServerCall& call) {
  constexpr int64_t kBits = 256;
  constexpr int64_t kBitsMax = 4096;
  constexpr int64_t kDigitBits = 4;
  constexpr size_t kWordDigits = 16;
  if (call.args().size() > 3) return ReplyWrongCount(call);
  int64_t bits = kBits;
  if (call.args().size() == 3) {
    const auto number = ParseInt64(call.arg(2));
    if (!number) return call.Error(kNotAnInteger);
    bits = *number;
  }
  if (bits <= 0 || bits > kBitsMax) {
    return call.Error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096");
  }
  const auto digits = static_cast<size_t>((bits + kDigitBits - 1) / kDigitBits);
  std::string password;
  while (password.size() < digits) {
    password += fmt::format("{:0{}x}", call.state().environment().random.Next(), kWordDigits);
  }
  call.reply().Bulk(std::string_view(password).substr(0, digits));
}

// ACL LOG [count | RESET]: a wrong password is in the server's own log.
void AclLog(const ServerCall& call) {
  if (call.args().size() > 3) return ReplyWrongCount(call);
  if (call.args().size() == 2) return call.reply().Array(0);
  if (EqualsIgnoringCase(call.arg(2), "reset")) return call.reply().SimpleString("OK");
  if (!ParseInt64(call.arg(2))) return call.Error(kNotAnInteger);
  call.reply().Array(0);
}

constexpr Subcommand kAclSubcommands[] = {
    {"cat", -2, "[<category>]", "Return the categories of commands, or the commands of one.",
     AclCat},
    {"deluser", -3, "<username> [<username> ...]", "Return 0: there are no further users.",
     AclDelUser},
    {"dryrun", -4, "<username> <command> [<arg> ...]",
     "Return whether the user may run the command, without running it.", AclDryRun},
    {"genpass", -2, "[<bits>]", "Return a password of random bits, 256 unless told otherwise.",
     AclGenPass},
    {"getuser", 3, "<username>", "Return what the user may do.", AclGetUser},
    {"list", 2, "", "Return the one user that there is, as rules.", AclList},
    {"load", 2, "", "Return an error: there is no file of users.", AclNoFile},
    {"log", -2, "[<count> | RESET]", "Return an empty array: refusals are in the server's log.",
     AclLog},
    {"save", 2, "", "Return an error: there is no file of users.", AclNoFile},
    {"setuser", -3, "<username> [<rule> ...]", "Return an error: there is one user.", AclSetUser},
    {"users", 2, "", "Return the one user that there is.", AclUsers},
    {"whoami", 2, "", "Return the user of this connection.", AclWhoAmI},
};
std::span<const Subcommand> AclSubcommands() { return kAclSubcommands; }

// ---- LOLWUT

void FinishLolwut(const Call& call, const Batch&, uint32_t) {
  const bool has_version = call.args().size() >= 3 && EqualsIgnoringCase(call.arg(1), "version");
  if (has_version && !ParseInt64(call.arg(2))) return call.Error(kNotAnInteger);
  call.reply().Verbatim("txt", fmt::format("Skep ver. {}\n", kVersion));
}

using commands::FinishSubcommand;
using enum Command::Flag;

constexpr Command kCommands[] = {
    {"acl",
     -2,
     kAdmin,
     0,
     0,
     0,
     "server",
     "6.0.0",
     "subcommand [argument ...]",
     "Tells of users and categories of commands.",
     nullptr,
     FinishSubcommand,
     nullptr,
     {},
     AclSubcommands},
    {"asking", 1, kFast, 0, 0, 0, "cluster", "3.0.0", "", "Returns an error: it is no cluster.",
     nullptr, FinishNoCluster},
    {"cluster", -2, 0, 0, 0, 0, "cluster", "3.0.0", "subcommand [argument ...]",
     "Returns an error: it is no cluster.", nullptr, FinishNoCluster},
    {"failover", -1, kAdmin, 0, 0, 0, "server", "6.2.0", "[argument ...]",
     "Returns an error: there are no replicas.", nullptr, FinishFailover},
    {"lolwut", -1, kReadOnly | kFast, 0, 0, 0, "server", "5.0.0", "[VERSION version]",
     "Returns the version of the server.", nullptr, FinishLolwut},
    {"module",
     -2,
     kAdmin,
     0,
     0,
     0,
     "server",
     "4.0.0",
     "subcommand [argument ...]",
     "Tells which modules there are: none.",
     nullptr,
     FinishSubcommand,
     nullptr,
     {},
     ModuleSubcommands},
    {"readonly", 1, kFast, 0, 0, 0, "cluster", "3.0.0", "", "Returns an error: it is no cluster.",
     nullptr, FinishNoCluster},
    {"readwrite", 1, kFast, 0, 0, 0, "cluster", "3.0.0", "", "Returns an error: it is no cluster.",
     nullptr, FinishNoCluster},
    {"replicaof", 3, kAdmin, 0, 0, 0, "server", "5.0.0", "NO ONE",
     "Does nothing: the server is nobody's replica.", nullptr, FinishReplicaOf},
    {"role", 1, kFast | kAdmin, 0, 0, 0, "server", "2.8.12", "",
     "Returns that the server is a master without replicas.", nullptr, FinishRole},
    {"slaveof", 3, kAdmin, 0, 0, 0, "server", "1.0.0", "NO ONE",
     "Does nothing: the server is nobody's replica.", nullptr, FinishReplicaOf},
    {"wait", 3, 0, 0, 0, 0, "generic", "3.0.0", "numreplicas timeout",
     "Returns 0: there are no replicas.", nullptr, FinishWait},
};

}  // namespace
}  // namespace commands_alone

std::span<const Command> AloneCommands() { return commands_alone::kCommands; }

}  // namespace skep
