// coordinator_world.h: a coordination service for the conformance tests, and what can happen to its
// clients: the simulated one, or ZooKeeper's servers on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/coordinator.h"

namespace skep {

// Another process, which has created an ephemeral node.
class OtherProcess {
 public:
  virtual ~OtherProcess() = default;
  virtual void Kill() = 0;  // without a chance to say so
};

class CoordinatorWorld {
 public:
  enum class Link : uint8_t {
    kOpen,
    kParted,   // nothing passes
    kOneWay,   // requests pass, answers do not
    kRefused,  // nothing passes; the client is told, by the end of its connections
  };

  virtual ~CoordinatorWorld() = default;

  virtual std::unique_ptr<CoordinatorSession> Open(const CoordinatorSessionOptions& options) = 0;
  // What lies between a session and the service. To open a link costs the session its connection.
  virtual void SetLink(CoordinatorSession& session, Link link) = 0;
  // Returns once the node is there.
  virtual std::unique_ptr<OtherProcess> StartProcess(const std::string& path,
                                                     uint32_t timeout_ms) = 0;
  // What the service survives: all of it starts again, or its leader dies.
  virtual void FailService() = 0;
  // Nothing has happened: lets a little time pass. False: more has passed than any test needs.
  virtual bool PassTime() = 0;
  virtual uint64_t NowNs() = 0;
  virtual void Wake() = 0;  // from any thread
};

struct CoordinatorWorldInfo {
  std::string name;
  std::function<std::string()> missing;  // what this machine lacks for it; "": nothing
  std::function<std::unique_ptr<CoordinatorWorld>()> make;

  friend void PrintTo(const CoordinatorWorldInfo& info, std::ostream* out) { *out << info.name; }
};

// Those that this test program has.
std::vector<CoordinatorWorldInfo> CoordinatorWorlds();

}  // namespace skep
