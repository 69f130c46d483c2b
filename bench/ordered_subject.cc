#include "bench/ordered_subject.h"

#include <algorithm>
#include <utility>

#include "base/cpu.h"
#include "bench/absl_target.h"
#include "bench/keyspace_target.h"
#include "bench/progress.h"

namespace skep::bench {
namespace {

// The order of insertion is part of what a figure means: it is the same in every turn.
constexpr uint64_t kInsertSeed = 0;

Result<std::unique_ptr<YcsbTarget>> OpenTarget(const std::string& engine,
                                               const OrderedOptions& options,
                                               const ValuePool& values) {
  if (engine == kAbslName) return OpenAbslTarget(options.key_bytes, values, options.items);
  auto target = KeyspaceTarget::Open(engine, values);
  if (!target) return Fail(target.error());
  return std::move(*target);
}

// What happened outside the clock counts only if it went wrong.
void AddErrors(const PhaseReport& untimed, PhaseReport& report) {
  report.tally.Merge({.errors = untimed.tally.errors, .first_error = untimed.tally.first_error});
  if (report.status.ok()) report.status = untimed.status;
}

}  // namespace

OrderedSubject::OrderedSubject(std::string engine, const OrderedOptions& options,
                               const ValuePool& values)
    : engine_(std::move(engine)), options_(options), values_(values), cores_(AllowedCores()) {}

Result<PhaseReport> OrderedSubject::Turn(const OrderedLoad& load, uint64_t seed) {
  growth_.Begin();
  auto report = [&]() -> Result<PhaseReport> {
    if (load.kind == OpKind::kInsert) return Insert();
    PhaseReport loading;
    if (target_ == nullptr) {
      auto inserted = Insert();
      if (!inserted) return inserted;
      loading = std::move(*inserted);
    }
    PhaseReport turn = load.kind == OpKind::kDelete ? Delete(seed) : Choose(load, seed);
    AddErrors(loading, turn);
    return turn;
  }();
  growth_.End();
  return report;
}

Result<PhaseReport> OrderedSubject::Insert() {
  if (Status status = Renew(); !status.ok()) return Fail(status);
  return Sweep("insert", OpKind::kInsert, options_.items, kInsertSeed);
}

PhaseReport OrderedSubject::Delete(uint64_t seed) {
  const uint64_t ops = std::min(options_.ops, options_.items);
  PhaseReport report = Sweep("delete", OpKind::kDelete, ops, seed);
  AddErrors(Sweep("insert again", OpKind::kInsert, ops, seed), report);
  return report;
}

PhaseReport OrderedSubject::ReadBack() {
  return Sweep("read back", OpKind::kRead, std::min(options_.ops, options_.items), options_.seed);
}

Footprint OrderedSubject::Measure() { return target_->Measure().value_or(Footprint()); }

Status OrderedSubject::Renew() {
  sessions_.clear();
  target_.reset();
  auto target = OpenTarget(engine_, options_, values_);
  if (!target) return target.error();
  target_ = std::move(*target);
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    auto session = target_->Connect();
    if (!session) return session.error();
    sessions_.push_back(std::move(*session));
  }
  return {};
}

PhaseReport OrderedSubject::Choose(const OrderedLoad& load, uint64_t seed) {
  return Run(load.name, options_.ops, seed,
             [&](const OrderedShare& share) { return MakeChoices(load, share); });
}

PhaseReport OrderedSubject::Sweep(std::string what, OpKind kind, uint64_t ops, uint64_t seed) {
  return Run(std::move(what), ops, seed,
             [&](const OrderedShare& share) { return MakeSweep(kind, share); });
}

template <typename Make>
PhaseReport OrderedSubject::Run(std::string what, uint64_t ops, uint64_t seed, Make make) {
  std::vector<std::unique_ptr<OpSource>> sources;
  std::vector<Lane> lanes;
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    sources.push_back(make(OrderedShare{
        .items = options_.items, .thread = thread, .threads = options_.threads, .seed = seed}));
    lanes.push_back({.session = sessions_[thread].get(),
                     .source = sources.back().get(),
                     .ops = ops / options_.threads + (thread < ops % options_.threads ? 1 : 0),
                     .core = cores_[thread % cores_.size()]});
  }
  Progress progress(engine_ + " " + what, ops, lanes.size(), options_.show_progress);
  return RunPhase(lanes, KeyFormat::Random(options_.key_bytes), options_.batch, progress);
}

}  // namespace skep::bench
