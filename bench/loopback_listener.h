// loopback_listener.h: a listener for servers that tests make: on loopback, on a port that the
// system chooses.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/file_descriptor.h"

namespace skep::bench {

// Thread safety: a value that does not change.
class LoopbackListener {
 public:
  LoopbackListener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(socket_.get(), raw, length), 0);
    EXPECT_EQ(listen(socket_.get(), 16), 0);
    EXPECT_EQ(getsockname(socket_.get(), raw, &length), 0);
    port_ = ntohs(address.sin_port);
  }

  uint16_t port() const { return port_; }
  int descriptor() const { return socket_.get(); }
  // Waits for a client.
  FileDescriptor Accept() const { return FileDescriptor(accept(socket_.get(), nullptr, nullptr)); }

 private:
  const FileDescriptor socket_;
  uint16_t port_ = 0;
};

}  // namespace skep::bench
