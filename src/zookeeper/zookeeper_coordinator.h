// zookeeper_coordinator.h: ZooKeeper as a coordination service, by its client library in C.
//
//   owner's thread             the library's threads, two a session
//   Send  ----- zoo_a... ----> I/O: sends, receives, pings, connects again
//                                      |
//   TakeEvents <--- queue <--- completions: answers, changes of state, watches, in their order;
//        ^          (mutex)            |
//        +---------------- wake -------+
//
// How the rules of base/coordinator.h come about
//   R1, W2  A server answers one session's requests in their order, and sends a watch's event
//   before
//           any answer that shows the change; the library completes in the order of arrival.
//   R3      Reads are answered by the server at the other end. Confirm is a transaction that checks
//           that the root is there: it goes through the leader and a majority like any write, and
//           the server has applied all that came before when it answers.
//   R4      The library completes what has no answer when its connection is lost. A request that is
//           still under way is refused by the leader once the session has moved to another server
//           (the leader notes each session's server when it is connected again); on the same server
//           the old connection is closed before the new one is accepted.
//   S4      Refused writes count too: a server passes them on like others, and their refusal is
//           agreed on by a majority. An answer that only the library gave does not count.
//   W3      The library tells the new server the newest change that it has seen, and its watches.
//
// Servers of an ensemble of the versions 3.6.0 to 3.8.0 (Debian 12 has 3.8.0) have a race that
// holds an answer back until another request comes by (ZOOKEEPER-4537): it is then some time late,
// or kUnknown when the library has given up the connection. A session that confirms itself again
// and again, or another session that does, sets it free.
//
// Nodes are open to everybody who reaches the servers, so these are to be reached by the cluster
// only.
#pragma once

#include <memory>
#include <string>

#include "base/coordinator.h"

namespace skep {

class ZooKeeperCoordinator final : public Coordinator {
 public:
  // `servers`: "host:port,host:port". `log` gets the lines that the library writes of connections,
  // from its threads; null: it writes none. The library has one level of logging for the process:
  // the coordinator that was made last decides.
  explicit ZooKeeperCoordinator(std::string servers, void (*log)(const char* line) = nullptr);

  // Resolves the servers' names, which may take as long as the system's resolver does.
  Result<std::unique_ptr<CoordinatorSession>> Open(
      const CoordinatorSessionOptions& options) override;

 private:
  const std::string servers_;
  void (*const log_)(const char* line);
};

}  // namespace skep
