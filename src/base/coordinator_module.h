// coordinator_module.h: the client of ZooKeeper, loaded when it is asked for.
//
// libskep, skep-server and the tools are linked without ZooKeeper's library, so that they run where
// it is not installed. What needs it is a shared library of its own, libskep-zookeeper, made with
// the rest and of the same version. It is looked for beside the library or program that asks, in
// the folder of libraries beside that one, and where the system's loader looks.
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
