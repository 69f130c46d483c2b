// datagrams.h: messages of the packed protocol that come without a connection.
//
// Each has a session of its own (datagram_port.h) and is dispatched like one of a connection; what
// all of a turn are answered leaves together. What waits for a gate, or for its task, leaves in a
// later turn, or is dropped when it is overdue.
//
// What is no message of this protocol is not answered: who sent it is not who it seems to be.
//
// Callers: the worker. Thread safety: the owning worker only.
#pragma once

#include <memory>
#include <vector>

#include "base/network.h"
#include "server/connections.h"
#include "server/datagram_port.h"
#include "server/packed_dispatch.h"
#include "server/reply_gates.h"
#include "server/server_call.h"
#include "server/turn_batch.h"

namespace skep {

class Datagrams {
 public:
  // All must outlive it.
  Datagrams(ServerHost& host, Connections& connections, TurnBatch& batch, PackedDispatch& packed,
            Poller& poller)
      : host_(host),
        turn_(host.turn()),
        gates_(host.gates()),
        connections_(connections),
        batch_(batch),
        packed_(packed),
        poller_(poller) {}
  // After the connections are reaped.
  ~Datagrams();

  // Serves what comes there.
  Status Serve(std::unique_ptr<DatagramSocket> socket);
  // The port of an event; null if the event is none of a port.
  DatagramPort* Find(const void* tag) const;
  // Dispatches what has come, one system call a turn: what its messages view stays until the next
  // one.
  void Receive(DatagramPort& port);
  // Sends what is answered.
  void Send();
  // Drops the replies that wait for a gate for too long.
  void DropOverdue();
  // Nothing more is received.
  void Stop();

 private:
  void Dispatch(DatagramPort& port, const Datagram& datagram);

  ServerHost& host_;
  TurnContext& turn_;
  ReplyGates& gates_;
  Connections& connections_;
  TurnBatch& batch_;
  PackedDispatch& packed_;
  Poller& poller_;
  std::vector<std::unique_ptr<DatagramPort>> ports_;
};

}  // namespace skep
