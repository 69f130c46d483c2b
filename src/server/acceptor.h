// acceptor.h: the listeners that one worker looks after; their connections go to all workers.
//
// If the process has no descriptors left, a listener is not polled until the next upkeep: it would
// be ready in every turn.
//
// Callers: the worker. Thread safety: the owning worker only.
#pragma once

#include <memory>
#include <vector>

#include "base/network.h"
#include "server/turn_context.h"
#include "server/worker_pool.h"

namespace skep {

class ServerState;

class Acceptor {
 public:
  // All arguments must outlive the acceptor.
  Acceptor(ServerState& state, WorkerPool& pool, TurnContext& turn, Poller& poller)
      : state_(state), pool_(pool), turn_(turn), poller_(poller) {}

  // The listener must live until the worker is drained.
  Status Listen(Listener& listener);
  // The listener that a poller's event is about; null if it is about none.
  Listener* Find(const void* tag) const;
  // Accepts waiting connections, up to a bound a turn.
  void Accept(Listener& listener);
  // Polls the listeners again for which there were no descriptors.
  void Retry();
  // Stops accepting.
  void Stop();

 private:
  void RejectOrPlace(std::unique_ptr<Stream> stream);

  ServerState& state_;
  WorkerPool& pool_;
  TurnContext& turn_;
  Poller& poller_;
  std::vector<Listener*> listeners_;
  std::vector<Listener*> exhausted_;  // not polled: no descriptors were left
};

}  // namespace skep
