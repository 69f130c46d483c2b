// CLIENT: what a connection tells of itself, and what is done to connections.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/decimal.h"
#include "server/client_name.h"
#include "server/commands.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep {

bool IsClientName(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

bool SetClientName(const ServerCall& call, std::string_view name) {
  if (name.size() > ClientRegistry::kNameBytesMax) {
    call.Error(kClientNameTooLong);
    return false;
  }
  if (!IsClientName(name)) {
    call.Error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  call.administration().clients().SetName(*call.session().info, name);
  return true;
}

namespace commands {
namespace {

void ClientId(const ServerCall& call) {
  call.reply().Integer(static_cast<int64_t>(call.session().info->id));
}

void ClientInfoLine(const ServerCall& call) {
  call.reply().Verbatim(
      "txt", call.administration().clients().Describe(*call.session().info, call.monotonic_ms()));
}

// The type of CLIENT LIST and CLIENT KILL, if it is one of Redis's.
std::optional<ClientClass> ParseClientType(std::string_view type) {
  if (EqualsIgnoringCase(type, "normal")) return ClientClass::kNormal;
  if (EqualsIgnoringCase(type, "pubsub")) return ClientClass::kPubSub;
  const bool is_other = EqualsIgnoringCase(type, "master") || EqualsIgnoringCase(type, "slave") ||
                        EqualsIgnoringCase(type, "replica");
  return is_other ? std::optional(ClientClass::kOther) : std::nullopt;
}

// The lines of some clients, in the order in which they are named.
void ClientListIds(const ServerCall& call, std::span<const std::string_view> ids) {
  std::string lines;
  for (const std::string_view word : ids) {
    const auto id = ParseInt64(word);
    if (!id) return call.Error("ERR Invalid client ID");
    if (*id > 0) {
      lines +=
          call.administration().clients().Describe(static_cast<uint64_t>(*id), call.monotonic_ms());
    }
  }
  call.reply().Verbatim("txt", lines);
}

// CLIENT LIST [TYPE type | ID id ...]
void ClientList(const ServerCall& call) {
  const auto options = call.args().subspan(2);
  if (options.size() > 1 && EqualsIgnoringCase(options[0], "id")) {
    return ClientListIds(call, options.subspan(1));
  }
  std::optional<ClientClass> of_class;
  if (options.size() == 2 && EqualsIgnoringCase(options[0], "type")) {
    of_class = ParseClientType(options[1]);
    if (!of_class) {
      return call.Error(fmt::format("ERR Unknown client type '{}'", options[1]));
    }
  } else if (!options.empty()) {
    return call.Error(kSyntaxError);
  }
  call.reply().Verbatim("txt",
                        call.administration().clients().DescribeAll(call.monotonic_ms(), of_class));
}

void ClientSetName(const ServerCall& call) {
  if (SetClientName(call, call.arg(2))) call.reply().SimpleString("OK");
}

void ClientSetInfo(const ServerCall& call) {
  const bool name = EqualsIgnoringCase(call.arg(2), "lib-name");
  if (!name && !EqualsIgnoringCase(call.arg(2), "lib-ver")) {
    return call.Error(fmt::format("ERR Unrecognized option '{}'", call.arg(2)));
  }
  if (call.arg(3).size() > ClientRegistry::kNameBytesMax) return call.Error(kClientNameTooLong);
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
    filter.of_class = ParseClientType(value);
    if (!filter.of_class) {
      return fmt::format("ERR Unknown client type '{}'", value);
    }
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

// The times of accesses to keys are not kept, so there is nothing to turn off.
void ClientNoTouch(const ServerCall& call) {
  const bool on = EqualsIgnoringCase(call.arg(2), "on");
  if (!on && !EqualsIgnoringCase(call.arg(2), "off")) return call.Error(kSyntaxError);
  call.reply().SimpleString("OK");
}

// CLIENT PAUSE milliseconds [WRITE | ALL]
void ClientPauseAll(const ServerCall& call) {
  const auto timeout_ms = ParseInt64(call.arg(2));
  if (call.args().size() > 4) return ReplyWrongCount(call);
  const bool only_writes = call.args().size() == 4 && EqualsIgnoringCase(call.arg(3), "write");
  if (call.args().size() == 4 && !only_writes && !EqualsIgnoringCase(call.arg(3), "all")) {
    return call.Error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  if (!timeout_ms) return call.Error("ERR timeout is not an integer or out of range");
  if (*timeout_ms < 0) return call.Error("ERR timeout is negative");
  const uint64_t now_ms = call.monotonic_ms();
  const uint64_t longest_ms = UINT64_MAX - now_ms;
  call.state().pause().Begin(now_ms + std::min(static_cast<uint64_t>(*timeout_ms), longest_ms),
                             only_writes, now_ms);
  call.reply().SimpleString("OK");
}

void ClientUnpause(const ServerCall& call) {
  call.state().pause().End();
  call.reply().SimpleString("OK");
}

void ClientReply(const ServerCall& call) {
  Silence& silence = call.session().silence;
  if (EqualsIgnoringCase(call.arg(2), "on")) {
    silence = {};
    call.reply().SimpleString("OK");
  } else if (EqualsIgnoringCase(call.arg(2), "off")) {
    silence = {.is_on = true};
  } else if (EqualsIgnoringCase(call.arg(2), "skip")) {
    if (!silence.is_on) silence.skips = Silence::kThisAndNext;
  } else {
    call.Error(kSyntaxError);
  }
}

// CLIENT UNBLOCK id [TIMEOUT | ERROR]
void ClientUnblock(const ServerCall& call) {
  if (call.args().size() > 4) return ReplyWrongCount(call);
  const bool has_reason = call.args().size() == 4;
  if (has_reason && !EqualsIgnoringCase(call.arg(3), "timeout") &&
      !EqualsIgnoringCase(call.arg(3), "error")) {
    return call.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  const auto id = ParseInt64(call.arg(2));
  if (!id) return call.Error(kNotAnInteger);
  const bool is_error = has_reason && EqualsIgnoringCase(call.arg(3), "error");
  const auto state = is_error ? KeyWaiter::State::kUnblocked : KeyWaiter::State::kTimedOut;
  call.reply().Integer(call.state().waiters().Unblock(static_cast<uint64_t>(*id), state) ? 1 : 0);
}

// The error of options of CLIENT TRACKING that are none; empty if there is no such error.
std::string_view TrackingOptionsError(std::span<const std::string_view> options) {
  constexpr std::string_view kWords[] = {"bcast", "noloop", "optin", "optout"};
  for (size_t i = 0; i < options.size(); ++i) {
    const bool has_value = i + 1 < options.size();
    if (has_value && EqualsIgnoringCase(options[i], "redirect")) {
      if (!ParseInt64(options[++i])) return kNotAnInteger;
    } else if (has_value && EqualsIgnoringCase(options[i], "prefix")) {
      ++i;
    } else if (std::ranges::none_of(kWords, [&](std::string_view word) {
                 return EqualsIgnoringCase(options[i], word);
               })) {
      return kSyntaxError;
    }
  }
  return {};
}

// CLIENT TRACKING and its kin: no client is told which keys have changed.
void ClientTracking(const ServerCall& call) {
  const std::string_view error = TrackingOptionsError(call.args().subspan(3));
  if (!error.empty()) return call.Error(error);
  const bool on = EqualsIgnoringCase(call.arg(2), "on");
  if (!on && !EqualsIgnoringCase(call.arg(2), "off")) return call.Error(kSyntaxError);
  if (on) return call.Error("ERR clients are not told which keys have changed");
  call.reply().SimpleString("OK");
}

void ClientTrackingInfo(const ServerCall& call) {
  RespWriter reply = call.reply();
  reply.Map(3);
  reply.Bulk("flags");
  reply.Set(1);
  reply.Bulk("off");
  reply.Bulk("redirect");
  reply.Integer(-1);
  reply.Bulk("prefixes");
  reply.Array(0);
}

void ClientGetRedir(const ServerCall& call) { call.reply().Integer(-1); }

void ClientCaching(const ServerCall& call) {
  call.Error(
      "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
      "OPTOUT mode enabled");
}

constexpr Subcommand kClientSubcommands[] = {
    {"caching", 3, "<YES | NO>", "Return an error: there is no tracking.", ClientCaching},
    {"durability", 3, "<ALWAYS | NEXT | DEFAULT>",
     "Reply when a write survives a power loss: always, to the next command; or as appendfsync "
     "says.",
     ClientDurability},
    {"getname", 2, "", "Return the name of the current connection.", ClientGetName},
    {"getredir", 2, "", "Return -1: there is no tracking.", ClientGetRedir},
    {"id", 2, "", "Return the ID of the current connection.", ClientId},
    {"info", 2, "", "Return information about the current client connection.", ClientInfoLine},
    {"kill", -3, "<addr | filter value [filter value ...]>",
     "End the connections that match: ID, TYPE, ADDR, LADDR, USER, SKIPME <YES | NO>.", ClientKill},
    {"list", -2, "[TYPE <type> | ID <id> ...]", "Return information about client connections.",
     ClientList},
    {"no-evict", 3, "<ON | OFF>", "Keep the current connection when maxmemory-clients is exceeded.",
     ClientNoEvict},
    {"no-touch", 3, "<ON | OFF>", "Do nothing: the times of accesses to keys are not kept.",
     ClientNoTouch},
    {"pause", -3, "<milliseconds> [WRITE | ALL]",
     "Let commands of all clients wait, or only those that write.", ClientPauseAll},
    {"reply", 3, "<ON | OFF | SKIP>", "Send replies, none, or none to the next command.",
     ClientReply},
    {"setinfo", 4, "<LIB-NAME | LIB-VER> <value>", "Name the library of the current connection.",
     ClientSetInfo},
    {"setname", 3, "<name>", "Assign the name <name> to the current connection.", ClientSetName},
    {"tracking", -3, "OFF", "Do nothing: clients are not told which keys have changed.",
     ClientTracking},
    {"trackinginfo", 2, "", "Return that there is no tracking.", ClientTrackingInfo},
    {"unblock", -3, "<id> [TIMEOUT | ERROR]", "End the wait of a client for a key.", ClientUnblock},
    {"unpause", 2, "", "End a pause.", ClientUnpause},
};

}  // namespace

void RunClient(const ServerCall& call) { RunSubcommand(call); }

std::span<const Subcommand> ClientSubcommands() { return kClientSubcommands; }

}  // namespace commands
}  // namespace skep
