// fabric_world.h: what the tests of every fabric run in, in one thread.
//
// A test polls the endpoints in turns; where none has anything to do, it lets time pass: the kernel
// does its part meanwhile, or the clock of a simulation moves to what comes next.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "rma/fabric.h"

namespace skep::rma {

class FabricWorld {
 public:
  virtual ~FabricWorld() = default;
  virtual Fabric& fabric() = 0;
  // Where an endpoint can listen; another one each time.
  virtual Address NewAddress() = 0;
  // An address of this fabric where nobody listens.
  virtual Address NobodysAddress() = 0;
  virtual void PassTime() = 0;
  // What repeats a failure: a seed, say.
  virtual std::string Describe() const { return ""; }
};

struct FabricBackend {
  std::string name;
  std::function<std::unique_ptr<FabricWorld>()> make;
};

inline void PrintTo(const FabricBackend& backend, std::ostream* to) { *to << backend.name; }

// Those of libfabric that can be had here; says which cannot, and why.
std::vector<FabricBackend> OfiBackends();
// All there are: mem, tcp over sockets, tcp over a simulated network, the simulated fabric, and
// those of libfabric.
std::vector<FabricBackend> AllBackends();
// Those whose endpoints listen on sockets.
std::vector<FabricBackend> SocketBackends();

}  // namespace skep::rma
