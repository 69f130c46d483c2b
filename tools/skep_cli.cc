// skep-cli: the command-line client of a server: runs commands, and has tools that people need.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/version.h"
#include "tools/cli/bulk.h"
#include "tools/cli/console.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/line_editor.h"
#include "tools/cli/store_peer.h"
#include "tools/cli/watch.h"
#include "tools/dump_command.h"

namespace {

using namespace skep;

struct Options {
  cli::SessionOptions session;
  bool json = false, hex = false, raw = false, no_raw = false;
  bool takes_last_from_input = false;
  std::optional<cli::BulkFormat> bulk;
  std::vector<std::string> export_bounds;
  bool import = false;
  DumpFormat format = DumpFormat::kResp;
  bool latency = false, stat = false;
  double interval_s = 1;
  uint64_t lines_max = 0;
  std::vector<std::string> command;
};

int RefuseUsage(const std::string& why) {
  cli::Complain(why);
  return cli::kNotConnected;
}

void AddServerOptions(CLI::App& app, cli::SessionOptions& session) {
  ServerAddress& server = session.server;
  app.add_option("-h,--host", server.host, "of the server")->capture_default_str();
  app.add_option("-p,--port", server.port, "of the server")->capture_default_str();
  app.add_option("-s,--socket", server.socket, "a unix socket, instead of host and port");
  app.add_option("--user", server.user, "to log in as");
  app.add_option("-a,--password", server.password, "of the server; better in the variable")
      ->envname("SKEPCLI_AUTH");
  app.add_option("-n,--keyspace", session.keyspace, "to begin in")->capture_default_str();
  app.add_flag("-3,--resp3", session.resp3, "speak RESP3");
  app.add_flag("--packed", session.packed,
               "speak Skep's packed protocol; not with --resp3, --user, --latency, --stat, "
               "--bulk commands");
}

void AddReplyOptions(CLI::App& app, Options& options) {
  app.add_flag("-x", options.takes_last_from_input,
               "the last argument is what comes from standard input");
  auto* json = app.add_flag("--json", options.json, "print replies as JSON");
  app.add_flag("--hex", options.hex, "print strings as 0x.., and take arguments that look so");
  auto* raw = app.add_flag("--raw", options.raw, "print bytes as they are, also on a terminal");
  app.add_flag("--no-raw", options.no_raw, "print as on a terminal, also into a pipe")
      ->excludes(raw)
      ->excludes(json);
}

void AddModes(CLI::App& app, Options& options) {
  const std::map<std::string, cli::BulkFormat> bulks = {{"commands", cli::BulkFormat::kCommands},
                                                        {"tab", cli::BulkFormat::kTab}};
  const std::map<std::string, DumpFormat> dumps = {{"resp", DumpFormat::kResp},
                                                   {"jsonl", DumpFormat::kJsonl}};
  app.add_option(
         "--bulk", options.bulk,
         "load standard input: commands, as RESP or as lines; or tab, lines of key TAB value")
      ->transform(CLI::CheckedTransformer(bulks).description(""))
      ->type_name("commands|tab");
  app.add_option("--export", options.export_bounds,
                 "write a range of keys to standard output; bounds as of KRANGE")
      ->expected(2)
      ->type_name("MIN MAX");
  app.add_flag("--import", options.import, "store what --export has written, from standard input");
  app.add_option("--format", options.format, "of --export and --import: resp or jsonl")
      ->transform(CLI::CheckedTransformer(dumps).description(""))
      ->type_name("FORMAT")
      ->default_str("resp");
  app.add_flag("--latency", options.latency, "round trips of PING, a line a second");
  app.add_flag("--stat", options.stat, "keys, memory, clients and commands, a line a second");
  app.add_option("-i,--interval", options.interval_s, "of --latency and --stat, in seconds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("-c,--count", options.lines_max, "end after so many lines of them");
}

ConnectPeer ConnectOf(const Options& options) {
  return options.session.packed ? cli::ConnectStorePeer : ConnectRespPeer;
}

// Converts two bounds of KRANGE to the range of an export: from a key on, before another.
bool ParseBounds(const std::string& min, const std::string& max, ExportOptions* range) {
  if (min == "PREFIX" || min == "prefix") {
    range->prefix = max;
    return true;
  }
  const auto is_bound = [](const std::string& text) {
    return text.starts_with('[') || text.starts_with('(');
  };
  if ((min != "-" && !is_bound(min)) || (max != "+" && !is_bound(max))) return false;
  // The key directly after a key is that key and a zero byte.
  const std::string next(1, '\0');
  if (min != "-") range->from = min.substr(1) + (min[0] == '(' ? next : "");
  if (max != "+") range->to = max.substr(1) + (max[0] == '[' ? next : "");
  return true;
}

DumpCommand DumpCommandOf(const Options& options) {
  DumpCommand dump;
  dump.program = "skep-cli";
  dump.server = options.session.server;
  dump.connect = ConnectOf(options);
  dump.format = options.format;
  return dump;
}

int Export(const Options& options) {
  DumpCommand dump = DumpCommandOf(options);
  dump.db = options.session.keyspace;
  if (!ParseBounds(options.export_bounds[0], options.export_bounds[1], &dump.range)) {
    return RefuseUsage("--export takes - or [key or (key, and + or [key or (key; or PREFIX p");
  }
  return RunExport(dump);
}

int Import(const Options& options, bool has_keyspace) {
  DumpCommand dump = DumpCommandOf(options);
  if (has_keyspace) dump.db = options.session.keyspace;
  return RunImport(dump);
}

cli::ReplyFormat FormatOf(const Options& options) {
  const bool is_raw = options.raw || (!options.no_raw && isatty(STDOUT_FILENO) != 1);
  return {.style = options.json ? cli::ReplyStyle::kJson
                   : is_raw     ? cli::ReplyStyle::kRaw
                                : cli::ReplyStyle::kReadable,
          .hex = options.hex};
}

int RunCommands(Options& options) {
  cli::Console console(options.session, FormatOf(options));
  if (options.takes_last_from_input) {
    options.command.emplace_back(std::istreambuf_iterator<char>(std::cin),
                                 std::istreambuf_iterator<char>());
  }
  if (!options.command.empty()) return console.RunOnce(options.command);
  return cli::IsConversation() ? console.Converse() : console.RunInput();
}

// Returns the option that only RESP has, with a complaint, if there is one.
std::string WhyNotPacked(const Options& options) {
  const auto only_resp = [](bool is_given, std::string_view what) {
    return is_given ? fmt::format("{} needs RESP: without --packed", what) : "";
  };
  std::string why = only_resp(options.session.resp3, "--resp3");
  if (why.empty()) why = only_resp(!options.session.server.user.empty(), "--user");
  if (why.empty()) why = only_resp(options.latency, "--latency");
  if (why.empty()) why = only_resp(options.stat, "--stat");
  if (why.empty()) {
    why = only_resp(options.bulk == cli::BulkFormat::kCommands, "--bulk commands");
  }
  return why;
}

int RunMode(Options& options, bool has_keyspace) {
  const int modes = options.bulk.has_value() + !options.export_bounds.empty() + options.import +
                    options.latency + options.stat;
  if (modes > 1 || (modes == 1 && !options.command.empty())) {
    return RefuseUsage("one of --bulk, --export, --import, --latency, --stat, or a command");
  }
  if (options.session.packed) {
    if (const std::string why = WhyNotPacked(options); !why.empty()) return RefuseUsage(why);
  }
  const cli::WatchOptions watch = {.server = options.session.server,
                                   .interval_s = options.interval_s,
                                   .lines_max = options.lines_max};
  if (options.bulk) {
    return cli::RunBulk({.server = options.session.server,
                         .connect = ConnectOf(options),
                         .keyspace = options.session.keyspace,
                         .format = *options.bulk});
  }
  if (!options.export_bounds.empty()) return Export(options);
  if (options.import) return Import(options, has_keyspace);
  if (options.latency) return cli::WatchLatency(watch);
  if (options.stat) return cli::WatchStatistics(watch);
  return RunCommands(options);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  CLI::App app(
      "Talks to Skep, or to any server of the Redis protocol: [OPTIONS] COMMAND [ARGUMENT...]",
      "skep-cli");
  app.set_help_flag("--help", "this help");
  app.set_version_flag("--version", fmt::format("skep-cli {}", kVersion));
  app.footer(
      "Without COMMAND: a conversation on a terminal, else the lines of standard input.\n\n"
      "Exit status: 0 done; 1 the reply was an error; 2 there is no connection, or the command "
      "line "
      "is wrong.");
  // All words behind the first one that is no option belong to the command, dashes and all.
  app.prefix_command();
  Options options;
  AddServerOptions(app, options.session);
  AddReplyOptions(app, options);
  AddModes(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kDone : cli::kNotConnected;
  }
  options.command = app.remaining();
  if (!options.command.empty() && options.command[0].starts_with('-')) {
    return RefuseUsage(fmt::format("there is no option {}; --help lists them", options.command[0]));
  }
  return RunMode(options, app.count("--keyspace") > 0);
}
