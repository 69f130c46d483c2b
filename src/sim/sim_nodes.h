// sim_nodes.h: the nodes of a simulated coordination service, and what a request makes of them.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/coordinator.h"

namespace skep {

class SimNodes {
 public:
  // What a change has touched: watches of it fire.
  struct Touched {
    std::string path;
    bool bytes = false;     // of Get: its bytes, or its end
    bool children = false;  // of Children: their set, or the end of the node itself
  };

  SimNodes() { nodes_.emplace("/", Node()); }

  // The answer to a request of this session. A request that changes nothing touches nothing.
  CoordinatorEvent Do(const CoordinatorRequest& request, uint64_t session,
                      std::vector<Touched>& touched);
  CoordinatorEvent Read(const CoordinatorRequest& request) const;
  // Deletes the ephemeral nodes of a session.
  void EndSession(uint64_t session, std::vector<Touched>& touched);

 private:
  struct Node {
    std::string bytes = {};
    int32_t version = 0;
    uint64_t owner = 0;        // the session; 0: persistent
    uint32_t last_number = 0;  // of its sequential children
  };

  CoordinatorEvent Create(const CoordinatorRequest& request, uint64_t session,
                          std::vector<Touched>& touched);
  CoordinatorEvent Set(const CoordinatorRequest& request, std::vector<Touched>& touched);
  CoordinatorEvent Delete(const CoordinatorRequest& request, std::vector<Touched>& touched);
  std::vector<std::string> ChildrenOf(std::string_view path) const;
  void Erase(const std::string& path, std::vector<Touched>& touched);

  std::map<std::string, Node, std::less<>> nodes_;  // by path
};

}  // namespace skep
