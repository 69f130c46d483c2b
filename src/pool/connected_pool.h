// connected_pool.h: an engine over a pool that is found by its name: the coordinator that tells its
// map, the fabric to its servers, and the PoolEngine over both.
//
// It is made without waiting for anybody. Until the pool's roles are known, and while its servers
// do not answer, requests wait up to PoolOptions::timeout_ms and are then refused with
// kUnavailable.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/coordinator.h"
#include "engine/engine.h"
#include "engine/engine_info.h"
#include "rma/fabric.h"
#include "skep/options.h"

namespace skep::pool {

// Keyspaces may be pools: "pool,zk=HOST:PORT,name=NAME,fabric=mem".
extern const EngineInfo kPoolInfo;

// Reads one of those options (zk, name, fabric, timeout, in ms), for ranges, too, which alone have
// `password`.
//   kInvalidArgument  what is wrong with the value
Status ReadPoolOption(std::string_view name, std::string_view value, IndexOptions& index);

// What a process needs to take part in a pool: the service that says who is who, and the fabric to
// them.
struct PoolSurroundings {
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<rma::Fabric> fabric;
};

// Makes them without connecting to anybody. On an error *problem, if given, is a line for a person.
//   kInvalidArgument  the fabric, the name, or no servers of ZooKeeper
//   kNotSupported     the client of ZooKeeper, or the fabric, cannot be had here
Result<PoolSurroundings> ReachPool(const PoolOptions& options, std::string* problem = nullptr);

// Errors as ReachPool.
Result<std::unique_ptr<Engine>> ConnectPool(const PoolOptions& options,
                                            std::string* problem = nullptr);

}  // namespace skep::pool
