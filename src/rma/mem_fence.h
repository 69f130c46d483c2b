// mem_fence.h: when a peer that has mapped this process's memory can no longer write it.
//
// Nothing takes a mapping away from another process. It is gone in two cases:
//   E1  The peer's endpoint has ended its side of the connection. It unmaps what it had of this one
//       before that, and is one thread, so that it is not in the midst of a copy. A process that is
//       killed has lost its memory before its sockets.
//   E2  The peer's process has ended, although a child that it forked still has its end of the
//       connection. Children do not have the mappings (SharedMemory::Map).
// A process that is stopped, or does not poll its endpoint, fulfils neither, and is waited for.
//
// The process is known by the connection: the kernel tells the id of the process that connected or
// listened (SO_PEERCRED), and a pidfd of it is that process's as long as the connection is there
// after it was opened, since the id cannot have been used again before its process ended.
#pragma once

#include <memory>

#include "base/file_descriptor.h"
#include "base/network_socket.h"

namespace skep::rma {

// The process at the other end of a connection. Owner: one thread.
class PeerProcess {
 public:
  explicit PeerProcess(const SocketStream& socket);
  // Also false if the system does not let one know.
  bool HasEnded() const;

 private:
  FileDescriptor pidfd_;
};

// A connection that this side has ended, until the peer can no longer write. Owner: one thread.
class MemFence {
 public:
  // The socket is read to its end from now on.
  MemFence(std::unique_ptr<SocketStream> socket, PeerProcess process);
  // Cost: a system call or two.
  bool IsOver() const;

 private:
  std::unique_ptr<SocketStream> socket_;
  PeerProcess process_;
};

}  // namespace skep::rma
