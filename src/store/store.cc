#include "skep/store.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/network_address.h"
#include "base/store_time.h"
#include "client/remote_engine.h"
#include "durable/open_keyspaces.h"
#include "keyspace/keyspaces.h"
#include "store/single_call.h"
#include "store/wall_deadlines.h"

namespace skep {
namespace {

// Items of a Scanner's chunk: enough to make the cost of a batch small, few enough to keep.
constexpr uint32_t kChunkItems = 256;
constexpr size_t kChunkBytes = 256 * 1024;
constexpr uint32_t kChunkVisits = 4096;
// Keys that a count visits before it lets other batches run.
constexpr uint32_t kCountVisits = 16 * 1024;

constexpr Status kForeignSnapshot(Code::kInvalidArgument, "the snapshot is of another keyspace");

}  // namespace

Snapshot::Snapshot(Snapshot&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), ref_(std::exchange(other.ref_, {})) {}

Snapshot& Snapshot::operator=(Snapshot&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(ref_, other.ref_);
  return *this;
}

Snapshot::~Snapshot() {
  if (engine_ != nullptr) engine_->CloseSnapshot(ref_);
}

Watch::Watch(Watch&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), id_(std::exchange(other.id_, 0)) {}

Watch& Watch::operator=(Watch&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(id_, other.id_);
  return *this;
}

Watch::~Watch() {
  if (engine_ != nullptr) engine_->Unwatch(id_);
}

namespace {

// The time of a store. All stores in memory have the same one; a server takes deadlines by its own
// clock.
StoreNow NowOf(durable::Persistence* persistence, const client::Remote* remote) {
  static StoreTime in_memory(SystemClock());
  if (remote != nullptr) return {.ms = SystemClock().WallMs()};
  return (persistence != nullptr ? persistence->time() : in_memory).Now();
}

}  // namespace

Deadline DeadlineAfter(std::chrono::milliseconds lifetime) {
  return Deadline(std::chrono::milliseconds(SystemClock().WallMs()) + lifetime);
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const EngineInfo& info : AllEngines()) names.emplace_back(info.name);
  return names;
}

Result<std::unique_ptr<Store>> Store::Open(const Options& options, std::string* problem) {
  std::string unwanted;
  if (problem == nullptr) problem = &unwanted;
  auto opened = durable::OpenKeyspaces(PosixFileSystem(), SystemClock(), options, problem);
  if (!opened) return Fail(opened.error());
  if (opened->persistence != nullptr) opened->persistence->StartThreads();
  auto store = std::unique_ptr<Store>(new Store());
  store->persistence_ = std::move(opened->persistence);
  store->keyspaces_ = std::move(opened->keyspaces);
  return store;
}

namespace {

// Addresses that say which engine knows the way.
constexpr std::string_view kPoolScheme = "pool://";
constexpr std::string_view kRangesScheme = "ranges://";

bool IsNamed(std::string_view address) {
  return address.starts_with(kPoolScheme) || address.starts_with(kRangesScheme);
}

// "pool://HOST,HOST/NAME" or "ranges://..." as the name of an engine with its options.
Result<std::string> EngineAt(const ConnectOptions& options) {
  if (!options.one_sided.empty()) {
    return Fail(Code::kInvalidArgument, "one_sided is for the leaves of one server");
  }
  const size_t scheme = options.address.find("://");
  const std::string_view rest = std::string_view(options.address).substr(scheme + 3);
  const size_t slash = rest.find('/');
  // A comma would begin another option.
  if (slash == std::string_view::npos || rest.find(',', slash) != std::string_view::npos ||
      options.fabric.find(',') != std::string::npos) {
    return Fail(Code::kInvalidArgument,
                "the address of a pool, or of ranges, is pool://HOST:PORT,HOST:PORT/NAME");
  }
  if (options.password.find(',') != std::string::npos) {
    return Fail(Code::kInvalidArgument, "a password of the servers of ranges has no comma");
  }
  std::string engine = options.address.substr(0, scheme);
  for (std::string_view hosts = rest.substr(0, slash);;) {
    const size_t comma = std::min(hosts.find(','), hosts.size());
    engine.append(",zk=").append(hosts.substr(0, comma));
    if (comma == hosts.size()) break;
    hosts.remove_prefix(comma + 1);
  }
  engine.append(",name=").append(rest.substr(slash + 1));
  engine.append(",fabric=").append(options.fabric);
  if (!options.password.empty() && engine.starts_with("ranges,")) {
    engine.append(",password=").append(options.password);
  }
  return engine.append(",timeout=").append(std::to_string(options.timeout_ms));
}

// Whether the engine, or that of its first range, answers.
Status Probe(Engine& engine) {
  Batch batch;
  batch.Get("");
  engine.Execute(batch);
  const Outcome& outcome = batch.outcome(0);
  return outcome.verdict == Verdict::kRefused ? outcome.status : Status();
}

Result<std::unique_ptr<Keyspaces>> ConnectNamed(const ConnectOptions& options) {
  auto engine = EngineAt(options);
  if (!engine) return Fail(engine.error());
  auto keyspaces = Keyspaces::Make({.engine = std::move(*engine), .keyspaces = 1});
  if (!keyspaces) return Fail(keyspaces.error());
  const Status answers = Probe((*keyspaces)->at(0));
  if (!answers.ok()) return Fail(answers);
  return std::move(*keyspaces);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::Connect(const ConnectOptions& options) {
  if (IsNamed(options.address)) {
    auto keyspaces = ConnectNamed(options);
    if (!keyspaces) return Fail(keyspaces.error());
    auto store = std::unique_ptr<Store>(new Store());
    store->keyspaces_ = std::move(*keyspaces);
    return store;
  }
  const auto addresses = LookUp(options.address);
  if (!addresses) return Fail(addresses.error());
  ConnectOptions at = options;
  Result<std::unique_ptr<client::Remote>> remote;
  for (const Address& address : *addresses) {
    at.address = address;
    remote = client::Remote::Connect(at, SocketNetwork(), SystemClock());
    if (remote) break;
  }
  if (!remote) return Fail(remote.error());
  std::vector<std::unique_ptr<Engine>> engines;
  for (uint32_t i = 0; i < (*remote)->keyspaces(); ++i) {
    engines.push_back(std::make_unique<client::RemoteEngine>(**remote, i));
  }
  auto store = std::unique_ptr<Store>(new Store());
  store->remote_ = std::move(*remote);
  store->keyspaces_ = std::make_unique<Keyspaces>(std::move(engines));
  return store;
}

Store::Store() = default;

// A failure of Close() is ignored: writers were told of it, or there was nothing to write.
Store::~Store() {
  if (persistence_ != nullptr) static_cast<void>(persistence_->Close());
}

Status Store::SaveSnapshot() {
  if (remote_ != nullptr) return remote_->Save();
  if (persistence_ == nullptr) return {Code::kNotSupported, "the store has no directory"};
  return persistence_->saver().Save();
}

Status Store::Execute(Batch& batch, uint32_t keyspace) {
  if (keyspace >= keyspaces_->count()) return kNoSuchKeyspace;
  Engine& engine = keyspaces_->at(keyspace);
  engine.AwaitRelease(ExecuteByWall(engine, batch, NowOf(persistence_.get(), remote_.get())));
  return {};
}

// ---- Batches that are begun ----

BatchFuture::BatchFuture() = default;
BatchFuture::BatchFuture(BatchFuture&&) noexcept = default;
BatchFuture& BatchFuture::operator=(BatchFuture&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(ticket_, other.ticket_);
  std::swap(under_way_, other.under_way_);
  return *this;
}
BatchFuture::~BatchFuture() = default;

Status BatchFuture::Wait() {
  if (engine_ == nullptr) return kNoSuchKeyspace;
  engine_->AwaitRelease(Engine::Finish({.ticket = ticket_, .under_way = std::move(under_way_)}));
  return {};
}

BatchFuture Store::Begin(Batch& batch, uint32_t keyspace) {
  BatchFuture future;
  if (keyspace >= keyspaces_->count()) return future;
  future.engine_ = &keyspaces_->at(keyspace);
  BegunBatch begun = BeginByWall(*future.engine_, batch, NowOf(persistence_.get(), remote_.get()));
  future.ticket_ = begun.ticket;
  future.under_way_ = std::move(begun.under_way);
  return future;
}

namespace {

// Executes a batch of one request, and returns its outcome.
Result<const Outcome*> ExecuteOne(Store& store, Batch& batch, uint32_t keyspace) {
  if (Status s = store.Execute(batch, keyspace); !s.ok()) return Fail(s);
  const Outcome& out = batch.outcome(0);
  if (out.verdict == Verdict::kRefused) return Fail(out.status);
  return &out;
}

Result<bool> WhetherDone(Store& store, Batch& batch, uint32_t keyspace) {
  const auto out = ExecuteOne(store, batch, keyspace);
  if (!out) return Fail(out.error());
  return (*out)->verdict == Verdict::kDone;
}

}  // namespace

namespace {

Result<std::optional<std::string>> GetByBatch(Store& store, std::string_view key,
                                              uint32_t keyspace) {
  SingleCall call;
  call.batch().Get(key);
  const auto out = ExecuteOne(store, call.batch(), keyspace);
  if (!out) return Fail(out.error());
  if ((*out)->verdict == Verdict::kAbsent) return std::nullopt;
  return std::string((*out)->value);
}

}  // namespace

Result<std::optional<std::string>> Store::Get(std::string_view key, uint32_t keyspace) {
  Result<std::optional<std::string>> value;  // all ways return it, so that it is made in place
  const bool exists = keyspace < keyspaces_->count();
  PlainGets* const gets = exists ? keyspaces_->plain_gets(keyspace) : nullptr;
  const auto ticket = gets != nullptr ? gets->GetPlain(key, &*value) : std::nullopt;
  if (ticket) {
    Engine& engine = keyspaces_->at(keyspace);
    if (!engine.gate().IsReleased(*ticket)) engine.AwaitRelease(*ticket);
  } else {
    value = GetByBatch(*this, key, keyspace);
  }
  return value;
}

Status Store::Put(std::string_view key, std::string_view value, uint32_t keyspace) {
  SingleCall call;
  call.batch().Put(key, value);
  const auto out = ExecuteOne(*this, call.batch(), keyspace);
  return out ? Status() : out.error();
}

Result<bool> Store::Insert(std::string_view key, std::string_view value, uint32_t keyspace) {
  SingleCall call;
  call.batch().Insert(key, value);
  return WhetherDone(*this, call.batch(), keyspace);
}

Result<bool> Store::Update(std::string_view key, std::string_view value, uint32_t keyspace) {
  SingleCall call;
  call.batch().Update(key, value);
  return WhetherDone(*this, call.batch(), keyspace);
}

Result<bool> Store::Delete(std::string_view key, uint32_t keyspace) {
  SingleCall call;
  call.batch().Delete(key);
  return WhetherDone(*this, call.batch(), keyspace);
}

Result<bool> Store::CompareAndSet(std::string_view key, std::string_view expected,
                                  std::string_view value, uint32_t keyspace) {
  SingleCall call;
  call.batch().CompareAndSet(key, expected, value);
  return WhetherDone(*this, call.batch(), keyspace);
}

namespace {

// A deadline as requests have it. One before 1970 becomes the first millisecond, which has passed,
// too.
uint64_t MillisecondsOf(Deadline deadline) {
  if (deadline == kNever) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(1, deadline.time_since_epoch().count()));
}

}  // namespace

Status Store::PutUntil(std::string_view key, std::string_view value, Deadline deadline,
                       uint32_t keyspace) {
  SingleCall call;
  call.batch().Add({.op = Op::kPut,
                    .key = key,
                    .value = value,
                    .other = {},
                    .deadline_ms = MillisecondsOf(deadline)});
  const auto out = ExecuteOne(*this, call.batch(), keyspace);
  return out ? Status() : out.error();
}

Result<bool> Store::Expire(std::string_view key, Deadline deadline, uint32_t keyspace) {
  SingleCall call;
  call.batch().Expire(key, MillisecondsOf(deadline));
  return WhetherDone(*this, call.batch(), keyspace);
}

Result<std::optional<Deadline>> Store::DeadlineOf(std::string_view key, uint32_t keyspace) {
  SingleCall call;
  call.batch().Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key});
  const auto out = ExecuteOne(*this, call.batch(), keyspace);
  if (!out) return Fail(out.error());
  if ((*out)->verdict == Verdict::kAbsent) return std::nullopt;
  if ((*out)->deadline_ms == 0) return kNever;
  return Deadline(std::chrono::milliseconds((*out)->deadline_ms));
}

Result<Watch> Store::WatchKey(std::string_view key, uint32_t keyspace) {
  if (keyspace >= keyspaces_->count()) return Fail(kNoSuchKeyspace);
  Engine& engine = keyspaces_->at(keyspace);
  const auto id = engine.Watch(key, NowOf(persistence_.get(), remote_.get()).ms);
  if (!id) return Fail(id.error());
  Watch watch(engine, *id);
  // The version that was read may not be released yet, so that a later scan would not see it.
  SingleCall read;
  read.batch().Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key, .other = {}});
  if (Status s = Execute(read.batch(), keyspace); !s.ok()) return Fail(s);
  return watch;
}

bool Store::Maintain() { return keyspaces_->Maintain(NowOf(persistence_.get(), remote_.get()).ms); }

Result<uint64_t> Store::DeleteRange(const Range& range, uint32_t limit, uint32_t keyspace) {
  SingleCall call;
  call.batch().DeleteRange(range, limit);
  const auto out = ExecuteOne(*this, call.batch(), keyspace);
  if (!out) return Fail(out.error());
  return static_cast<uint64_t>((*out)->integer);
}

namespace {

// Takes the snapshot of a pass over a range. It is not valid if the engine keeps one version of a
// key: then each chunk is of an instant of its own.
Result<Snapshot> Pin(Store& store, uint32_t keyspace) {
  auto taken = store.TakeSnapshot(keyspace);
  if (!taken && taken.error().code() == Code::kNotSupported) return Snapshot();
  return taken;
}

}  // namespace

Result<uint64_t> Store::Count(const Range& range, uint32_t keyspace, const Snapshot* at) {
  if (at != nullptr && !IsOf(*at, keyspace)) return Fail(kForeignSnapshot);
  Snapshot own;
  if (at == nullptr) {
    auto pinned = Pin(*this, keyspace);
    if (!pinned) return Fail(pinned.error());
    own = std::move(*pinned);
    at = &own;
  }
  uint64_t count = 0;
  std::string lo(range.lo);
  Range left = range;
  Batch batch;
  while (true) {
    batch.Clear();
    left.lo = lo;
    batch.set_snapshot(at->ref());
    batch.Count(left, kCountVisits);
    const auto out = ExecuteOne(*this, batch, keyspace);
    if (!out) return Fail(out.error());
    count += static_cast<uint64_t>((*out)->integer);
    if (!(*out)->more) return count;
    lo.assign((*out)->value);
  }
}

Result<Snapshot> Store::TakeSnapshot(uint32_t keyspace) {
  if (keyspace >= keyspaces_->count()) return Fail(kNoSuchKeyspace);
  Engine& engine = keyspaces_->at(keyspace);
  const auto ref = engine.OpenSnapshot(NowOf(persistence_.get(), remote_.get()).ms);
  if (!ref) return Fail(ref.error());
  return Snapshot(engine, *ref);
}

StoreStatistics Store::Statistics() const {
  StoreStatistics all;
  all.memory_bytes = keyspaces_->budget().used();
  all.memory_bytes_max = keyspaces_->budget().limit();
  const uint64_t now_ms = NowOf(persistence_.get(), remote_.get()).ms;
  for (uint32_t i = 0; i < keyspaces_->count(); ++i) {
    const Engine* const engine = keyspaces_->if_used(i);
    if (engine == nullptr) continue;
    const EngineStatistics s = engine->Statistics();
    if (remote_ != nullptr && s.bytes == 0) continue;  // the server has not used it
    all.keyspaces.push_back({.index = i,
                             .engine = std::string(engine->traits().name),
                             .items = s.items,
                             .bytes = s.bytes,
                             .old_versions = s.old_versions,
                             .snapshots = s.snapshots,
                             .oldest_snapshot = s.oldest_snapshot,
                             .released = engine->gate().released(),
                             .details = {}});
    auto& details = all.keyspaces.back().details;
    engine->Describe(
        now_ms, [&](std::string_view name, uint64_t value) { details.emplace_back(name, value); });
  }
  return all;
}

Scanner Store::Scan(const Range& range, const ScanOptions& options, uint32_t keyspace,
                    const Snapshot* at) {
  Scanner scanner;
  scanner.store_ = this;
  scanner.keyspace_ = keyspace;
  scanner.lo_ = range.lo;
  scanner.hi_ = range.hi;
  scanner.unbounded_ = range.unbounded;
  scanner.options_ = options;
  scanner.left_ = options.limit == kNoLimit ? UINT64_MAX : options.limit;
  if (at != nullptr) {
    scanner.at_ = at->ref();
    if (!IsOf(*at, keyspace)) scanner.status_ = kForeignSnapshot;
  }
  return scanner;
}

bool Store::IsOf(const Snapshot& snapshot, uint32_t keyspace) const {
  return keyspace < keyspaces_->count() && snapshot.engine_ == keyspaces_->if_used(keyspace);
}

bool Scanner::Next() {
  // A chunk may have no item, if it only got past deleted keys.
  while (next_ == end_) {
    if (!status_.ok() || !more_ || left_ == 0) return false;
    status_ = Fetch();
  }
  item_ = *next_++;
  --left_;
  return true;
}

// Gets the next chunk.
Status Scanner::Fetch() {
  if (at_.id == 0) {
    auto pinned = Pin(*store_, keyspace_);
    if (!pinned) return pinned.error();
    own_ = std::move(*pinned);
    at_ = own_.ref();
  }
  batch_.Clear();
  batch_.set_snapshot(at_);
  batch_.set_scan_bytes_max(kChunkBytes);
  batch_.set_scan_visits_max(kChunkVisits);
  ScanOptions chunk = options_;
  chunk.limit = static_cast<uint32_t>(std::min<uint64_t>(left_, kChunkItems));
  batch_.Scan({.lo = lo_, .hi = hi_, .unbounded = unbounded_}, chunk);
  next_ = end_;
  const auto out = ExecuteOne(*store_, batch_, keyspace_);
  if (!out) return out.error();
  next_ = batch_.items(0).begin();
  more_ = (*out)->more;
  if (more_) {
    (options_.reverse ? hi_ : lo_).assign((*out)->value);
    unbounded_ = unbounded_ && !options_.reverse;
    options_.seek_floor = false;
  }
  return {};
}

}  // namespace skep
