// A process that holds an ephemeral node of ZooKeeper until it is killed:
//
//   coordinator_holder SERVERS PATH TIMEOUT_MS
//
// Prints "ready" once the node is there.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "zookeeper/zookeeper_coordinator.h"

namespace skep {
namespace {

int Hold(const char* servers, const char* path, uint32_t timeout_ms) {
  ZooKeeperCoordinator coordinator(servers);
  auto session = coordinator.Open({.timeout_ms = timeout_ms});
  if (!session) return 1;
  while (true) {
    for (const CoordinatorEvent& event : (*session)->TakeEvents()) {
      if (event.kind == CoordinatorEvent::Kind::kConnected) {
        (*session)->Create(1, path, "", CoordinatorNode::kEphemeral);
      } else if (event.kind == CoordinatorEvent::Kind::kAnswer) {
        if (event.outcome != CoordinatorOutcome::kDone) return 1;
        std::puts("ready");
        std::fflush(stdout);
      } else {
        return 1;
      }
    }
    usleep(10'000);
  }
}

}  // namespace
}  // namespace skep

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return skep::Hold(argv[1], argv[2], static_cast<uint32_t>(std::atoi(argv[3])));
}
