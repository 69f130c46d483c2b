#include "server/server_statistics.h"

#include "server/worker_statistics.h"

namespace skep {
namespace {

// The counters that are plain numbers.
constexpr uint64_t ServerCounts::* kNumbers[] = {
    &ServerCounts::commands,     &ServerCounts::connections,    &ServerCounts::rejected,
    &ServerCounts::batches,      &ServerCounts::batch_requests, &ServerCounts::input_bytes,
    &ServerCounts::output_bytes, &ServerCounts::reads,          &ServerCounts::writes,
    &ServerCounts::errors,       &ServerCounts::hits,           &ServerCounts::misses,
    &ServerCounts::expired_keys, &ServerCounts::evicted_clients};

}  // namespace

ServerCounts::ServerCounts()
    : turns_by_work(kTurnClasses),
      by_command(CountedCommands().size()),
      by_error(ErrorCodes().size()) {}

void ServerCounts::Add(const WorkerStatistics& worker) {
  const auto load = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  commands += load(worker.commands);
  connections += load(worker.connections);
  rejected += load(worker.rejected);
  batches += load(worker.batches);
  batch_requests += load(worker.batch_requests);
  input_bytes += load(worker.input_bytes);
  output_bytes += load(worker.output_bytes);
  reads += load(worker.reads);
  writes += load(worker.writes);
  errors += load(worker.errors);
  hits += load(worker.hits);
  misses += load(worker.misses);
  for (size_t i = 0; i < kTurnClasses; ++i) turns_by_work[i] += load(worker.turns_by_work[i]);
  for (size_t i = 0; i < by_command.size(); ++i) by_command[i] += worker.by_command.Of(i);
  for (size_t i = 0; i < by_error.size(); ++i) by_error[i] += worker.by_command.errors(i);
}

void ServerCounts::AddBeside(const WorkerStatistics& beside) {
  for (size_t i = 0; i < by_command.size(); ++i) by_command[i] += beside.by_command.Of(i);
  for (size_t i = 0; i < by_error.size(); ++i) by_error[i] += beside.by_command.errors(i);
  errors += beside.errors.load(std::memory_order_relaxed);
  batches += beside.batches.load(std::memory_order_relaxed);
  batch_requests += beside.batch_requests.load(std::memory_order_relaxed);
  hits += beside.hits.load(std::memory_order_relaxed);
  misses += beside.misses.load(std::memory_order_relaxed);
}

void ServerCounts::Subtract(const ServerCounts& other) {
  for (const auto number : kNumbers) this->*number -= other.*number;
  for (size_t i = 0; i < kTurnClasses; ++i) turns_by_work[i] -= other.turns_by_work[i];
  for (size_t i = 0; i < by_command.size(); ++i) by_command[i] -= other.by_command[i];
  for (size_t i = 0; i < by_error.size(); ++i) by_error[i] -= other.by_error[i];
}

uint64_t ServerCounts::turn_bytes_max() const {
  for (size_t i = kTurnClasses; i > 0; --i) {
    if (turns_by_work[i - 1] > 0) return TurnClassBytesMax(i - 1);
  }
  return 0;
}

}  // namespace skep
