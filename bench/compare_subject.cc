#include "bench/compare_subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/cpu.h"
#include "bench/churn.h"
#include "bench/engine_spec.h"
#include "bench/hot_keys.h"
#include "bench/key_sweep.h"
#include "bench/keyspace_target.h"
#include "bench/progress.h"
#include "keyspace/keyspaces.h"

namespace skep::bench {
namespace {

// The order of insertion affects the figures, so it is the same in every turn.
constexpr uint64_t kLoadSeed = 0;

// Batch size of work that is not under the clock.
constexpr uint32_t kUntimedBatch = 64;

std::vector<uint64_t> SharesOf(uint64_t ops, uint32_t threads) {
  std::vector<uint64_t> shares;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    shares.push_back(ops / threads + (thread < ops % threads ? 1 : 0));
  }
  return shares;
}

// The value that a write stores depends on the thread's stream, whose rounds are whole batches.
uint64_t HistoryWith(uint64_t history, const CompareWorkload& what, const CompareSetting& setting,
                     uint64_t seed) {
  const std::string turn =
      fmt::format("{} {} {} {} {} {}", history, what.workload.name, NameOf(what.distribution),
                  setting.batch, setting.threads, seed);
  return std::hash<std::string>()(turn);
}

// Adds the errors of untimed work to the report; its other figures are left out.
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
  return SubjectKind{.name = name,
                     .peer = peer,
                     .engine = {},
                     .ordered = peer->ordered,
                     .threads = peer->threads,
                     .snapshots = false};
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
                     .ordered = (*keyspaces)->at(0).traits().ordered,
                     .threads = true,
                     .snapshots = (*keyspaces)->at(0).traits().snapshots};
}

const char* SubjectKind::Lacks(const Workload& workload, const CompareSetting& setting) const {
  if (workload.scan > 0 && !ordered) return "order";
  if (setting.threads > 1 && !threads) return "threads";
  if (setting.snapshots > 0 && !snapshots) return "snapshots";
  return nullptr;
}

CompareSubject::CompareSubject(const SubjectKind& kind, uint64_t items,
                               const CompareOptions& options, const ValuePool& values)
    : kind_(kind), items_(items), options_(options), values_(values), cores_(AllowedCores()) {}

Result<CompareTurn> CompareSubject::Turn(const CompareWorkload& what, const CompareSetting& setting,
                                         uint64_t seed) {
  growth_.Begin();
  auto turn = [&]() -> Result<CompareTurn> {
    const Workload& workload = what.workload;
    if (workload.sweep == OpKind::kInsert) return Load(setting);
    PhaseReport loading;
    if (target_ == nullptr) {
      auto loaded = Load({.items = items_, .batch = kUntimedBatch});
      if (!loaded) return loaded;
      loading = std::move(loaded->phase);
    }
    auto done = workload.sweep          ? Delete(setting, seed)
                : workload.remove > 0   ? Change(what, setting, seed)
                : workload.hot_keys > 0 ? ReadHot(what, setting, seed)
                                        : Mix(what, setting, seed);
    if (!done) return done;
    done->history = history_;
    if (workload.writes()) history_ = HistoryWith(history_, what, setting, seed);
    AddErrors(loading, done->phase);
    return done;
  }();
  growth_.End();
  return turn;
}

Result<CompareTurn> CompareSubject::Load(const CompareSetting& setting) {
  if (Status status = Renew(); !status.ok()) return Fail(status);
  history_ = setting.threads;
  return Timed(SweepOf("load", OpKind::kInsert, items_, setting.threads, kLoadSeed), setting);
}

Result<CompareTurn> CompareSubject::Delete(const CompareSetting& setting, uint64_t seed) {
  const uint64_t ops = std::min(options_.ops, items_);
  const uint32_t threads = setting.threads;
  auto turn = Timed(SweepOf("delete", OpKind::kDelete, ops, threads, seed), setting);
  if (!turn) return turn;
  AddErrors(Run(SweepOf("insert again", OpKind::kInsert, ops, threads, seed), kUntimedBatch),
            turn->phase);
  return turn;
}

Result<CompareTurn> CompareSubject::Change(const CompareWorkload& what,
                                           const CompareSetting& setting, uint64_t seed) {
  Work changes = {
      .what = what.workload.name, .sources = {}, .ops = SharesOf(options_.ops, setting.threads)};
  std::vector<const Churn*> churns;  // by thread
  for (uint32_t thread = 0; thread < setting.threads; ++thread) {
    auto churn = std::make_unique<Churn>(what.workload, items_, thread, setting.threads, seed);
    churns.push_back(churn.get());
    changes.sources.push_back(std::move(churn));
  }
  auto turn = Timed(changes, setting);
  if (!turn || !turn->phase.status.ok()) return turn;

  Work undone = {.what = "undo", .sources = {}, .ops = {}};
  for (const Churn* churn : churns) {
    auto undo = std::make_unique<Churn::Undo>(*churn);
    undone.ops.push_back(undo->ops());
    undone.sources.push_back(std::move(undo));
  }
  AddErrors(Run(undone, kUntimedBatch), turn->phase);
  return turn;
}

Result<CompareTurn> CompareSubject::ReadHot(const CompareWorkload& what,
                                            const CompareSetting& setting, uint64_t seed) {
  const std::vector<uint64_t> numbers = FirstKeys(format(), items_, what.workload.hot_keys);
  Work reads = {
      .what = what.workload.name, .sources = {}, .ops = SharesOf(options_.ops, setting.threads)};
  for (uint32_t thread = 0; thread < setting.threads; ++thread) {
    reads.sources.push_back(std::make_unique<HotKeys>(numbers, seed * setting.threads + thread));
  }
  return Timed(reads, setting);
}

Result<CompareTurn> CompareSubject::Mix(const CompareWorkload& what, const CompareSetting& setting,
                                        uint64_t seed) {
  const WorkloadPlan plan = {.workload = what.workload,
                             .distribution = what.distribution,
                             .records = items_,
                             .ops = options_.ops,
                             .threads = setting.threads,
                             .seed = seed,
                             .own_updates = true};
  Work mix = {
      .what = what.workload.name, .sources = {}, .ops = SharesOf(options_.ops, setting.threads)};
  std::vector<const OpGenerator*> generators;  // by thread
  for (uint32_t thread = 0; thread < setting.threads; ++thread) {
    auto generator = std::make_unique<OpGenerator>(plan, thread);
    generators.push_back(generator.get());
    mix.sources.push_back(std::move(generator));
  }
  auto turn = Timed(mix, setting);
  if (what.workload.insert == 0 || !turn || !turn->phase.status.ok()) return turn;

  Work inserted = {.what = "delete what was inserted", .sources = {}, .ops = {}};
  for (uint32_t thread = 0; thread < setting.threads; ++thread) {
    inserted.sources.push_back(
        std::make_unique<InsertedKeys>(OpKind::kDelete, items_, thread, setting.threads));
    inserted.ops.push_back(generators[thread]->inserted());
  }
  AddErrors(Run(inserted, kUntimedBatch), turn->phase);
  return turn;
}

PhaseReport CompareSubject::ReadBack() {
  return Run(SweepOf("read back", OpKind::kRead, std::min(options_.ops, items_),
                     options_.threads.front(), options_.seed),
             kUntimedBatch);
}

void CompareSubject::Drop() {
  growth_.Begin();
  sessions_.clear();
  target_.reset();
  history_ = 0;
  growth_.End();
}

Footprint CompareSubject::Measure() { return target_->Measure().value_or(Footprint()); }

Status CompareSubject::Renew() {
  sessions_.clear();
  target_.reset();
  const PeerSetup setup = {
      .key_bytes = format().key_bytes(), .values = values_, .items_max = items_ + options_.ops};
  if (kind_.peer != nullptr) {
    auto target = kind_.peer->open(setup);
    if (!target) return target.error();
    target_ = std::move(*target);
  } else {
    auto target = KeyspaceTarget::Open(kind_.engine, values_);
    if (!target) return target.error();
    target_ = std::move(*target);
  }
  for (uint32_t thread = 0; thread < std::ranges::max(options_.threads); ++thread) {
    auto session = target_->Connect();
    if (!session) return session.error();
    sessions_.push_back(std::move(*session));
  }
  return {};
}

CompareSubject::Work CompareSubject::SweepOf(std::string what, OpKind kind, uint64_t ops,
                                             uint32_t threads, uint64_t seed) const {
  Work work = {.what = std::move(what), .sources = {}, .ops = SharesOf(ops, threads)};
  for (uint32_t thread = 0; thread < threads; ++thread) {
    work.sources.push_back(std::make_unique<KeySweep>(kind, items_, thread, threads, seed));
  }
  return work;
}

Result<CompareTurn> CompareSubject::Timed(const Work& work, const CompareSetting& setting) {
  if (setting.snapshots == 0) {
    CompareTurn turn = {.phase = Run(work, setting.batch)};
    turn.bytes_per_item = Measure().bytes_per_item;
    return turn;
  }
  const std::optional<double> before = Measure().bytes_per_item;
  std::vector<std::unique_ptr<HeldSnapshot>> held;
  for (uint32_t i = 0; i < setting.snapshots; ++i) {
    auto snapshot = target_->Hold();
    if (!snapshot) return Fail(snapshot.error());
    held.push_back(std::move(*snapshot));
  }
  CompareTurn turn = {.phase = Run(work, setting.batch)};
  const double with_snapshots = Measure().bytes_per_item.value_or(0);
  for (const auto& snapshot : held) {
    if (!snapshot->Readable()) turn.phase.tally.CountError("a snapshot was revoked");
  }
  held.clear();
  turn.bytes_per_item = Measure().bytes_per_item;
  const double after = turn.bytes_per_item.value_or(0);
  turn.pinned_bytes_per_item = with_snapshots - std::min(before.value_or(after), after);
  return turn;
}

PhaseReport CompareSubject::Run(const Work& work, uint32_t batch) {
  std::vector<Lane> lanes;
  uint64_t total = 0;
  for (size_t thread = 0; thread < work.sources.size(); ++thread) {
    lanes.push_back({.session = sessions_[thread].get(),
                     .source = work.sources[thread].get(),
                     .ops = work.ops[thread],
                     .core = cores_[thread % cores_.size()]});
    total += work.ops[thread];
  }
  Progress progress(kind_.name + " " + work.what, total, lanes.size(), options_.show_progress);
  return RunPhase(lanes, format(), batch, progress);
}

KeyFormat CompareSubject::format() const {
  if (options_.key_file != nullptr) return KeyFormat::OfFile(*options_.key_file);
  return options_.mixed_sizes ? KeyFormat::Mixed()
                              : KeyFormat::Of(options_.keys, options_.key_bytes);
}

}  // namespace skep::bench
