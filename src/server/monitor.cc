#include "server/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "server/command.h"
#include "server/server_state.h"
#include "server/slow_log.h"

namespace skep {
namespace {

constexpr uint64_t kUsPerSecond = 1'000'000;

// Subcommands that administrate the server, of commands that have others, too.
constexpr std::string_view kAdministrating[] = {
    "acl|deluser",     "acl|dryrun",   "acl|getuser",    "acl|list",
    "acl|load",        "acl|log",      "acl|save",       "acl|setuser",
    "acl|users",       "client|kill",  "client|list",    "client|no-evict",
    "client|no-touch", "client|pause", "client|unblock", "client|unpause"};
static_assert(std::ranges::is_sorted(kAdministrating));

// Those of Redis are not all that COMMAND calls so.
bool IsTold(const Command& command, std::span<const std::string_view> args) {
  if (command.name == "lastsave" || command.name == "role") return true;
  if (command.name != "acl" && command.name != "client") return !command.has(Command::kAdmin);
  const std::string name =
      fmt::format("{}|{}", command.name, args.size() > 1 ? LowerCase(args[1]) : std::string());
  return !std::ranges::binary_search(kAdministrating, std::string_view(name));
}

void AppendQuoted(std::string_view word, std::string& line) {
  line += '"';
  for (const char c : word) {
    constexpr std::string_view kNamed = "\\\"\n\r\t\a\b";
    constexpr std::string_view kNames = "\\\"nrtab";
    if (const size_t at = kNamed.find(c); at != std::string_view::npos) {
      line += '\\';
      line += kNames[at];
    } else if (c >= ' ' && c <= '~') {
      line += c;
    } else {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<uint8_t>(c));
    }
  }
  line += '"';
}

}  // namespace

std::string MonitorLine(uint64_t unix_us, uint32_t keyspace, std::string_view peer,
                        std::span<const std::string_view> args) {
  std::string line = fmt::format("{}.{:06} [{} {}]", unix_us / kUsPerSecond, unix_us % kUsPerSecond,
                                 keyspace, peer);
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string_view word = IsSecret(args, i) ? kSecret : args[i];
    const size_t left = kMonitorLineBytesMax - std::min(line.size(), kMonitorLineBytesMax);
    line += ' ';
    AppendQuoted(word.substr(0, left), line);
    if (word.size() <= left) continue;
    line += "...";
    break;
  }
  return line;
}

void TellMonitors(ServerState& state, const Session& session, const Command& command,
                  std::span<const std::string_view> args, uint64_t bytes_max) {
  if (args.empty() || !IsTold(command, args)) return;
  const uint64_t unix_us = state.environment().clock.WallUs();
  state.subscriptions().Publish(
      {.channel = {},
       .payload = MonitorLine(unix_us, session.keyspace, session.info->peer, args),
       .kind = ChannelKind::kCommands,
       .gates = {}},
      bytes_max);
}

}  // namespace skep
