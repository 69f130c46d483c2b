// MEMORY: what keys and the server take.
#include <fmt/format.h>

#include <algorithm>

#include "base/decimal.h"
#include "server/commands.h"
#include "server/server_call.h"
#include "server/subcommands.h"

namespace skep::commands {
namespace {

// MEMORY USAGE key [SAMPLES count]: a value has no parts that could be sampled.
bool IsUsage(const Call& call) {
  return call.args().size() > 2 && EqualsIgnoringCase(call.arg(1), "usage");
}

std::string_view UsageError(std::span<const std::string_view> options) {
  for (size_t i = 0; i < options.size(); i += 2) {
    if (!EqualsIgnoringCase(options[i], "samples") || i + 1 == options.size()) return kSyntaxError;
    const auto samples = ParseInt64(options[i + 1]);
    if (!samples) return kNotAnInteger;
    if (*samples < 0) return kSyntaxError;
  }
  return {};
}

void MemoryDoctor(const ServerCall& call) {
  const MemoryBudget& budget = call.state().keyspaces().budget();
  constexpr uint64_t kScarcePercent = 90;
  constexpr uint64_t kPercent = 100;
  const bool is_scarce =
      budget.limit() != 0 && budget.used() >= budget.limit() / kPercent * kScarcePercent;
  call.reply().Verbatim(
      "txt", is_scarce ? fmt::format("Of maxmemory, {} bytes, {} are used: writes will soon be "
                                     "refused.",
                                     budget.limit(), budget.used())
                       : "No problem with memory is seen.");
}

void MemoryStats(const ServerCall& call) {
  ServerState& state = call.state();
  state.NoteMemory();
  const uint64_t used = state.keyspaces().budget().used();
  const auto [keys, bytes] = state.DatasetNow();
  const auto ratio = [](uint64_t a, uint64_t b) {
    return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
  };
  RespWriter reply = call.reply();
  const auto integer = [&](std::string_view name, uint64_t number) {
    reply.Bulk(name);
    reply.Integer(static_cast<int64_t>(number));
  };
  reply.Map(12);
  integer("peak.allocated", state.memory_peak());
  integer("total.allocated", used);
  integer("replication.backlog", 0);
  integer("clients.slaves", 0);
  integer("clients.normal", state.clients().bytes());
  integer("cluster.links", 0);
  integer("lua.caches", 0);
  integer("keys.count", keys);
  integer("keys.bytes-per-key", keys == 0 ? 0 : bytes / keys);
  integer("dataset.bytes", bytes);
  reply.Bulk("dataset.percentage");
  reply.Double(100 * ratio(bytes, used));
  reply.Bulk("peak.percentage");
  reply.Double(100 * ratio(used, state.memory_peak()));
}

void MemoryMallocStats(const ServerCall& call) {
  call.reply().Bulk("Stats not supported for the current allocator");
}

// Memory that is freed goes back to the system by itself.
void MemoryPurge(const ServerCall& call) { call.reply().SimpleString("OK"); }

constexpr Subcommand kMemorySubcommands[] = {
    {"doctor", 2, "", "Return what is wrong with the server's memory.", MemoryDoctor},
    {"malloc-stats", 2, "", "Return that the allocator tells nothing.", MemoryMallocStats},
    {"purge", 2, "", "Do nothing: freed memory goes back to the system by itself.", MemoryPurge},
    {"stats", 2, "", "Return what memory is used for.", MemoryStats},
    {"usage", -3, "<key> [SAMPLES <count>]",
     "Return the bytes of a key, its value and its deadline.", nullptr, 2},
};

}  // namespace

std::span<const Subcommand> MemorySubcommands() { return kMemorySubcommands; }

Plan PlanMemory(const Call& call, Batch& batch) {
  if (!IsUsage(call)) return Plan::Requests();
  const std::string_view error = UsageError(call.args().subspan(3));
  if (!error.empty()) return Plan::Error(error);
  batch.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = call.arg(2), .other = {}});
  return Plan::Requests();
}

void FinishMemory(const ServerCall& call, const Batch& batch, uint32_t slot) {
  if (!IsUsage(call)) return RunSubcommand(call);
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().Null();
  const size_t deadline_bytes = out.deadline_ms == 0 ? 0 : sizeof(out.deadline_ms);
  call.reply().Integer(out.integer + static_cast<int64_t>(call.arg(2).size() + deadline_bytes));
}

}  // namespace skep::commands
