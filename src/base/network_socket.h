// network_socket.h: the socket types that SocketNetwork() makes, for its Poller.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/network.h"

namespace skep {

class SocketStream final : public Stream {
 public:
  SocketStream(FileDescriptor fd, Address peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}

  ssize_t Read(char* to, size_t bytes) override;
  ssize_t Write(std::string_view bytes) override;
  ssize_t Write(std::span<const std::string_view> parts) override;
  void FinishSending() override;
  Address peer() const override { return peer_; }
  Address local() const override;
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  Address peer_;  // kept here: the kernel forgets it when the connection is reset
};

// Sets the keepalive time of the whole process, for connections accepted from now on: how long a
// connection may be silent before the kernel asks its peer whether it is still there. The
// connection is reset if the peer does not answer three times. 0, the initial value: no limit.
// Thread-safe.
void SetSocketKeepalive(uint32_t seconds);

class SocketListener final : public Listener {
 public:
  // Takes a bound and listening socket. The destructor removes the file of a unix socket if it is
  // still this one's.
  explicit SocketListener(FileDescriptor fd);
  ~SocketListener() override;

  std::unique_ptr<Stream> Accept(int* error) override;
  Address address() const override { return address_; }
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  Address address_;
  std::string path_;  // the file of a unix socket, else empty
  uint64_t path_inode_ = 0;
};

// A UDP socket. One system call receives up to kBuffers buffers, each with one datagram or, where
// the kernel joined them (UDP_GRO), several of one peer. Datagrams of one size to one peer are sent
// as one message that the kernel cuts (UDP_SEGMENT).
class SocketDatagrams final : public DatagramSocket {
 public:
  // Takes a bound or connected socket.
  explicit SocketDatagrams(FileDescriptor fd);
  ~SocketDatagrams() override;

  std::span<const Datagram> Receive() override;
  void Send(std::span<const Datagram> datagrams) override;
  Address address() const override;
  int fd() const { return fd_.get(); }

 private:
  struct Incoming;
  struct Outgoing;

  size_t RunOf(std::span<const Datagram> datagrams) const;
  size_t SendSome(std::span<const Datagram> datagrams);

  FileDescriptor fd_;
  bool segments_;  // whether the kernel takes UDP_SEGMENT
  std::unique_ptr<Incoming> incoming_;
  std::unique_ptr<Outgoing> outgoing_;
};

// Makes a poller on epoll(7), level-triggered; see Network::NewPoller.
std::unique_ptr<Poller> NewEpollPoller();

}  // namespace skep
