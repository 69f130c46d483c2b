// skep-dump: exports keys and values of a running server to a file, and imports them from one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "server/version.h"
#include "tools/dump_command.h"

namespace {

using namespace skep;

constexpr int kUsage = 2;

void AddServerOptions(CLI::App& app, DumpCommand& options) {
  app.add_option("--host", options.server.host, "of the server")->capture_default_str();
  app.add_option("-p,--port", options.server.port, "of the server")->capture_default_str();
  app.add_option("-s,--socket", options.server.socket, "of the server, instead of host and port");
  // SKEPCLI_AUTH is only a default: the other variable and the option take precedence.
  if (const char* const password = std::getenv("SKEPCLI_AUTH")) options.server.password = password;
  app.add_option("-a,--password", options.server.password, "of the server; or in SKEPCLI_AUTH")
      ->envname("REDISCLI_AUTH");
}

CLI::Option* AddFormat(CLI::App& app, DumpCommand& options,
                       const std::map<std::string, DumpFormat>& formats, const std::string& help) {
  return app.add_option("--format", options.format, help)
      ->transform(CLI::CheckedTransformer(formats).description(""))
      ->type_name("FORMAT")
      ->default_str("resp");
}

// Whether the file begins as a file of Redis does: neither of the other formats begins so. A pipe
// is not looked at, since it gives its bytes once.
bool IsRdb(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  std::ifstream in(file, std::ios::binary);
  std::string magic(6, '\0');
  return in.read(magic.data(), magic.size()) && magic == "REDIS0";
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Copies keys and values of a running server to a file, and back", "skep-dump");
  app.set_version_flag("--version", fmt::format("skep-dump {}", kVersion));
  app.footer(
      "Formats: resp, a stream of SELECT and SET ... PXAT, which redis-cli --pipe takes, too;\n"
      "jsonl, an object a line: {\"key\":\"a\",\"value\":\"1\",\"deadline_ms\":1800000000000}, "
      "bytes that\n"
      "are not UTF-8 as key_base64 and value_base64; rdb, a file of Redis.\n\n"
      "Exit status: 0 done; 1 it failed, or keys were refused; 2 the command line is wrong.");
  app.require_subcommand(1);
  DumpCommand options;
  options.program = "skep-dump";
  CLI::App* out = app.add_subcommand(
      "export", "of a keyspace with an order, all of one version; others keep writing meanwhile");
  AddServerOptions(*out, options);
  out->add_option("-n,--db", options.db, "the database")->default_str("0");
  auto* from =
      out->add_option("--from", options.range.from, "the first key; without: from the first");
  auto* to =
      out->add_option("--to", options.range.to, "the key to end before; without: to the last");
  out->add_option("--prefix", options.range.prefix, "the keys that begin so")
      ->excludes(from)
      ->excludes(to);
  AddFormat(*out, options, {{"resp", DumpFormat::kResp}, {"jsonl", DumpFormat::kJsonl}},
            "resp or jsonl");
  out->add_option("--output,FILE", options.file, "a file; - is the standard output")
      ->capture_default_str();

  CLI::App* in = app.add_subcommand("import", "keys that are there are overwritten");
  AddServerOptions(*in, options);
  in->add_option("-n,--db", options.db,
                 "the database for everything; without: those that the input names, else 0");
  const CLI::Option* const in_format = AddFormat(
      *in, options,
      {{"resp", DumpFormat::kResp}, {"jsonl", DumpFormat::kJsonl}, {"rdb", DumpFormat::kRdb}},
      "resp, jsonl or rdb; without: rdb if FILE is a file of Redis, else resp");
  in->add_flag("--strict", options.strict,
               "of rdb: import nothing if the file has keys that cannot be stored; without, such "
               "are listed and skipped");
  in->add_option("FILE", options.file, "- is the standard input, but not for rdb")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (in->parsed() && in_format->empty() && IsRdb(options.file)) options.format = DumpFormat::kRdb;
  if (in->parsed() && options.format == DumpFormat::kRdb && options.file == "-") {
    fmt::print(stderr, "skep-dump: --format rdb needs a FILE: it is read twice\n");
    return kUsage;
  }
  return out->parsed() ? RunExport(options) : RunImport(options);
}
