// Commands about the connection itself.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/password.h"
#include "server/server_call.h"
#include "server/subcommands.h"
#include "server/version.h"

namespace skep::commands {
namespace {

// Returns false, with the error sent, if the credentials are wrong.
bool Authenticate(const ServerCall& call, std::string_view user, std::string_view password) {
  const std::string& required = call.turn().options().requirepass;
  const bool right = user == "default" && (required.empty() || IsPassword(password, required));
  if (right) {
    call.session().authenticated = true;
    call.session().has_logged_in = true;
  } else {
    call.state().log().Report(Incident::kWrongPassword, fmt::format("a wrong password came from {}",
                                                                    call.session().info->peer));
    call.Error("WRONGPASS invalid username-password pair or user is disabled.");
  }
  return right;
}

bool IsClientName(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

constexpr std::string_view kNameTooLong = "ERR Client names cannot be longer than 256 bytes.";
static_assert(ClientRegistry::kNameBytesMax == 256);

// Returns false, with the error sent, if `name` is not a valid name.
bool SetName(const ServerCall& call, std::string_view name) {
  if (name.size() > ClientRegistry::kNameBytesMax) {
    call.Error(kNameTooLong);
    return false;
  }
  if (!IsClientName(name)) {
    call.Error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  call.administration().clients().SetName(*call.session().info, name);
  return true;
}

void SetProtocol(Session& session, int protocol) {
  session.protocol = protocol;
  session.info->protocol.store(protocol, std::memory_order_relaxed);
}

void SetKeyspace(Session& session, uint32_t keyspace) {
  session.keyspace = keyspace;
  session.info->keyspace.store(keyspace, std::memory_order_relaxed);
}

struct HelloArgs {
  std::optional<std::pair<std::string_view, std::string_view>> credentials;
  std::optional<std::string_view> name;
};

// Reads HELLO's options after the version; returns false, with the error sent, if one is wrong.
bool ParseHello(const ServerCall& call, HelloArgs& hello) {
  const auto args = call.args();
  for (size_t i = 2; i < args.size();) {
    const size_t left = args.size() - i - 1;
    if (EqualsIgnoringCase(args[i], "auth") && left >= 2) {
      hello.credentials.emplace(args[i + 1], args[i + 2]);
      i += 3;
    } else if (EqualsIgnoringCase(args[i], "setname") && left >= 1) {
      hello.name = args[i + 1];
      i += 2;
    } else {
      call.Error(fmt::format("ERR Syntax error in HELLO option '{}'", args[i]));
      return false;
    }
  }
  return true;
}

void ReplyHello(const ServerCall& call) {
  RespWriter reply = call.reply();
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("skep");
  reply.Bulk("version");
  reply.Bulk(kVersion);
  reply.Bulk("proto");
  reply.Integer(call.session().protocol);
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(call.session().info->id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.Array(0);
}

void ClientId(const ServerCall& call) {
  call.reply().Integer(static_cast<int64_t>(call.session().info->id));
}

void ClientInfoLine(const ServerCall& call) {
  call.reply().Verbatim(
      "txt", call.administration().clients().Describe(*call.session().info, call.monotonic_ms()));
}

void ClientList(const ServerCall& call) {
  if (call.args().size() > 2) return call.Error(kSyntaxError);
  call.reply().Verbatim("txt", call.administration().clients().DescribeAll(call.monotonic_ms()));
}

void ClientSetName(const ServerCall& call) {
  if (SetName(call, call.arg(2))) call.reply().SimpleString("OK");
}

void ClientSetInfo(const ServerCall& call) {
  const bool name = EqualsIgnoringCase(call.arg(2), "lib-name");
  if (!name && !EqualsIgnoringCase(call.arg(2), "lib-ver")) {
    return call.Error(fmt::format("ERR Unrecognized option '{}'", call.arg(2)));
  }
  if (call.arg(3).size() > ClientRegistry::kNameBytesMax) return call.Error(kNameTooLong);
  if (!IsClientName(call.arg(3))) {
    return call.Error(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", call.arg(2)));
  }
  call.administration().clients().SetLibrary(*call.session().info, name ? "lib-name" : "lib-ver",
                                             call.arg(3));
  call.reply().SimpleString("OK");
}

void ClientGetName(const ServerCall& call) {
  const std::string name = call.administration().clients().Name(*call.session().info);
  return name.empty() ? call.reply().Null() : call.reply().Bulk(name);
}

// Reads one filter of CLIENT KILL and its value. Returns Redis 7.0's error text, or an empty one.
std::string ParseKillFilter(std::string_view name, std::string_view value, ClientFilter& filter) {
  if (EqualsIgnoringCase(name, "id")) {
    const auto id = ParseInt64(value);
    if (!id || *id < 1) return "ERR client-id should be greater than 0";
    filter.id = static_cast<uint64_t>(*id);
  } else if (EqualsIgnoringCase(name, "type")) {
    const bool is_normal = EqualsIgnoringCase(value, "normal");
    const bool is_known =
        is_normal || EqualsIgnoringCase(value, "master") || EqualsIgnoringCase(value, "slave") ||
        EqualsIgnoringCase(value, "replica") || EqualsIgnoringCase(value, "pubsub");
    if (!is_known) return fmt::format("ERR Unknown client type '{}'", value);
    filter.is_normal = is_normal;
  } else if (EqualsIgnoringCase(name, "addr")) {
    filter.peer = value;
  } else if (EqualsIgnoringCase(name, "laddr")) {
    filter.local = value;
  } else if (EqualsIgnoringCase(name, "user")) {
    if (value != "default") return fmt::format("ERR No such user '{}'", value);
  } else if (EqualsIgnoringCase(name, "skipme")) {
    filter.skips_self = EqualsIgnoringCase(value, "yes");
    if (!filter.skips_self && !EqualsIgnoringCase(value, "no")) return std::string(kSyntaxError);
  } else {
    return std::string(kSyntaxError);
  }
  return {};
}

// CLIENT KILL address, or CLIENT KILL filter value [filter value ...].
void ClientKill(const ServerCall& call) {
  const bool by_address = call.args().size() == 3;
  ClientFilter filter;
  if (by_address) filter = {.peer = call.arg(2), .local = {}, .skips_self = false};
  for (size_t i = 2; !by_address && i < call.args().size(); i += 2) {
    if (i + 1 == call.args().size()) return call.Error(kSyntaxError);
    const std::string wrong = ParseKillFilter(call.arg(i), call.arg(i + 1), filter);
    if (!wrong.empty()) return call.Error(wrong);
  }
  bool ends_self = false;
  const size_t count = call.administration().EndClients(filter, *call.session().info, &ends_self);
  if (ends_self) call.session().closing = true;
  if (!by_address) return call.reply().Integer(static_cast<int64_t>(count));
  if (count == 0) return call.Error("ERR No such client");
  call.reply().SimpleString("OK");
}

void ClientNoEvict(const ServerCall& call) {
  const bool on = EqualsIgnoringCase(call.arg(2), "on");
  if (!on && !EqualsIgnoringCase(call.arg(2), "off")) return call.Error(kSyntaxError);
  call.session().info->is_kept.store(on, std::memory_order_relaxed);
  call.reply().SimpleString("OK");
}

void ClientDurability(const ServerCall& call) {
  const bool always = EqualsIgnoringCase(call.arg(2), "always");
  const bool next = EqualsIgnoringCase(call.arg(2), "next");
  if (!always && !next && !EqualsIgnoringCase(call.arg(2), "default")) {
    return call.Error("ERR durability is ALWAYS, NEXT or DEFAULT");
  }
  if (call.administration().persistence() == nullptr) {
    return call.Error("ERR the data are in memory only: start the server with --dir");
  }
  constexpr int kThisAndNext = 2;
  call.session().syncs = next ? kThisAndNext : 0;
  call.session().syncs_always = always;
  call.reply().SimpleString("OK");
}

constexpr Subcommand kClientSubcommands[] = {
    {"durability", 3, "<ALWAYS | NEXT | DEFAULT>",
     "Reply when a write survives a power loss: always, to the next command; or as appendfsync "
     "says.",
     ClientDurability},
    {"getname", 2, "", "Return the name of the current connection.", ClientGetName},
    {"id", 2, "", "Return the ID of the current connection.", ClientId},
    {"info", 2, "", "Return information about the current client connection.", ClientInfoLine},
    {"kill", -3, "<addr | filter value [filter value ...]>",
     "End the connections that match: ID, TYPE, ADDR, LADDR, USER, SKIPME <YES | NO>.", ClientKill},
    {"list", -2, "", "Return information about client connections.", ClientList},
    {"no-evict", 3, "<ON | OFF>", "Keep the current connection when maxmemory-clients is exceeded.",
     ClientNoEvict},
    {"setinfo", 4, "<LIB-NAME | LIB-VER> <value>", "Name the library of the current connection.",
     ClientSetInfo},
    {"setname", 3, "<name>", "Assign the name <name> to the current connection.", ClientSetName},
};

}  // namespace

void FinishPing(const Call& call, const Batch&, uint32_t) {
  if (call.args().size() > 2) {
    return call.Error("ERR wrong number of arguments for 'ping' command");
  }
  if (call.args().size() == 2) return call.reply().Bulk(call.arg(1));
  call.reply().SimpleString("PONG");
}

void FinishEcho(const Call& call, const Batch&, uint32_t) { call.reply().Bulk(call.arg(1)); }

void RunClient(const ServerCall& call) { RunSubcommand(call); }

std::span<const Subcommand> ClientSubcommands() { return kClientSubcommands; }

void RunAuth(const ServerCall& call) {
  if (call.args().size() > 3) return call.Error(kSyntaxError);
  const bool with_user = call.args().size() == 3;
  if (!with_user && call.turn().options().requirepass.empty()) {
    return call.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  if (Authenticate(call, with_user ? call.arg(1) : "default", call.args().back())) {
    call.reply().SimpleString("OK");
  }
}

void RunHello(const ServerCall& call) {
  Session& session = call.session();
  int protocol = session.protocol;
  if (call.args().size() > 1) {
    const auto wanted = ParseInt64(call.arg(1));
    if (!wanted) return call.Error("ERR Protocol version is not an integer or out of range");
    if (*wanted != 2 && *wanted != 3) return call.Error("NOPROTO unsupported protocol version");
    protocol = static_cast<int>(*wanted);
  }
  HelloArgs hello;
  if (!ParseHello(call, hello)) return;
  if (hello.credentials &&
      !Authenticate(call, hello.credentials->first, hello.credentials->second)) {
    return;
  }
  if (!call.turn().IsAuthenticated(session)) {
    return call.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (hello.name && !SetName(call, *hello.name)) return;
  SetProtocol(session, protocol);
  ReplyHello(call);
}

void RunQuit(const Call& call) {
  call.reply().SimpleString("OK");
  call.session().closing = true;
}

void RunReset(const ServerCall& call) {
  Session& session = call.session();
  session.EndTransaction();
  SetProtocol(session, 2);
  session.syncs_always = false;
  session.syncs = 0;
  SetKeyspace(session, 0);
  session.authenticated = call.turn().options().requirepass.empty();
  call.administration().clients().SetName(*session.info, "");
  call.reply().SimpleString("RESET");
}

void RunSelect(const ServerCall& call) {
  const auto index = ParseInt64(call.arg(1));
  if (!index) return call.Error(kNotAnInteger);
  if (*index < 0 || *index >= call.state().keyspaces().count()) {
    return call.Error("ERR DB index is out of range");
  }
  const auto keyspace = static_cast<uint32_t>(*index);
  if (keyspace != call.session().keyspace && !call.session().watched.empty()) {
    return call.Error("ERR SELECT while keys are watched: a transaction is about one database");
  }
  SetKeyspace(call.session(), keyspace);
  call.reply().SimpleString("OK");
}

}  // namespace skep::commands
