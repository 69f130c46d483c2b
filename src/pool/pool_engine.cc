#include "pool/pool_engine.h"

#include <algorithm>

#include "engine/batch_writer.h"
#include "pool/batch_worker.h"
#include "pool/item.h"

namespace skep::pool {
namespace {

constexpr EngineTraits kTraits = {.name = "pool",
                                  .ordered = true,
                                  .atomic = false,
                                  .snapshots = false,
                                  .functions = true,
                                  .range_writes = false,
                                  .samples = false,
                                  .multi_version = false,
                                  .whole_ranges = true,
                                  .whole_batches = false,
                                  .expiry = false,
                                  .counts_itself = false,
                                  .key_bytes_max = kKeyBytesMax,
                                  .value_bytes_max = kValueBytesMax};

// How long the upkeep of one session may take.
constexpr uint64_t kKeepAliveNs = 100'000'000;
// How long those wait who only want to know how the pool is.
constexpr uint64_t kStatusNs = 1'000'000'000;
constexpr uint64_t kProbeNs = 1'000'000'000;
// How long requests wait for a pool for which one has waited in vain.
constexpr uint64_t kAwayWaitNs = 100'000'000;

void Add(const ClientStatistics& more, ClientStatistics* to) {
  to->rounds += more.rounds;
  to->calls += more.calls;
  to->reads += more.reads;
  to->read_bytes += more.read_bytes;
  to->writes += more.writes;
  to->written_bytes += more.written_bytes;
  to->joins += more.joins;
  to->renewals += more.renewals;
  to->cache_hits += more.cache_hits;
  to->cache_misses += more.cache_misses;
  to->retries_redirected += more.retries_redirected;
  to->retries_torn += more.retries_torn;
  to->retries_late += more.retries_late;
  to->retries_lost += more.retries_lost;
  to->retries_slow += more.retries_slow;
  to->retries_contended += more.retries_contended;
  to->finds += more.finds;
}

}  // namespace

PoolEngine::PoolEngine(rma::Fabric& fabric, Clock& clock, MapSource source,
                       const PoolEngineOptions& options)
    : fabric_(fabric), clock_(clock), source_(std::move(source)), options_(options) {}

PoolEngine::~PoolEngine() = default;

const EngineTraits& PoolEngine::traits() const { return kTraits; }

Version PoolEngine::Execute(Batch& batch) {
  auto worker = TakeWorker();
  if (!worker) {
    BatchWriter(batch).RefuseAll(worker.error());
    return 0;
  }
  const uint64_t began_ns = clock_.MonotonicNs();
  (*worker)->Execute(batch, kTraits, DeadlineNs());
  Learn((*worker)->session(), began_ns);
  if ((*worker)->session().IsLate()) NoteWait(began_ns);
  GiveBack(std::move(*worker));
  return 0;
}

uint64_t PoolEngine::DeadlineNs() const {
  const uint64_t wait_ns = uint64_t{options_.timeout_ms} * 1'000'000;
  const MutexLock lock(mutex_);
  return clock_.MonotonicNs() + (is_away_ ? std::min(wait_ns, kAwayWaitNs) : wait_ns);
}

void PoolEngine::Learn(const ClientSession& session, uint64_t began_ns) {
  const MutexLock lock(mutex_);
  heard_ns_ = std::max(heard_ns_, session.heard_ns());
  if (heard_ns_ > began_ns) is_away_ = false;
}

void PoolEngine::NoteWait(uint64_t began_ns) {
  const MutexLock lock(mutex_);
  if (heard_ns_ <= began_ns) is_away_ = true;
}

Result<std::unique_ptr<BatchWorker>> PoolEngine::TakeWorker() const {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  auto endpoint = fabric_.Open({});
  if (!endpoint) return Fail(endpoint.error());
  const rma::Capabilities& can = (*endpoint)->capabilities();
  if (!can.delivery_complete) {
    return Fail(Code::kNotSupported, "this fabric does not tell when a write has arrived");
  }
  // A GET of a key that another client has written since could find what was there before.
  if (!can.coherent) {
    return Fail(Code::kNotSupported, "this fabric may read what memory was before");
  }
  return std::make_unique<BatchWorker>(
      std::make_unique<ClientSession>(std::move(*endpoint), clock_, source_),
      options_.cache_entries, options_.scan_window);
}

void PoolEngine::GiveBack(std::unique_ptr<BatchWorker> worker) const {
  const MutexLock lock(mutex_);
  Add(worker->session().statistics(), &total_);
  worker->session().statistics() = {};
  idle_.push_back(std::move(worker));
}

Result<SnapshotRef> PoolEngine::OpenSnapshot(uint64_t) {
  return Fail(Code::kNotSupported, "a pool has no snapshots");
}

Result<uint64_t> PoolEngine::Watch(std::string_view, uint64_t) {
  return Fail(Code::kNotSupported, "a pool has no atomic batches");
}

Result<std::unique_ptr<PairIterator>> PoolEngine::OpenPairIterator(uint64_t) {
  return Fail(Code::kNotSupported, "a pool has no snapshots");
}

// The one that was idle longest, which lies first, every tenth of the time that a client may be
// silent for all of them.
bool PoolEngine::Maintain(uint64_t) {
  std::unique_ptr<BatchWorker> worker;
  bool is_away = false;
  {
    const MutexLock lock(mutex_);
    is_away = is_away_;
    if (!is_away && (idle_.empty() || clock_.MonotonicNs() < keep_alive_ns_)) return false;
    if (!idle_.empty()) {
      keep_alive_ns_ = clock_.MonotonicNs() + PoolTimes{}.silence_ns_max / 10 / idle_.size();
      worker = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
  }
  if (worker == nullptr) {
    auto opened = TakeWorker();
    if (!opened) return false;
    worker = std::move(*opened);
  }
  const uint64_t began_ns = clock_.MonotonicNs();
  if (is_away) worker->Probe(began_ns + kProbeNs);
  worker->KeepAlive(clock_.MonotonicNs() + kKeepAliveNs);
  Learn(worker->session(), began_ns);
  GiveBack(std::move(worker));
  const MutexLock lock(mutex_);
  return !is_away_ && clock_.MonotonicNs() >= keep_alive_ns_;
}

// Whoever asks again at once, as INFO does, does not wait again.
std::optional<PoolStatus> PoolEngine::AskForStatus() const {
  const uint64_t now = clock_.MonotonicNs();
  if (now < no_status_until_ns_.load(std::memory_order_relaxed)) return std::nullopt;
  auto worker = TakeWorker();
  if (!worker) return std::nullopt;
  (*worker)->session().set_deadline_ns(std::min(DeadlineNs(), now + kStatusNs));
  const auto status = (*worker)->session().AskForStatus();
  GiveBack(std::move(*worker));
  if (!status) no_status_until_ns_.store(clock_.MonotonicNs() + kStatusNs);
  return status;
}

EngineStatistics PoolEngine::Statistics() const {
  EngineStatistics statistics;
  if (const auto status = AskForStatus()) statistics.items = status->items;
  return statistics;
}

ClientStatistics PoolEngine::statistics() const {
  const MutexLock lock(mutex_);
  return total_;
}

void PoolEngine::Describe(uint64_t, const StatsVisitor& visit) const {
  const auto status = AskForStatus();
  visit("pool_serves", status ? 1 : 0);
  if (status) {
    visit("pool_items", status->items);
    visit("pool_chunks", status->chunks);
    visit("pool_free_chunks", status->free_chunks);
    visit("pool_under_replicated_chunks", status->under_replicated_chunks);
    visit("pool_lost_chunks", status->lost_chunks);
    visit("pool_live_bytes", status->live_units * kUnitBytes);
    visit("pool_clients", status->clients);
    visit("pool_items_moved", status->cleaner.items_moved);
    visit("pool_bytes_moved", status->cleaner.bytes_moved);
    visit("pool_chunks_cleaned", status->cleaner.chunks_cleaned);
    visit("pool_items_evicted", status->cleaner.items_evicted);
    visit("pool_chunks_evicted", status->cleaner.chunks_evicted);
  }
  const ClientStatistics s = statistics();
  visit("pool_rounds", s.rounds);
  visit("pool_calls", s.calls);
  visit("pool_reads", s.reads);
  visit("pool_read_bytes", s.read_bytes);
  visit("pool_writes", s.writes);
  visit("pool_written_bytes", s.written_bytes);
  visit("pool_cache_hits", s.cache_hits);
  visit("pool_cache_misses", s.cache_misses);
  visit("pool_retries_redirected", s.retries_redirected);
  visit("pool_retries_torn", s.retries_torn);
  visit("pool_retries_late", s.retries_late);
  visit("pool_retries_lost", s.retries_lost);
  visit("pool_retries_slow", s.retries_slow);
  visit("pool_retries_contended", s.retries_contended);
  visit("pool_finds", s.finds);
}

}  // namespace skep::pool
