// network_socket.h: the socket behind a Stream or Listener of SocketNetwork(), for its Poller.
#pragma once

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
  void FinishSending() override;
  Address peer() const override { return peer_; }
  Address local() const override;
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  Address peer_;  // kept: the kernel forgets it when the connection is reset
};

class SocketListener final : public Listener {
 public:
  // A bound and listening socket. Removes the file of a unix socket in the end, if still its own.
  explicit SocketListener(FileDescriptor fd);
  ~SocketListener() override;

  std::unique_ptr<Stream> Accept(int* error) override;
  Address address() const override { return address_; }
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  Address address_;
  std::string path_;  // of a unix socket, else empty
  uint64_t path_inode_ = 0;
};

// epoll(7), level-triggered; see Network::NewPoller.
std::unique_ptr<Poller> NewEpollPoller();

}  // namespace skep
