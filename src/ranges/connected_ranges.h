// connected_ranges.h: a keyspace of ranges that is found by the name of its map: connects to each
// of the servers and pools that the map names.
//
// The map is read, and servers are connected to, when the engine is made; that waits for them, for
// PoolOptions::timeout_ms each. Pools are not waited for. The map is read again every second, and
// when a server says that keys have moved (Code::kMoved): what it has refused is then done again,
// where the map says by now, for up to timeout_ms. A write of a range in several places is not done
// again, since a part of it may be done.
#pragma once

#include <memory>
#include <string>

#include "base/coordinator.h"
#include "engine/engine.h"
#include "engine/engine_info.h"
#include "skep/options.h"

namespace skep::ranges {

// Keyspaces may be ranges: "ranges,zk=HOST:PORT,name=NAME,fabric=mem"; the options are a pool's.
extern const EngineInfo kRangesInfo;

// On an error *problem, if given, is a line for a person.
//   kInvalidArgument  no servers of ZooKeeper, no such map
//   kNotSupported     the client of ZooKeeper cannot be had here; an engine without order
//   kUnavailable      ZooKeeper or a server does not answer
//   and the errors of pool::ConnectPool and Store::Connect for each range
Result<std::unique_ptr<Engine>> ConnectRanges(const PoolOptions& options,
                                              std::string* problem = nullptr);

// The coordinator of a map of this name. Errors as above.
Result<std::unique_ptr<Coordinator>> ReachMap(const PoolOptions& options,
                                              std::string* problem = nullptr);

}  // namespace skep::ranges
