#include "bench/tcp_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace skep::bench {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

void SetOptions(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const timeval timeout = {.tv_sec = TcpConnection::kTimeoutMs / 1000, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList LookUp(const std::string& host, uint16_t port) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (getaddrinfo(host.c_str(), service.c_str(), &wanted, &found) != 0) found = nullptr;
  return AddressList(found, &freeaddrinfo);
}

}  // namespace

Result<TcpConnection> TcpConnection::Connect(const std::string& host, uint16_t port) {
  const AddressList addresses = LookUp(host, port);
  if (addresses == nullptr) return Fail(Code::kInvalidArgument, "unknown host");
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    FileDescriptor made(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (made.valid() && connect(made.get(), at->ai_addr, at->ai_addrlen) == 0) {
      SetOptions(made.get());
      return TcpConnection(std::move(made));
    }
    error = errno;
  }
  return Fail(Code::kIo, "connecting", static_cast<uint64_t>(error));
}

Result<size_t> TcpConnection::Send(std::string_view bytes) {
  const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return Fail(Code::kIo, "sending", static_cast<uint64_t>(errno));
}

Result<bool> TcpConnection::Wait(bool want_send) {
  pollfd wanted = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (want_send) wanted.events |= POLLOUT;
  for (;;) {
    const int ready = poll(&wanted, 1, kTimeoutMs);
    if (ready > 0) return (wanted.revents & ~POLLOUT) != 0;
    if (ready == 0) return Fail(Code::kIo, "waiting for the server", ETIMEDOUT);
    if (errno != EINTR) return Fail(Code::kIo, "poll", static_cast<uint64_t>(errno));
  }
}

Status TcpConnection::Receive(std::string& to) {
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
  // EAGAIN is SO_RCVTIMEO's way to say that the time is over.
  return Status(Code::kIo, "receiving", static_cast<uint64_t>(error == EAGAIN ? ETIMEDOUT : error));
}

}  // namespace skep::bench
