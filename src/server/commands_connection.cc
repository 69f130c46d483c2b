// Commands about the connection itself.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/decimal.h"
#include "server/client_name.h"
#include "server/commands.h"
#include "server/password.h"
#include "server/server_call.h"
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

}  // namespace

void FinishPing(const Call& call, const Batch&, uint32_t) {
  if (call.args().size() > 2) {
    return call.Error("ERR wrong number of arguments for 'ping' command");
  }
  const bool has_message = call.args().size() == 2;
  if (call.session().protocol == 2 && IsSubscribed(call.session())) {
    call.reply().Array(2);
    call.reply().Bulk("pong");
    return call.reply().Bulk(has_message ? call.arg(1) : "");
  }
  if (has_message) return call.reply().Bulk(call.arg(1));
  call.reply().SimpleString("PONG");
}

void FinishEcho(const Call& call, const Batch&, uint32_t) { call.reply().Bulk(call.arg(1)); }

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
  if (hello.name && !SetClientName(call, *hello.name)) return;
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
  call.deliveries().Leave(session);
  SetProtocol(session, 2);
  session.syncs_always = false;
  session.syncs = 0;
  session.silence = {};
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
