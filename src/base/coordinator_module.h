// coordinator_module.h: the client of ZooKeeper, loaded when it is asked for.
//
// The module is libskep-zookeeper.so (module.h).
#pragma once

#include <memory>
#include <string>

#include "base/coordinator.h"

namespace skep {

// The service at these servers, "host:port,host:port"; a port that is not given is 2181. Names are
// resolved, and connections made, when a session is opened. Thread-safe. `problem`, if given, is a
// line for a person on an error.
//   kNotSupported  there is no libskep-zookeeper, or a library that it needs is not installed
Result<std::unique_ptr<Coordinator>> OpenZooKeeper(const std::string& servers,
                                                   std::string* problem = nullptr);

// The function that the module shows under the name kZooKeeperEntry makes a coordinator, which the
// caller owns. The name changes whenever the class Coordinator does.
using ZooKeeperEntry = Coordinator* (*)(const char* servers);
inline constexpr const char* kZooKeeperEntry = "SkepMakeZooKeeperCoordinator1";

}  // namespace skep
