// skep-netindex: maps of ranges, which make one keyspace of several servers and pools; and programs
// in a network driver's hook, which answer hot GETs of a server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "server/version.h"
#include "tools/netindex/range_commands.h"
#ifdef SKEP_HAS_XDP
#include <map>
#include <utility>

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

}  // namespace
#endif

int main(int argc, char** argv) {
  using namespace skep;
  constexpr int kUsage = 2;
  CLI::App app("Says which ranges of a keyspace are at which server or pool", "skep-netindex");
  app.set_version_flag("--version", fmt::format("skep-netindex {}", kVersion));
  app.footer(
      "For example, keys before \"m\" at one server, the others in a pool:\n"
      "  skep-netindex --name users ctl set 10.0.0.7:6379 m=pool:cache\n"
      "Clients: Store::Connect(\"ranges://ZOOKEEPER/users\"), and skep-server --keyspace\n"
      "0=ranges,zk=...,name=users. docs/ranges.md has the rest.\n\n"
      "Exit status: 0 done; 1 it failed; 2 the command line is wrong.");
  app.require_subcommand(1);
  RangeCommandOptions options;
  options.map.zookeeper = "127.0.0.1:2181";
  options.map.name = "skep";
  app.add_option("--zk", options.map.zookeeper, "the servers of ZooKeeper: HOST:PORT,HOST:PORT")
      ->capture_default_str();
  app.add_option("--name", options.map.name, "of the map")->capture_default_str();
  app.add_option("--timeout", options.map.timeout_ms, "milliseconds to wait for ZooKeeper")
      ->check(CLI::Range(1u, 3'600'000u))
      ->capture_default_str();
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
#ifdef SKEP_HAS_XDP
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
#ifdef SKEP_HAS_XDP
  if (xdp->parsed()) return RunXdpHelper(helper);
#endif
  return set->parsed() ? SetRanges(options, ranges, replaces) : ShowRanges(options);
}
