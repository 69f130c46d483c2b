// connected_pool.h: an engine over a pool that is found by its name: the coordinator that tells its
// map, the fabric to its servers, and the PoolEngine over both.
//
// It is made without waiting for anybody. Until the pool's roles are known, and while its servers
// do not answer, requests wait up to PoolOptions::timeout_ms and are then refused with
// kUnavailable.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/engine_info.h"
#include "rma/fabric.h"
#include "skep/options.h"

namespace skep::pool {

// Keyspaces may be pools: "pool,zk=HOST:PORT,name=NAME,fabric=mem".
extern const EngineInfo kPoolInfo;

// The fabric of this name, over the machine's network. Null: there is none of that name.
std::unique_ptr<rma::Fabric> MakeFabric(std::string_view name);

// Whether a pool can have this name: it becomes a name of the coordinator's.
bool IsPoolName(std::string_view name);

//   kInvalidArgument  the fabric, the name, or no servers of ZooKeeper
//   kNotSupported     the client of ZooKeeper cannot be loaded
Status CheckPool(const PoolOptions& options, std::string* problem = nullptr);

// Errors as CheckPool.
Result<std::unique_ptr<Engine>> ConnectPool(const PoolOptions& options,
                                            std::string* problem = nullptr);

}  // namespace skep::pool
