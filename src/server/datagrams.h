// datagrams.h: messages of the packed protocol that come without a connection.
//
// Each message has a session of its own (datagram_port.h) and is dispatched like one of a
// connection; the replies of a turn leave together. A reply that waits for a gate, or for its task,
// leaves in a later turn, or is dropped when it is overdue.
//
// A datagram that is no message of this protocol is not answered: its sender's address may be
// forged.
//
// Callers: the worker. Thread safety: the owning worker only.
#pragma once

#include <memory>
#include <vector>

#include "base/network.h"
#include "server/connections.h"
#include "server/datagram_port.h"
#include "server/hot_filler.h"
#include "server/packed_dispatch.h"
#include "server/reply_gates.h"
#include "server/server_call.h"
#include "server/turn_batch.h"

namespace skep {

class Datagrams {
 public:
  // All arguments must outlive this object.
  Datagrams(ServerHost& host, Connections& connections, TurnBatch& batch, PackedDispatch& packed,
            HotFiller& hot, Poller& poller)
      : host_(host),
        turn_(host.turn()),
        gates_(host.gates()),
        connections_(connections),
        batch_(batch),
        packed_(packed),
        hot_(hot),
        poller_(poller) {}
  // Destroyed after the connections are reaped.
  ~Datagrams();

  // Serves the messages that come to the socket.
  Status Serve(std::unique_ptr<DatagramSocket> socket);
  // The port that a poller's event is about; null if it is about none.
  DatagramPort* Find(const void* tag) const;
  // Dispatches the datagrams that have come, one system call a turn: the bytes that messages view
  // stay until the next call.
  void Receive(DatagramPort& port);
  // Sends the replies of answered messages.
  void Send();
  // Drops the replies that wait for a gate for too long.
  void DropOverdue();
  // Stops receiving.
  void Stop();

 private:
  void Dispatch(DatagramPort& port, const Datagram& datagram);

  ServerHost& host_;
  TurnContext& turn_;
  ReplyGates& gates_;
  Connections& connections_;
  TurnBatch& batch_;
  PackedDispatch& packed_;
  HotFiller& hot_;
  Poller& poller_;
  std::vector<std::unique_ptr<DatagramPort>> ports_;
};

}  // namespace skep
