// skep-netindex: maps of ranges, which make one keyspace of several servers and pools; programs in
// a network driver's hook, which answer hot GETs of a server; and switches that look keys up.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "server/version.h"
#include "tools/netindex/controller_command.h"
#include "tools/netindex/range_commands.h"
#ifdef SKEP_HAS_XDP
#include <map>
#include <utility>

#include "tools/netindex/switch_command.h"
#include "tools/netindex/xdp_command.h"

namespace {

void AddXdpOptions(CLI::App& app, skep::xdp::HelperOptions* options) {
  using skep::xdp::Mode;
  static const std::map<std::string, Mode> kModes = {
      {"auto", Mode::kAuto}, {"native", Mode::kNative}, {"generic", Mode::kGeneric}};
  app.add_option("--interface", options->interface, "whose datagrams are answered")->required();
  app.add_option("--socket", options->socket, "the unix socket where a server asks: its --xdp")
      ->required();
  app.add_option("--port", options->port, "the server's")->capture_default_str();
  app.add_option("--user", options->user, "who runs the server, and owns the socket");
  app.add_option("--mode", options->mode,
                 "native: in the driver; generic: behind it; auto: what it can")
      ->transform(CLI::CheckedTransformer(kModes).description("auto|native|generic"));
}

// --first and --last are duties of the switch, --as-p4 is how it looks.
void AddSwitchOptions(CLI::App& app, skep::netindex::SwitchOptions* options) {
  using skep::netindex::SwitchMode;
  static const std::map<std::string, SwitchMode> kModes = {
      {"native", SwitchMode::kNative}, {"generic", SwitchMode::kGeneric}, {"tc", SwitchMode::kTc}};
  const auto duty = [&](const char* name, uint16_t bit, const char* help) {
    app.add_flag_callback(
        name, [=] { options->duties = static_cast<uint16_t>(options->duties | bit); }, help);
  };
  app.add_option("--interface", options->interfaces, "whose packets are looked at; may be repeated")
      ->required();
  app.add_option("--socket", options->socket, "the unix socket where a controller asks")
      ->required();
  app.add_option("--service", options->service, "the IPv4 address of all servers together");
  app.add_option("--port", options->port, "of the servers")->capture_default_str();
  app.add_option("--mode", options->mode,
                 "native: in the driver; generic: behind it; tc: in the receive path")
      ->transform(CLI::CheckedTransformer(kModes).description("native|generic|tc"));
  duty("--first", SWITCH_FIRST, "has the fat root: the first switch on a way that looks keys up");
  duty("--last", SWITCH_LAST, "is the last one in front of servers");
  duty("--as-p4", SWITCH_AS_P4, "looks by 16-bit tables and 32-bit halves, as a P4 switch does");
}

}  // namespace
#endif

namespace {

constexpr const char* kFooter =
    "For example, keys before \"m\" at one server, the others in a pool:\n"
    "  skep-netindex --name users ctl set 10.0.0.7:6379 m=pool:cache\n"
    "Clients: Store::Connect(\"ranges://ZOOKEEPER/users\"), and skep-server --keyspace\n"
    "0=ranges,zk=...,name=users. docs/ranges.md has the rest.\n\n"
    "Exit status: 0 done; 1 it failed; 2 the command line is wrong.";

void AddMapOptions(CLI::App& app, skep::PoolOptions* map) {
  app.add_option("--zk", map->zookeeper, "the servers of ZooKeeper: HOST:PORT,HOST:PORT")
      ->capture_default_str();
  app.add_option("--name", map->name, "of the map")->capture_default_str();
  app.add_option("--timeout", map->timeout_ms, "milliseconds to wait for ZooKeeper")
      ->check(CLI::Range(1u, 3'600'000u))
      ->capture_default_str();
}

void AddControllerOptions(CLI::App& app, skep::ControllerOptions* options) {
  app.add_option("--server", options->servers,
                 "IPV4:PORT of the first range, LOWER=IPV4:PORT of each other one; may be\n"
                 "repeated; without it the servers are those of the map");
  app.add_option("--switch", options->switches,
                 "ROLE:SOCKET, or ROLE:SOCKET=SERVER,SERVER of those behind it; ROLE is core,\n"
                 "aggregation, edge, or only; may be repeated")
      ->required();
  app.add_option("--interval", options->interval_ms, "milliseconds between two rounds")
      ->check(CLI::Range(1u, 3'600'000u))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace skep;
  constexpr int kUsage = 2;
  CLI::App app("Says which ranges of a keyspace are at which server or pool", "skep-netindex");
  app.set_version_flag("--version", fmt::format("skep-netindex {}", kVersion));
  app.footer(kFooter);
  app.require_subcommand(1);
  RangeCommandOptions options;
  options.map.zookeeper = "127.0.0.1:2181";
  options.map.name = "skep";
  AddMapOptions(app, &options.map);
  CLI::App* const ctl =
      app.add_subcommand("ctl", "sets, shows or changes a map")->require_subcommand(1);
  CLI::App* const set = ctl->add_subcommand(
      "set", "makes a map, before there are data: it moves none, and clients read it once");
  std::vector<std::string> ranges;
  set->add_option("RANGES", ranges,
                  "where the first range is, then LOWER=WHERE of each other one; WHERE is\n"
                  "HOST:PORT or pool:NAME, a LOWER that begins with 0x is in hexadecimal")
      ->required();
  bool replaces = false;
  set->add_flag("--replace", replaces, "although there is one of this name");
  const char* const key_help =
      "the first key; the others are those up to the next border; 0x... is in hexadecimal";
  std::string lower, target;
  uint32_t wait_ms = 600'000;
  CLI::App* const move =
      ctl->add_subcommand("move",
                          "moves keys to another server, which is told of the map by\n"
                          "skep-server --ranges; they are read-only meanwhile");
  move->add_option("LOWER", lower, key_help)->required();
  move->add_option("TARGET", target, "HOST:PORT, as that server's --ranges has it")->required();
  move->add_option("--wait", wait_ms, "milliseconds until it is moved")->capture_default_str();
  CLI::App* const cancel =
      ctl->add_subcommand("cancel", "ends a move that is still copying; the keys stay");
  cancel->add_option("LOWER", lower, key_help)->required();
  CLI::App* const show = ctl->add_subcommand("show", "prints a map");
  show->add_flag("--json", options.as_json, "for programs");
  CLI::App* const controller = app.add_subcommand(
      "controller", "gives switches the upper levels of servers' trees (docs/switch.md)");
  ControllerOptions controlled;
  AddControllerOptions(*controller, &controlled);
#ifdef SKEP_HAS_XDP
  netindex::SwitchOptions switched;
  CLI::App* const switches = app.add_subcommand(
      "switch", "looks keys up while packets are forwarded; needs root (docs/switch.md)");
  AddSwitchOptions(*switches, &switched);
  CLI::App* const xdp = app.add_subcommand(
      "xdp", "lets a network driver answer hot GETs of a server; needs root (docs/xdp.md)");
  xdp::HelperOptions helper;
  AddXdpOptions(*xdp, &helper);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (move->parsed()) return MoveRange(options, lower, target, wait_ms);
  if (cancel->parsed()) return CancelMove(options, lower);
  if (controller->parsed()) {
    controlled.map = options.map;
    return RunController(controlled);
  }
#ifdef SKEP_HAS_XDP
  if (switches->parsed()) return RunSwitch(switched);
  if (xdp->parsed()) return RunXdpHelper(helper);
#endif
  return set->parsed() ? SetRanges(options, ranges, replaces) : ShowRanges(options);
}
