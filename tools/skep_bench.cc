// skep-bench: what the machine can do (limits), what Skep does (ycsb), what ordered indexes do side
// by side (ordered), and what clients feel when very many keys expire at once (expiry).
// bench/README.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/expiry.h"
#include "bench/limits.h"
#include "bench/ordered.h"
#include "bench/progress.h"
#include "bench/report.h"
#include "bench/ycsb.h"

namespace {

using namespace skep::bench;

constexpr int kFailed = 1;

template <typename Report>
void Print(const Report& report, bool json) {
  fmt::print("{}", json ? JsonOf(report) : TableOf(report));
}

int RunLimits(const LimitsOptions& options, bool json) {
  const auto report = MeasureLimits(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error().ToString());
    return kFailed;
  }
  Print(*report, json);
  return 0;
}

int RunWorkload(const YcsbOptions& options, bool json) {
  const auto report = RunYcsb(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  if (report->run.tally.errors == 0) return 0;
  fmt::print(stderr, "skep-bench: {} operations failed, the first: {}\n", report->run.tally.errors,
             report->run.tally.first_error);
  return kFailed;
}

int RunOrderedLoads(const OrderedOptions& options, bool json) {
  const auto report = RunOrdered(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  if (report->sound()) return 0;
  fmt::print(stderr, "skep-bench: {} operations failed{}\n", report->errors,
             report->agrees ? "" : ", checksums differ");
  return kFailed;
}

int RunMassExpiry(const ExpiryOptions& options, bool json) {
  const auto report = RunExpiry(options);
  if (!report) {
    fmt::print(stderr, "skep-bench: {}\n", report.error());
    return kFailed;
  }
  Print(*report, json);
  if (report->errors == 0) return 0;
  fmt::print(stderr, "skep-bench: {} commands failed, the first: {}\n", report->errors,
             report->first_error);
  return kFailed;
}

void AddLimitsOptions(CLI::App& app, LimitsOptions& options) {
  app.add_option("--bytes", options.bytes, "memory to measure in, as 512M or 8G")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
}

void AddYcsbOptions(CLI::App& app, YcsbOptions& options) {
  auto* engine = app.add_option("--engine", options.engine, "the index, in this process")
                     ->capture_default_str();
  auto* host = app.add_option("--host", options.host,
                              "run against the server there, by RESP pipelines; its keys are kept");
  app.add_option("--port", options.port, "of the server")->needs(host)->capture_default_str();
  host->excludes(engine);
  app.add_option("--workload", options.workload, "a, b, c, d, e or f")->capture_default_str();
  app.add_option_function<std::string>(
         "--dist", [&](const std::string& name) { options.distribution = FindDistribution(name); },
         "how keys are chosen; without it, as the workload defines")
      ->check(CLI::IsMember({"uniform", "zipfian", "latest"}));
  app.add_option("--records", options.records, "loaded before the run")->capture_default_str();
  app.add_option("--ops", options.ops, "of all threads together")->capture_default_str();
  app.add_option("--threads", options.threads, "each with its own connection to a server")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "operations in one batch, or in one pipeline")
      ->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes, at least 8")->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal operations")
      ->capture_default_str();
}

void AddOrderedOptions(CLI::App& app, OrderedOptions& options) {
  app.add_option("--engine", options.engines,
                 "indexes to compare, as absl,model; ratios are to the first")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option(
         "--loads", options.loads,
         "in this order: insert, get, update, delete, scan1 .. scan100; get, update and scans "
         "also with _zipf behind their name")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--items", options.items, "in each index")->capture_default_str();
  app.add_option("--ops,--operations", options.ops, "in a repeat of each load but insert")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "of each load; figures are medians")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "operations in one batch")->capture_default_str();
  app.add_option("--threads", options.threads, "on one index")->capture_default_str();
  app.add_option("--key-size,--key-bytes", options.key_bytes, "bytes, at least 8")
      ->capture_default_str();
  app.add_option("--value-size,--value-bytes", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal operations")
      ->capture_default_str();
  app.add_option("--limits", options.limits_bytes,
                 "measure the machine's limits first, in so much memory, as 8G")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

void AddExpiryOptions(CLI::App& app, ExpiryOptions& options) {
  app.add_option("--host", options.host, "the server is there; keys that stay are kept")
      ->capture_default_str();
  app.add_option("--port", options.port, "of the server")->capture_default_str();
  app.add_option("--items", options.items, "keys that expire within one second")
      ->capture_default_str();
  app.add_option("--stay", options.stay, "keys that do not: commands are on these")
      ->capture_default_str();
  app.add_option("--connections", options.connections, "for the commands, in one thread")
      ->capture_default_str();
  auto* depth = app.add_option("--depth", options.depth,
                               "closed loop: commands on their way on each connection")
                    ->capture_default_str();
  app.add_option("--rate", options.rate,
                 "open loop: commands a second, together, sent by the clock; 0: a closed loop")
      ->excludes(depth)
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "measured before the first deadline, and after all")
      ->capture_default_str();
  app.add_option("--lead", options.lead_seconds,
                 "seconds for storing the keys that expire; 0: judged by those that stay")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "ratios are medians")->capture_default_str();
  app.add_option("--key-size", options.key_bytes, "bytes, at least 8")->capture_default_str();
  app.add_option("--value-size", options.value_bytes, "bytes")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds choose equal commands")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of Skep and of the machine under it", "skep-bench");
  app.require_subcommand(1);
  bool json = false;

  LimitsOptions limits;
  CLI::App* limits_app = app.add_subcommand("limits", "what one core and the loopback can do");
  AddLimitsOptions(*limits_app, limits);

  YcsbOptions ycsb;
  CLI::App* ycsb_app = app.add_subcommand("ycsb", "YCSB's core workloads, a to f");
  AddYcsbOptions(*ycsb_app, ycsb);
  ycsb.show_progress = ErrorOutputIsTerminal();

  OrderedOptions ordered;
  CLI::App* ordered_app = app.add_subcommand("ordered", "ordered indexes side by side, in process");
  AddOrderedOptions(*ordered_app, ordered);
  ordered.show_progress = ErrorOutputIsTerminal();

  ExpiryOptions expiry;
  CLI::App* expiry_app =
      app.add_subcommand("expiry", "a server's other commands while very many keys expire");
  AddExpiryOptions(*expiry_app, expiry);
  expiry.show_progress = ErrorOutputIsTerminal();

  for (CLI::App* command : {limits_app, ycsb_app, ordered_app, expiry_app}) {
    command->add_flag("--json", json, "one JSON object instead of a table");
  }
  CLI11_PARSE(app, argc, argv);
  if (limits_app->parsed()) return RunLimits(limits, json);
  if (expiry_app->parsed()) return RunMassExpiry(expiry, json);
  return ycsb_app->parsed() ? RunWorkload(ycsb, json) : RunOrderedLoads(ordered, json);
}
