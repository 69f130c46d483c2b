// datagram_port.h: where a worker gets messages of the packed protocol without connections.
//
//   Receive   what came in one system call
//   Admit     a message has a session of its own, from a pool: it is dispatched like one of a
//             connection
//   Answer    its reply is whole, or still waits for a gate or for its task
//   Send      all replies of a turn, in few system calls; their sessions go back into the pool
//
// A message that there is no session for, or no room in the network for its reply, is lost: its
// client asks again, as it must anyway. So is the reply that waits for a gate for longer than
// kWaitMsMax: what it waits for may take long (a disk that stalls), and others want its session.
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
// if it does not fit into a datagram of so many bytes. Its memory is given back.
void FitIntoDatagram(std::string& out, size_t begin, const packed::Header& header,
                     size_t datagram_bytes_max);

class DatagramPort {
 public:
  // Messages whose replies have not left, at most; so 64 MiB of replies.
  static constexpr size_t kSessionsMax = 1024;
  static constexpr uint64_t kWaitMsMax = 1000;

  explicit DatagramPort(std::unique_ptr<DatagramSocket> socket) : socket_(std::move(socket)) {}

  DatagramSocket& socket() { return *socket_; }

  // The session of a message, for a reply to this peer, of which `head` is the beginning; null if
  // there are kSessionsMax. Its reply leaves with Answer.
  Session* Admit(const DatagramPeer& peer, const packed::DatagramHead& head, size_t reply_bytes_max,
                 uint64_t now_ms);
  // Of one that was admitted: its reply leaves with the next Send, unless it waits for a gate, or
  // for its task. One that does not fit is replaced by kTooLarge.
  void Answer(Session& session);
  // Whether the session, which waits for a gate, has waited for too long.
  static bool IsOverdue(const Session& session, uint64_t now_ms) {
    return now_ms > static_cast<const DatagramSession&>(session).admitted_ms + kWaitMsMax;
  }
  // Of one that waits for a gate: its reply is lost.
  void Drop(Session& session);
  // Whether there are so many.
  bool IsFull() const { return free_.empty() && pool_.size() == kSessionsMax; }
  // Returns how many bytes.
  uint64_t Send();

 private:
  void Free(DatagramSession& session);

  std::unique_ptr<DatagramSocket> socket_;
  std::vector<std::unique_ptr<DatagramSession>> pool_;
  std::vector<DatagramSession*> free_;
  std::vector<DatagramSession*> answered_;
  std::vector<Datagram> replies_;  // of answered_
};

}  // namespace skep
