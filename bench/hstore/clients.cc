#include "bench/hstore/clients.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/batch_session.h"
#include "pool/item.h"

namespace skep::bench {
namespace {

constexpr uint32_t kLoaders = 2;
constexpr uint32_t kLoadBatch = 256;
// Operations that are drawn at once.
constexpr uint64_t kStreamOps = 1 << 20;

class PoolSession final : public BatchSession {
 public:
  PoolSession(Engine& engine, const ValuePool& values) : BatchSession(values), engine_(engine) {}

 private:
  Status Run(Batch& batch) override {
    engine_.Execute(batch);
    return {};
  }

  Engine& engine_;
};

Traffic TrafficOf(const pool::PoolEngine& engine) {
  const pool::ClientStatistics all = engine.statistics();
  return {.rounds = all.rounds, .reads = all.reads, .writes = all.writes, .calls = all.calls};
}

// One client. Its operations are drawn kStreamOps at a time: of a workload that is measured the
// first time is before the clock starts.
class Client {
 public:
  Client(FigurePool& pool, const Records& records, const ClientsPlan& plan, uint32_t number)
      : clock_(pool.clock()),
        records_(records),
        plan_(plan),
        engine_(pool.OpenEngine(plan.engine)),
        session_(*engine_, records.values),
        stream_(records.format),
        keys_(plan.workload, number),
        left_(plan.workload.ShareOf(number, plan.workload.ops)) {
    if (plan.workload.workload.sweep) {
      source_ = std::make_unique<LoadGenerator>(plan.workload, number);
    } else {
      auto generator = std::make_unique<OpGenerator>(plan.workload, number);
      generator_ = generator.get();
      source_ = std::move(generator);
      WarmUp();
    }
    Draw();
    before_ = TrafficOf(*engine_);
  }

  void Run() {
    run_.begin_ns = clock_.MonotonicNs();
    for (; stream_.size() != 0; Draw()) RunStream();
    run_.end_ns = clock_.MonotonicNs();
    const Traffic after = TrafficOf(*engine_);
    run_.traffic = {.rounds = after.rounds - before_.rounds,
                    .reads = after.reads - before_.reads,
                    .writes = after.writes - before_.writes,
                    .calls = after.calls - before_.calls};
  }

  // Deletes what it has inserted.
  void DeleteInserted() {
    const uint64_t count = generator_ == nullptr ? 0 : generator_->inserted();
    for (uint64_t first = 0; first < count; first += kLoadBatch) {
      OpStream stream(records_.format);
      for (uint64_t i = first; i < std::min<uint64_t>(count, first + kLoadBatch); ++i) {
        stream.Add(OpKind::kDelete, keys_.InsertedNumber(i));
      }
      static_cast<void>(session_.Execute(stream, 0, stream.size(), run_.tally));
    }
  }

  const ClientsRun& run() const { return run_; }

 private:
  // One operation of each kind that the workload has, on a record: connections are made, and a
  // chunk is leased.
  void WarmUp() {
    const Workload& workload = plan_.workload.workload;
    OpStream stream(records_.format);
    if (workload.read + workload.read_modify_write > 0) stream.Add(OpKind::kRead, 0);
    if (workload.writes()) stream.Add(OpKind::kUpdate, 0);
    if (workload.scan > 0) stream.Add(OpKind::kScan, 0, 1);
    static_cast<void>(session_.Execute(stream, 0, stream.size(), run_.tally));
    run_.tally.items_scanned = 0;
  }

  void Draw() {
    stream_.Clear();
    const uint64_t count = std::min(left_, kStreamOps);
    source_->Fill(stream_, count);
    left_ -= count;
  }

  // The status is ignored: an operation that fails is in the tally.
  void RunStream() {
    for (size_t first = 0; first < stream_.size(); first += plan_.depth) {
      const size_t count = std::min<size_t>(plan_.depth, stream_.size() - first);
      const uint64_t begin_ns = clock_.MonotonicNs();
      static_cast<void>(session_.Execute(stream_, first, count, run_.tally));
      const uint64_t ns = clock_.MonotonicNs() - begin_ns;
      run_.latency_ns.Record(ns, count);
      run_.sum_ns += ns * count;
      run_.ops += count;
    }
  }

  Clock& clock_;
  const Records& records_;
  const ClientsPlan& plan_;
  const std::unique_ptr<pool::PoolEngine> engine_;
  PoolSession session_;
  OpStream stream_;
  const KeyChooser keys_;
  uint64_t left_;
  std::unique_ptr<OpSource> source_;
  const OpGenerator* generator_ = nullptr;  // null: it is a sweep
  Traffic before_;
  ClientsRun run_;
};

void Merge(const ClientsRun& more, ClientsRun& to) {
  to.ops += more.ops;
  to.begin_ns = std::min(to.begin_ns, more.begin_ns);
  to.end_ns = std::max(to.end_ns, more.end_ns);
  to.latency_ns.Merge(more.latency_ns);
  to.sum_ns += more.sum_ns;
  to.tally.Merge(more.tally);
  to.traffic.rounds += more.traffic.rounds;
  to.traffic.reads += more.traffic.reads;
  to.traffic.writes += more.traffic.writes;
  to.traffic.calls += more.traffic.calls;
}

}  // namespace

uint64_t Records::item_bytes() const {
  return uint64_t{pool::UnitsOf(format.bytes(), values.value_bytes())} * pool::kUnitBytes;
}

Workload InsertsOnly() { return {.name = "load", .insert = 100}; }

ClientsRun RunClients(FigurePool& pool, const Records& records, const ClientsPlan& plan) {
  std::vector<std::unique_ptr<Client>> clients;
  for (uint32_t i = 0; i < plan.workload.threads; ++i) {
    clients.push_back(std::make_unique<Client>(pool, records, plan, i));
  }
  ClientsRun all;
  const TimeParts before = pool.parts();
  pool.RunSideBySide(plan.workload.threads, [&](uint32_t i) { clients[i]->Run(); });
  all.parts = pool.parts() - before;
  for (const auto& client : clients) {
    if (plan.workload.workload.name != InsertsOnly().name) client->DeleteInserted();
    Merge(client->run(), all);
  }
  return all;
}

Tally LoadRecords(FigurePool& pool, const Records& records, uint64_t count) {
  const ClientsPlan plan = {.workload = {.workload = *FindWorkload("load"),
                                         .distribution = Distribution::kUniform,
                                         .records = count,
                                         .ops = count,
                                         .threads = kLoaders,
                                         .seed = 1},
                            .depth = kLoadBatch};
  return RunClients(pool, records, plan).tally;
}

}  // namespace skep::bench
