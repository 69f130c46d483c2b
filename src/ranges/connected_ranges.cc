#include "ranges/connected_ranges.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/coordinator_module.h"
#include "base/mutex.h"
#include "base/network_address.h"
#include "base/network_socket.h"
#include "base/repeating_thread.h"
#include "client/remote.h"
#include "client/remote_engine.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"
#include "pool/connected_pool.h"
#include "ranges/map_client.h"
#include "ranges/range_map.h"
#include "ranges/ranged_engine.h"

namespace skep::ranges {
namespace {

// Keyspace 0 of a server.
struct Server {
  explicit Server(std::unique_ptr<client::Remote> connected)
      : remote(std::move(connected)), engine(*remote, 0) {}
  const std::unique_ptr<client::Remote> remote;
  client::RemoteEngine engine;
};

// A base that has what the engine is made of outlives it, here and below.
class ServerEngine final : private Server, public ForwardingEngine {
 public:
  explicit ServerEngine(std::unique_ptr<client::Remote> connected)
      : Server(std::move(connected)), ForwardingEngine(Server::engine) {}

  BegunBatch Begin(Batch& batch) override { return inner().Begin(batch); }
};

constexpr Status kNobody(Code::kUnavailable, "no server serves these keys now");
constexpr Status kPartly(Code::kUnavailable,
                         "the ranges have moved meanwhile: a part of it may be done");
constexpr std::chrono::milliseconds kPoll(1000);  // how often the map is read anyway
constexpr std::chrono::milliseconds kAgain(2);    // before a request is sent once more

Result<std::unique_ptr<Engine>> ConnectServer(const PoolOptions& options,
                                              const std::string& target) {
  const auto addresses = LookUp(target);
  if (!addresses) return Fail(addresses.error());
  Result<std::unique_ptr<client::Remote>> remote;
  for (const Address& address : *addresses) {
    remote = client::Remote::Connect(
        {.address = address, .password = options.password, .timeout_ms = options.timeout_ms},
        SocketNetwork(), SystemClock());
    if (remote) return std::make_unique<ServerEngine>(std::move(*remote));
  }
  return Fail(remote.error());
}

Result<std::unique_ptr<Engine>> ConnectPart(const PoolOptions& options, const std::string& target,
                                            std::string* problem) {
  if (!target.starts_with(kPoolTarget)) return ConnectServer(options, target);
  PoolOptions pool = options;
  pool.name = target.substr(kPoolTarget.size());
  return pool::ConnectPool(pool, problem);
}

// One version of the map, with the engines of its places.
struct Routes {
  Routes(int32_t version_of_map, std::vector<RangePart> parts)
      : version(version_of_map), engine(std::move(parts)) {}
  const int32_t version;
  RangedEngine engine;
};

bool IsMoved(const Outcome& outcome) {
  return outcome.verdict == Verdict::kRefused && outcome.status.code() == Code::kMoved;
}

// Most batches meet no moved key, and pay for this look only.
bool HasMoved(const Batch& batch) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    if (IsMoved(batch.outcome(slot))) return true;
  }
  return false;
}

// The slots that were refused because their keys have moved, and can be done again.
std::vector<uint32_t> TakeMoved(Batch& batch, const RangedEngine& engine) {
  BatchWriter writer(batch, BatchWriter::KeepOutcomes{});
  std::vector<uint32_t> moved;
  if (!HasMoved(batch)) return moved;
  std::set<std::string_view> done;  // the keys of later slots
  for (uint32_t slot = static_cast<uint32_t>(batch.size()); slot-- > 0;) {
    const Request& request = batch.requests()[slot];
    const Outcome& outcome = writer.outcome(slot);
    if (!IsMoved(outcome)) {
      done.insert(request.key);
      continue;
    }
    const bool is_range = IsRange(request.op) || request.op == Op::kDeleteAll;
    const bool crosses = request.op == Op::kDeleteAll
                             ? engine.parts().size() > 1
                             : is_range && engine.PartOf(request.key) != engine.LastPartOf(request);
    if ((IsWrite(request.op) && crosses) || (!is_range && done.contains(request.key))) {
      writer.Refuse(slot, kPartly);
    } else {
      moved.push_back(slot);
    }
  }
  std::ranges::reverse(moved);
  return moved;
}

// A client's view of the map, which is read again every kPoll, and when a server says that keys
// have moved. Requests that were refused so are done again, for as long as a call may take.
class ConnectedRanges final : public Engine {
 public:
  ConnectedRanges(PoolOptions options, std::unique_ptr<Coordinator> coordinator)
      : options_(std::move(options)),
        coordinator_(std::move(coordinator)),
        map_(*coordinator_, options_.name, options_.timeout_ms) {}

  // Connects to all places of the map.
  Status Begin(std::string* problem) {
    if (const Status status = Refresh(-1, problem); !status.ok()) return status;
    traits_ = Current()->engine.traits();
    thread_.emplace(kPoll, [this] {
      std::string unwanted;
      Refresh(Current()->version, &unwanted).code();
      return false;
    });
    return {};
  }

  const EngineTraits& traits() const override { return traits_; }
  Version Execute(Batch& batch) override;
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override {
    return Current()->engine.OpenSnapshot(now_ms);
  }
  void CloseSnapshot(SnapshotRef) override {}
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    return Current()->engine.Watch(key, now_ms);
  }
  bool Maintain(uint64_t now_ms) override { return Current()->engine.Maintain(now_ms); }
  EngineStatistics Statistics() const override { return Current()->engine.Statistics(); }
  void Describe(uint64_t now_ms, const StatsVisitor& visit) const override {
    const auto routes = Current();
    visit("map_version", static_cast<uint64_t>(routes->version));
    routes->engine.Describe(now_ms, visit);
  }
  const char* Verify() const override { return nullptr; }
  void StartAfter(Version, uint64_t) override {}
  Result<std::unique_ptr<PairIterator>> OpenPairIterator(uint64_t now_ms) override {
    return Current()->engine.OpenPairIterator(now_ms);
  }

 private:
  std::shared_ptr<Routes> Current() const {
    const MutexLock lock(routes_mutex_);
    return routes_;
  }
  // Reads the map, unless somebody has read one with another version than `known` meanwhile.
  Status Refresh(int32_t known, std::string* problem);
  Result<std::shared_ptr<Routes>> Connect(const RangeMap& map, std::string* problem);

  const PoolOptions options_;
  const std::unique_ptr<Coordinator> coordinator_;
  EngineTraits traits_;
  Mutex map_mutex_;  // held while the map is read, and places are connected to
  MapClient map_ SKEP_GUARDED_BY(map_mutex_);
  std::map<std::string, std::unique_ptr<Engine>> places_ SKEP_GUARDED_BY(map_mutex_);
  mutable Mutex routes_mutex_;
  std::shared_ptr<Routes> routes_ SKEP_GUARDED_BY(routes_mutex_);
  std::optional<RepeatingThread> thread_;
};

Status ConnectedRanges::Refresh(int32_t known, std::string* problem) {
  const MutexLock lock(map_mutex_);
  if (const auto routes = Current(); routes != nullptr && routes->version != known) return {};
  const auto map = map_.Read();
  if (!map) {
    *problem = map.error().ToString();
    return map.error();
  }
  if (map->version == known) return {};
  auto routes = Connect(*map, problem);
  if (!routes) return routes.error();
  const MutexLock routes_lock(routes_mutex_);
  routes_ = std::move(*routes);
  return {};
}

Result<std::shared_ptr<Routes>> ConnectedRanges::Connect(const RangeMap& map,
                                                         std::string* problem) {
  std::vector<RangePart> parts;
  for (const RangeMap::Entry& entry : map.entries) {
    auto& place = places_[entry.target];
    if (place == nullptr) {
      std::string why;
      auto connected = ConnectPart(options_, entry.target, &why);
      if (connected && !(*connected)->traits().ordered) {
        connected = Fail(Code::kNotSupported, "a range must be at an ordered keyspace");
      }
      if (!connected) {
        *problem = "the range at " + entry.target + ": " +
                   (why.empty() ? connected.error().ToString() : why);
        return Fail(connected.error());
      }
      place = std::move(*connected);
    }
    parts.push_back({.lower = entry.lower, .engine = place.get()});
  }
  return std::make_shared<Routes>(map.version, std::move(parts));
}

Version ConnectedRanges::Execute(Batch& batch) {
  auto routes = Current();
  routes->engine.Execute(batch);
  std::vector<uint32_t> moved = TakeMoved(batch, routes->engine);
  if (moved.empty()) return 0;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.timeout_ms);
  while (!moved.empty() && std::chrono::steady_clock::now() < until) {
    std::string unwanted;
    Refresh(routes->version, &unwanted).code();
    // ZooKeeper's connection broke, or the server goes by an older map than this client, or does
    // not serve the range yet.
    if (Current()->version == routes->version) std::this_thread::sleep_for(kAgain);
    routes = Current();
    if (batch.kind() == Batch::Kind::kAtomic) {
      routes->engine.Execute(batch);
      moved = TakeMoved(batch, routes->engine);
      continue;
    }
    Batch again;
    again.set_now_ms(batch.now_ms());
    again.set_scan_bytes_max(batch.scan_bytes_max());
    again.set_scan_visits_max(batch.scan_visits_max());
    again.set_answer_bytes_max(batch.answer_bytes_max());
    again.set_returned_bytes_max(batch.returned_bytes_max());
    for (const uint32_t slot : moved) again.Add(batch.requests()[slot]);
    routes->engine.Execute(again);
    const std::vector<uint32_t> still = TakeMoved(again, routes->engine);
    BatchWriter writer(batch, BatchWriter::KeepOutcomes{});
    for (uint32_t i = 0; i < moved.size(); ++i) CopyOutcome(again, i, writer, moved[i]);
    std::vector<uint32_t> rest;
    for (const uint32_t i : still) rest.push_back(moved[i]);
    moved = std::move(rest);
  }
  BatchWriter writer(batch, BatchWriter::KeepOutcomes{});
  for (const uint32_t slot : moved) writer.Refuse(slot, kNobody);
  return 0;
}

constexpr std::string_view kOptionNames[] = {"zk", "name", "fabric", "timeout", "password"};

Result<std::unique_ptr<Engine>> Connect(const IndexOptions& options, std::string* problem) {
  return ConnectRanges(options.pool, problem);
}

Status Check(const IndexOptions& options) {
  const auto coordinator = ReachMap(options.pool);
  return coordinator ? Status() : coordinator.error();
}

}  // namespace

constinit const EngineInfo kRangesInfo = {
    .name = "ranges",
    .summary = "ordered, one version; each range of the keys at another server or pool",
    .connect = &Connect,
    .external = true,
    .check = &Check,
    .option_names = kOptionNames,
    .read_option = &pool::ReadPoolOption};

Result<std::unique_ptr<Coordinator>> ReachMap(const PoolOptions& options, std::string* problem) {
  std::string unwanted;
  if (problem == nullptr) problem = &unwanted;
  if (options.zookeeper.empty() || !IsMapName(options.name)) {
    *problem = "a map of ranges needs servers of ZooKeeper, zk=HOST:PORT, and a name, name=";
    return Fail(Code::kInvalidArgument, "a map of ranges needs zk=HOST:PORT and name=");
  }
  return OpenZooKeeper(options.zookeeper, problem);
}

Result<std::unique_ptr<Engine>> ConnectRanges(const PoolOptions& options, std::string* problem) {
  std::string unwanted;
  if (problem == nullptr) problem = &unwanted;
  auto coordinator = ReachMap(options, problem);
  if (!coordinator) return Fail(coordinator.error());
  auto ranges = std::make_unique<ConnectedRanges>(options, std::move(*coordinator));
  if (const Status status = ranges->Begin(problem); !status.ok()) return Fail(status);
  return ranges;
}

}  // namespace skep::ranges
