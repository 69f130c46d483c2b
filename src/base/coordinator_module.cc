#include "base/coordinator_module.h"

#include <algorithm>
#include <string_view>

#include "base/module.h"

namespace skep {
namespace {

// "a,b:1" as "a:2181,b:1".
std::string WithPorts(std::string_view servers) {
  std::string all;
  while (!servers.empty()) {
    const std::string_view server = servers.substr(0, servers.find(','));
    servers.remove_prefix(std::min(server.size() + 1, servers.size()));
    all.append(all.empty() ? "" : ",").append(server);
    if (server.find(':') == std::string_view::npos) all += ":2181";
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Coordinator>> OpenZooKeeper(const std::string& servers,
                                                   std::string* problem) {
  std::string why;
  const auto make =
      reinterpret_cast<ZooKeeperEntry>(LoadModule("zookeeper", kZooKeeperEntry, &why));
  if (make != nullptr) return std::unique_ptr<Coordinator>(make(WithPorts(servers).c_str()));
  if (problem != nullptr) {
    *problem = "the client of ZooKeeper cannot be loaded: " + why +
               " (the package libzookeeper-mt2; to build it, libzookeeper-mt-dev)";
  }
  return Fail(Code::kNotSupported,
              "libskep-zookeeper, the client of ZooKeeper, cannot be loaded: make pool builds it");
}

}  // namespace skep
