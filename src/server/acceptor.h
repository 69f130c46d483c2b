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
  // All must outlive it.
  Acceptor(ServerState& state, WorkerPool& pool, TurnContext& turn, Poller& poller)
      : state_(state), pool_(pool), turn_(turn), poller_(poller) {}

  // The listener must live until the worker is drained.
  Status Listen(Listener& listener);
  // The listener of an event; null if the event is none of a listener.
  Listener* Find(const void* tag) const;
  // Accepts what waits, up to a bound a turn.
  void Accept(Listener& listener);
  // Polls those again for which there were no descriptors.
  void Retry();
  // Accepts nothing more.
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
