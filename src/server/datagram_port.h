// datagram_port.h: messages of the packed protocol that reach a worker without a connection.
//
//   Receive   takes the datagrams that came, in one system call
//   Admit     gives a message a session of its own, from a pool: it is dispatched like one of a
//             connection
//   Answer    its reply is whole, or still waits for a gate or for its task
//   Send      sends all replies of a turn, in few system calls; their sessions go back to the pool
//
// A message for which there is no session, or no room in the network for its reply, is lost: its
// client asks again, as it must anyway. A reply that waits for a gate for longer than kWaitMsMax is
// dropped, too: it may wait for long (a disk that stalls), and other messages need its session.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/network.h"
#include "server/session.h"
#include "wire/packed.h"

namespace skep {

// The one message of a datagram.
struct DatagramSession : Session {
  DatagramPeer peer;
  uint64_t admitted_ms = 0;
};

// Replaces the reply to a message with this header, which begins at `begin` of `out`, by kTooLarge
// if it does not fit into a datagram of `datagram_bytes_max`. Frees the memory of the reply.
void FitIntoDatagram(std::string& out, size_t begin, const packed::Header& header,
                     size_t datagram_bytes_max);

class DatagramPort {
 public:
  // The most messages whose replies have not left; together they may hold 64 MiB of replies.
  static constexpr size_t kSessionsMax = 1024;
  static constexpr uint64_t kWaitMsMax = 1000;

  explicit DatagramPort(std::unique_ptr<DatagramSocket> socket) : socket_(std::move(socket)) {}

  DatagramSocket& socket() { return *socket_; }

  // Returns the session of a message, for a reply to this peer, of which `head` is the beginning;
  // null if kSessionsMax are in use. Its reply leaves with Answer.
  Session* Admit(const DatagramPeer& peer, const packed::DatagramHead& head, size_t reply_bytes_max,
                 uint64_t now_ms);
  // The reply of an admitted session leaves with the next Send, unless it waits for a gate, or for
  // its task. A reply that does not fit is replaced by kTooLarge.
  void Answer(Session& session);
  // Whether the session, which waits for a gate, has waited for too long.
  static bool IsOverdue(const Session& session, uint64_t now_ms) {
    return now_ms > static_cast<const DatagramSession&>(session).admitted_ms + kWaitMsMax;
  }
  // Drops the reply of a session that waits for a gate.
  void Drop(Session& session);
  // Whether kSessionsMax sessions are in use.
  bool IsFull() const { return free_.empty() && pool_.size() == kSessionsMax; }
  // Returns how many bytes were sent.
  uint64_t Send();

 private:
  void Free(DatagramSession& session);

  std::unique_ptr<DatagramSocket> socket_;
  std::vector<std::unique_ptr<DatagramSession>> pool_;
  std::vector<DatagramSession*> free_;
  std::vector<DatagramSession*> answered_;
  std::vector<Datagram> replies_;  // the replies of answered_
};

}  // namespace skep
