// skep-pool: the servers of a pool of memory, and looks at one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "durable/log_sync_name.h"
#include "server/version.h"
#include "tools/pool/pool_commands.h"
#include "tools/pool/toml_config.h"

namespace {

using namespace skep;

constexpr int kUsage = 2;

// Options of all commands stand before the command, or at the top of the file.
void AddPool(CLI::App& app, PoolOptions& options) {
  app.add_option("--zk", options.zookeeper, "the servers of ZooKeeper: HOST:PORT,HOST:PORT")
      ->default_str("127.0.0.1:2181");
  app.add_option("--name", options.name, "of the pool")->capture_default_str();
  app.add_option("--fabric", options.fabric,
                 "how the memory is reached: mem (of this machine), tcp, ofi:PROVIDER")
      ->check(&WhyNoFabric)
      ->capture_default_str();
}

void AddServer(CLI::App& app, PoolServerOptions& options) {
  app.add_option("--listen", options.listen,
                 "mem, ofi:shm: unix:PATH; others: HOST:PORT, 0 is any free port")
      ->required();
  app.add_option("--advertise", options.advertise,
                 "what others connect to, if that is not where it listens");
  app.add_option("--session", options.session_ms,
                 "milliseconds of silence after which ZooKeeper takes it for dead")
      ->check(CLI::Range(400u, 60'000u))
      ->capture_default_str();
}

CLI::App* AddMemory(CLI::App& app, PoolServerOptions& server, uint64_t& bytes) {
  CLI::App* const memory = app.add_subcommand("memory", "a server that keeps items");
  AddServer(*memory, server);
  memory->add_option("--bytes", bytes, "of its memory, taken as it is used: 8gb, 512mb")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("1gb");
  return memory;
}

struct IndexChoices {
  uint32_t replicas = 2;
  std::string on_loss = "error";
  std::string evict = "none";
  std::string directory;
  std::string sync = "everysec";

  PoolDirectoryOptions kept() const {
    return {.directory = directory, .sync = *durable::LogSyncOf(sync)};
  }
  PoolUpkeepOptions upkeep() const {
    return {.replicas = replicas, .removes_lost = on_loss == "miss", .evicts = evict == "oldest"};
  }
};

CLI::App* AddIndex(CLI::App& app, PoolServerOptions& server, IndexChoices& choices) {
  CLI::App* const index =
      app.add_subcommand("index", "one of the two index servers, or a spare one");
  AddServer(*index, server);
  index
      ->add_option("--replicas", choices.replicas,
                   "memory servers that have an item, where there are as many")
      ->check(CLI::Range(1u, 2u))
      ->capture_default_str();
  index
      ->add_option("--on-loss", choices.on_loss,
                   "of keys whose items died with all their servers: error, or miss: they go")
      ->check(CLI::IsMember({"error", "miss"}))
      ->capture_default_str();
  index
      ->add_option("--evict", choices.evict,
                   "what goes when the pool is full: none (writes are refused), oldest")
      ->check(CLI::IsMember({"none", "oldest"}))
      ->capture_default_str();
  index->add_option("--dir", choices.directory,
                    "keeps the index there: a pool that has lost both index servers comes back");
  index
      ->add_option("--appendfsync", choices.sync,
                   "with --dir, when a write survives a power loss: always, everysec, no")
      ->check(CLI::IsMember({"always", "everysec", "no"}))
      ->capture_default_str();
  return index;
}

void AddLook(CLI::App& app, PoolLookOptions& options) {
  app.add_flag("--json", options.as_json, "for programs");
  app.add_option("--timeout", options.pool.timeout_ms, "milliseconds to wait for an answer")
      ->check(CLI::Range(1u, 3'600'000u))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs the servers of a pool of memory, and looks at it", "skep-pool");
  app.set_version_flag("--version", fmt::format("skep-pool {}", kVersion));
  app.footer(
      "A pool is some memory servers, which keep each item twice, and two index servers; one of\n"
      "either may die. ZooKeeper says who is who. Clients: skep-server --keyspace "
      "0=pool,zk=...,name=...\n"
      "and Store::Connect(\"pool://...\"). docs/pool.md has the rest; `make pool` starts one.\n\n"
      "Exit status: 0 done, or a server was ended; 1 it failed; of ctl also: the pool cannot "
      "serve,\n"
      "or is not good; 2 the command line is wrong.");
  app.config_formatter(std::make_shared<TomlConfig>());
  app.set_config("--config", "",
                 "a TOML file: the options of all commands at the top, those of a command in a\n"
                 "table of its name, [memory] say; the command line overrides it")
      ->check(CLI::ExistingFile);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.require_subcommand(1);

  PoolOptions pool;
  pool.zookeeper = "127.0.0.1:2181";
  pool.name = "skep";
  AddPool(app, pool);

  // Each command has options of its own: a file may have tables for several.
  PoolServerOptions memory_server;
  uint64_t bytes = uint64_t{1} << 30;
  CLI::App* const memory = AddMemory(app, memory_server, bytes);
  PoolServerOptions index_server;
  IndexChoices choices;
  CLI::App* const index = AddIndex(app, index_server, choices);
  CLI::App* const ctl = app.add_subcommand("ctl", "looks at a pool")->require_subcommand(1);
  PoolLookOptions status_look;
  CLI::App* const status = ctl->add_subcommand("status", "who is there, and what the pool holds");
  AddLook(*status, status_look);
  PoolLookOptions verify_look;
  CLI::App* const verify = ctl->add_subcommand(
      "verify", "reads every item, and compares the two indexes; others go on meanwhile");
  AddLook(*verify, verify_look);
  PoolLookOptions drain_look;
  drain_look.pool.timeout_ms = 600'000;
  uint32_t drained = 0;
  CLI::App* const drain = ctl->add_subcommand(
      "drain", "moves what a memory server has to others, and waits until it can go");
  drain->add_option("ID", drained, "the number of the server, as status tells it")->required();
  AddLook(*drain, drain_look);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  for (PoolOptions* const own : {&memory_server.pool, &index_server.pool, &status_look.pool,
                                 &verify_look.pool, &drain_look.pool}) {
    const uint32_t timeout_ms = own->timeout_ms;
    *own = pool;
    own->timeout_ms = timeout_ms;
  }
  if (memory->parsed()) return RunMemoryServer(memory_server, bytes);
  if (index->parsed()) return RunIndexServer(index_server, choices.upkeep(), choices.kept());
  if (drain->parsed()) return DrainMemoryServer(drain_look, drained);
  return status->parsed() ? PrintPoolStatus(status_look) : VerifyPool(verify_look);
}
