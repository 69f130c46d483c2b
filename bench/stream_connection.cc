#include "bench/stream_connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <utility>

#include "base/network_address.h"

namespace skep::bench {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

void SetNoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void SetTimeout(int socket) {
  const timeval timeout = {.tv_sec = StreamConnection::kTimeoutMs / 1000, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

}  // namespace

Result<StreamConnection> StreamConnection::Connect(const Address& address) {
  const auto addresses = LookUp(address);
  if (!addresses) return Fail(addresses.error());
  int error = 0;
  for (const Address& one : *addresses) {
    const auto to = ParseAddress(one);
    if (!to) return Fail(to.error());
    FileDescriptor made(socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (made.valid() && connect(made.get(), to->raw(), to->length) == 0) {
      if (to->family() != AF_UNIX) SetNoDelay(made.get());
      SetTimeout(made.get());
      return StreamConnection(std::move(made));
    }
    error = errno;
  }
  return Fail(Code::kIo, "connecting", static_cast<uint64_t>(error));
}

Result<size_t> StreamConnection::Send(std::string_view bytes) {
  const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return Fail(Code::kIo, "sending", static_cast<uint64_t>(errno));
}

Result<bool> StreamConnection::Wait(bool want_send) {
  pollfd wanted = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (want_send) wanted.events |= POLLOUT;
  for (;;) {
    const int ready = poll(&wanted, 1, kTimeoutMs);
    if (ready > 0) return (wanted.revents & ~POLLOUT) != 0;
    if (ready == 0) return Fail(Code::kIo, "waiting for the server", ETIMEDOUT);
    if (errno != EINTR) return Fail(Code::kIo, "poll", static_cast<uint64_t>(errno));
  }
}

Status StreamConnection::Receive(std::string& to) {
  const size_t before = to.size();
  ssize_t got = 0;
  int error = 0;
  to.resize_and_overwrite(before + kReadBytes, [&](char* bytes, size_t) {
    do {
      got = recv(socket_.get(), bytes + before, kReadBytes, 0);
      error = errno;
    } while (got < 0 && error == EINTR);
    return before + static_cast<size_t>(got > 0 ? got : 0);
  });
  if (got > 0) return {};
  if (got == 0) return Status(Code::kUnavailable, "the server closed the connection");
  // SO_RCVTIMEO reports a timeout as EAGAIN.
  return Status(Code::kIo, "receiving", static_cast<uint64_t>(error == EAGAIN ? ETIMEDOUT : error));
}

}  // namespace skep::bench
