#include "bench/compare_subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/cpu.h"
#include "bench/engine_spec.h"
#include "bench/key_sweep.h"
#include "bench/keyspace_target.h"
#include "bench/progress.h"
#include "engine/keyspaces.h"

namespace skep::bench {
namespace {

// The order of insertion is part of what a figure means: it is the same in every turn.
constexpr uint64_t kLoadSeed = 0;

// What happened outside the clock counts only if it went wrong.
void AddErrors(const PhaseReport& untimed, PhaseReport& report) {
  report.tally.Merge({.errors = untimed.tally.errors, .first_error = untimed.tally.first_error});
  if (report.status.ok()) report.status = untimed.status;
}

std::vector<std::string_view> PeersBuilt() {
  std::vector<std::string_view> names;
  for (const PeerInfo& peer : AllPeers()) {
    if (peer.open != nullptr) names.push_back(peer.name);
  }
  return names;
}

}  // namespace

std::expected<SubjectKind, std::string> SubjectKind::OfPeer(const std::string& name) {
  const PeerInfo* const peer = FindPeer(name);
  if (peer == nullptr) {
    return std::unexpected(
        fmt::format("no peer {}; this build has {}", name, fmt::join(PeersBuilt(), ", ")));
  }
  if (peer->open == nullptr) {
    return std::unexpected(fmt::format(
        "the peer {} is not in this build: install {} and build again", name, peer->package));
  }
  return SubjectKind{
      .name = name, .peer = peer, .engine = {}, .ordered = peer->ordered, .threads = peer->threads};
}

std::expected<SubjectKind, std::string> SubjectKind::OfEngine(const std::string& spec) {
  auto options = ParseEngineSpec(spec);
  if (!options) return std::unexpected(std::move(options.error()));
  const auto keyspaces = Keyspaces::Make(*options);
  if (!keyspaces) {
    std::vector<std::string_view> names;
    for (const EngineInfo& info : AllEngines()) names.push_back(info.name);
    return std::unexpected(fmt::format("no engine {}: {}; this build has {}", spec,
                                       keyspaces.error().ToString(), fmt::join(names, ", ")));
  }
  return SubjectKind{.name = spec,
                     .peer = nullptr,
                     .engine = std::move(*options),
                     .ordered = (*keyspaces)->traits().ordered,
                     .threads = true};
}

CompareSubject::CompareSubject(const SubjectKind& kind, const CompareOptions& options,
                               const ValuePool& values)
    : kind_(kind), options_(options), values_(values), cores_(AllowedCores()) {}

Result<PhaseReport> CompareSubject::Turn(const CompareWorkload& what, uint64_t seed) {
  growth_.Begin();
  auto report = [&]() -> Result<PhaseReport> {
    if (what.workload.sweep == OpKind::kInsert) return Load();
    PhaseReport loading;
    if (target_ == nullptr) {
      auto loaded = Load();
      if (!loaded) return loaded;
      loading = std::move(*loaded);
    }
    PhaseReport turn = what.workload.sweep ? Delete(seed) : Mix(what, seed);
    AddErrors(loading, turn);
    return turn;
  }();
  growth_.End();
  return report;
}

Result<PhaseReport> CompareSubject::Load() {
  if (Status status = Renew(); !status.ok()) return Fail(status);
  return Sweep("load", OpKind::kInsert, options_.items, kLoadSeed);
}

PhaseReport CompareSubject::Delete(uint64_t seed) {
  const uint64_t ops = std::min(options_.ops, options_.items);
  PhaseReport report = Sweep("delete", OpKind::kDelete, ops, seed);
  AddErrors(Sweep("insert again", OpKind::kInsert, ops, seed), report);
  return report;
}

PhaseReport CompareSubject::Mix(const CompareWorkload& what, uint64_t seed) {
  const WorkloadPlan plan = {.workload = what.workload,
                             .distribution = what.distribution,
                             .records = options_.items,
                             .ops = options_.ops,
                             .threads = options_.threads,
                             .seed = seed,
                             .own_updates = true};
  std::vector<std::unique_ptr<OpSource>> mixes;
  std::vector<const OpGenerator*> generators;  // the same
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    auto generator = std::make_unique<OpGenerator>(plan, thread);
    generators.push_back(generator.get());
    mixes.push_back(std::move(generator));
  }
  PhaseReport report = Run(what.workload.name, mixes, Shares(options_.ops));
  if (what.workload.insert == 0 || !report.status.ok()) return report;

  std::vector<std::unique_ptr<OpSource>> inserted;
  std::vector<uint64_t> ops;
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    inserted.push_back(
        std::make_unique<InsertedKeys>(OpKind::kDelete, options_.items, thread, options_.threads));
    ops.push_back(generators[thread]->inserted());
  }
  AddErrors(Run("delete what was inserted", inserted, ops), report);
  return report;
}

PhaseReport CompareSubject::ReadBack() {
  return Sweep("read back", OpKind::kRead, std::min(options_.ops, options_.items), options_.seed);
}

void CompareSubject::Drop() {
  growth_.Begin();
  sessions_.clear();
  target_.reset();
  growth_.End();
}

Footprint CompareSubject::Measure() { return target_->Measure().value_or(Footprint()); }

Status CompareSubject::Renew() {
  sessions_.clear();
  target_.reset();
  const PeerSetup setup = {.key_bytes = options_.key_bytes,
                           .values = values_,
                           .items_max = options_.items + options_.ops};
  if (kind_.peer != nullptr) {
    auto target = kind_.peer->open(setup);
    if (!target) return target.error();
    target_ = std::move(*target);
  } else {
    auto target = KeyspaceTarget::Open(kind_.engine, values_);
    if (!target) return target.error();
    target_ = std::move(*target);
  }
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    auto session = target_->Connect();
    if (!session) return session.error();
    sessions_.push_back(std::move(*session));
  }
  return {};
}

PhaseReport CompareSubject::Sweep(std::string what, OpKind kind, uint64_t ops, uint64_t seed) {
  std::vector<std::unique_ptr<OpSource>> sources;
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    sources.push_back(
        std::make_unique<KeySweep>(kind, options_.items, thread, options_.threads, seed));
  }
  return Run(std::move(what), sources, Shares(ops));
}

PhaseReport CompareSubject::Run(std::string what,
                                const std::vector<std::unique_ptr<OpSource>>& sources,
                                const std::vector<uint64_t>& ops) {
  std::vector<Lane> lanes;
  uint64_t total = 0;
  for (size_t thread = 0; thread < sources.size(); ++thread) {
    lanes.push_back({.session = sessions_[thread].get(),
                     .source = sources[thread].get(),
                     .ops = ops[thread],
                     .core = cores_[thread % cores_.size()]});
    total += ops[thread];
  }
  Progress progress(kind_.name + " " + what, total, lanes.size(), options_.show_progress);
  return RunPhase(lanes, KeyFormat::Random(options_.key_bytes), options_.batch, progress);
}

std::vector<uint64_t> CompareSubject::Shares(uint64_t ops) const {
  std::vector<uint64_t> shares;
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    shares.push_back(ops / options_.threads + (thread < ops % options_.threads ? 1 : 0));
  }
  return shares;
}

}  // namespace skep::bench
