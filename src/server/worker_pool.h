// worker_pool.h: what a worker may ask of the workers beside it. The server implements it.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "base/network.h"

namespace skep {

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  // Gives a new connection to the worker with the fewest.
  virtual void Place(std::unique_ptr<Stream> stream) = 0;
  // Number of connections of all workers.
  virtual size_t connections() const = 0;
  // Makes each worker have a turn: something that all look at has changed.
  virtual void WakeAll() = 0;
};

}  // namespace skep
