#include "ranges/connected_ranges.h"

#include <utility>
#include <vector>

#include "base/coordinator_module.h"
#include "base/network_address.h"
#include "base/network_socket.h"
#include "client/remote.h"
#include "client/remote_engine.h"
#include "engine/forwarding_engine.h"
#include "pool/connected_pool.h"
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

struct Parts {
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<RangePart> ranges;
};

class ConnectedRanges final : private Parts, public ForwardingEngine {
 public:
  explicit ConnectedRanges(Parts parts)
      : Parts(std::move(parts)),
        ForwardingEngine(std::make_unique<RangedEngine>(std::move(ranges))) {}
};

Result<std::unique_ptr<Engine>> ConnectServer(const std::string& target, uint32_t timeout_ms) {
  const auto addresses = LookUp(target);
  if (!addresses) return Fail(addresses.error());
  Result<std::unique_ptr<client::Remote>> remote;
  for (const Address& address : *addresses) {
    remote = client::Remote::Connect({.address = address, .timeout_ms = timeout_ms},
                                     SocketNetwork(), SystemClock());
    if (remote) return std::make_unique<ServerEngine>(std::move(*remote));
  }
  return Fail(remote.error());
}

Result<std::unique_ptr<Engine>> ConnectPart(const PoolOptions& options, const std::string& target,
                                            std::string* problem) {
  if (!target.starts_with(kPoolTarget)) return ConnectServer(target, options.timeout_ms);
  PoolOptions pool = options;
  pool.name = target.substr(kPoolTarget.size());
  return pool::ConnectPool(pool, problem);
}

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
    .option_names = pool::kPoolOptionNames,
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
  const auto coordinator = ReachMap(options, problem);
  if (!coordinator) return Fail(coordinator.error());
  const auto map = ReadRangeMap(**coordinator, options.name, options.timeout_ms);
  if (!map) {
    *problem = map.error().ToString();
    return Fail(map.error());
  }
  Parts all;
  for (const RangeMap::Entry& entry : map->entries) {
    std::string why;
    auto part = ConnectPart(options, entry.target, &why);
    if (part && !(*part)->traits().ordered) {
      part = Fail(Code::kNotSupported, "a range must be at an ordered keyspace");
    }
    if (!part) {
      *problem =
          "the range at " + entry.target + ": " + (why.empty() ? part.error().ToString() : why);
      return Fail(part.error());
    }
    all.ranges.push_back({.lower = entry.lower, .engine = part->get()});
    all.engines.push_back(std::move(*part));
  }
  return std::make_unique<ConnectedRanges>(std::move(all));
}

}  // namespace skep::ranges
