// stream_connection.h: a blocking client connection for pipelined requests, over TCP or a unix
// socket.
//
// A load generator's thread has one connection and nothing else to wait for, so it needs no event
// loop. But it must not block in sending alone: a server may stop reading until its replies are
// read. So Send sends what the kernel takes, and Wait waits for either direction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/network.h"
#include "skep/status.h"

namespace skep::bench {

// Thread safety: none; one owner.
class StreamConnection {
 public:
  // A peer that is silent for so long is given up.
  static constexpr int kTimeoutMs = 60'000;

  // The host may be a name.
  //   kInvalidArgument  the name is unknown, or this is no address
  //   kIo               the errno of connecting
  static Result<StreamConnection> Connect(const Address& address);

  // Sends as much as is possible without waiting; returns how many bytes.
  //   kIo  the errno
  Result<size_t> Send(std::string_view bytes);
  // Waits until there is something to read or, if `want_send`, room to send. Returns whether there
  // is something to read.
  //   kIo  the errno; ETIMEDOUT after kTimeoutMs
  Result<bool> Wait(bool want_send);
  // Appends the bytes that have arrived (at least one) to `to`; waits if there are none.
  //   kUnavailable  the peer has closed the connection
  //   kIo           the errno; ETIMEDOUT after kTimeoutMs
  Status Receive(std::string& to);

  // For waiting on several connections at once.
  int descriptor() const { return socket_.get(); }

 private:
  explicit StreamConnection(FileDescriptor socket) : socket_(std::move(socket)) {}

  FileDescriptor socket_;
};

}  // namespace skep::bench
