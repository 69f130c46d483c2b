// busy_listener_test.h: a listener whose queue is full, so that whoever connects to it is neither
// connected nor refused.
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "base/check.h"
#include "base/file_descriptor.h"
#include "base/network_address.h"

namespace skep {

class BusyListener {
 public:
  // Fills the listener's queue with connections that are never accepted.
  explicit BusyListener(const Address& address)
      : fd_(socket(ParseAddress(address)->family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress where = *ParseAddress(address);
    SKEP_CHECK(bind(fd_.get(), where.raw(), where.length) == 0);
    SKEP_CHECK(listen(fd_.get(), 0) == 0);
    SKEP_CHECK(getsockname(fd_.get(), bound_.raw(), &bound_.length) == 0);
    while (AddClient()) {
    }
  }
  ~BusyListener() {
    constexpr std::string_view kUnix = "unix:";
    if (address().starts_with(kUnix)) unlink(address().substr(kUnix.size()).c_str());
  }
  BusyListener(const BusyListener&) = delete;
  BusyListener& operator=(const BusyListener&) = delete;

  Address address() const { return FormatAddress(bound_); }

 private:
  // Connects one more client. False: the queue is full; the client keeps waiting for a place in it.
  bool AddClient() {
    constexpr int kConnectedMs = 200;  // long enough if there is room
    clients_.emplace_back(socket(bound_.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(clients_.back().get(), bound_.raw(), bound_.length) == 0) return true;
    if (errno == EAGAIN) return false;
    SKEP_CHECK(errno == EINPROGRESS);
    pollfd connecting{.fd = clients_.back().get(), .events = POLLOUT, .revents = 0};
    return poll(&connecting, 1, kConnectedMs) == 1;
  }

  FileDescriptor fd_;
  SocketAddress bound_;
  std::vector<FileDescriptor> clients_;
};

}  // namespace skep
