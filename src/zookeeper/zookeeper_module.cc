// What libskep-zookeeper shows: base/coordinator_module.h loads it.
#include "base/coordinator_module.h"
#include "zookeeper/zookeeper_coordinator.h"

extern "C" __attribute__((visibility("default"))) skep::Coordinator* SkepMakeZooKeeperCoordinator1(
    const char* servers) {
  return new skep::ZooKeeperCoordinator(servers);
}
