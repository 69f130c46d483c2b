#include "bench/loopback_limit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file_descriptor.h"

namespace skep::bench {
namespace {

std::unexpected<Status> Errno(const char* what) {
  return Fail(Code::kIo, what, static_cast<uint64_t>(errno));
}

struct SocketPair {
  FileDescriptor client;
  FileDescriptor server;
};

void SetNoDelay(const FileDescriptor& socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Makes both ends of one TCP connection over 127.0.0.1.
Result<SocketPair> ConnectToSelf() {
  FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  if (!listener.valid() || bind(listener.get(), raw, length) != 0 ||
      listen(listener.get(), 1) != 0 || getsockname(listener.get(), raw, &length) != 0) {
    return Errno("listening on the loopback");
  }
  SocketPair pair = {.client = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                     .server = FileDescriptor()};
  if (!pair.client.valid() || connect(pair.client.get(), raw, length) != 0) {
    return Errno("connecting to the loopback");
  }
  pair.server = FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.server.valid()) return Errno("accepting from the loopback");
  SetNoDelay(pair.client);
  SetNoDelay(pair.server);
  return pair;
}

bool SendAll(const FileDescriptor& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

ssize_t ReceiveSome(const FileDescriptor& socket, std::span<char> to) {
  ssize_t got;
  do {
    got = recv(socket.get(), to.data(), to.size(), 0);
  } while (got < 0 && errno == EINTR);
  return got;
}

// Echoes until the client closes its side, or the connection breaks.
void Echo(const FileDescriptor& socket) {
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t got = ReceiveSome(socket, buffer);
    if (got <= 0) return;
    if (!SendAll(socket, {buffer.data(), static_cast<size_t>(got)})) return;
  }
}

// Keeps `in_flight` messages under way until `messages` are answered.
Status Drive(const FileDescriptor& socket, uint64_t messages, uint64_t in_flight) {
  const std::string window(in_flight * kMessageBytes, 'x');
  std::array<char, 64 * 1024> buffer;
  const uint64_t total_bytes = messages * kMessageBytes;
  uint64_t sent_bytes = 0;
  uint64_t answered_bytes = 0;
  while (answered_bytes < total_bytes) {
    // Whole messages only: a partial answer frees no place.
    const uint64_t answered = answered_bytes / kMessageBytes;
    const uint64_t wanted_bytes = std::min(answered + in_flight, messages) * kMessageBytes;
    if (!SendAll(socket, std::string_view(window).substr(0, wanted_bytes - sent_bytes))) {
      return Status(Code::kIo, "sending through the loopback", static_cast<uint64_t>(errno));
    }
    sent_bytes = wanted_bytes;
    const ssize_t got = ReceiveSome(socket, buffer);
    if (got <= 0) {
      return Status(Code::kIo, "receiving from the loopback", static_cast<uint64_t>(errno));
    }
    answered_bytes += static_cast<uint64_t>(got);
  }
  return {};
}

}  // namespace

Result<double> LoopbackSeconds(uint64_t messages, uint64_t in_flight, int echo_core) {
  auto pair = ConnectToSelf();
  if (!pair) return Fail(pair.error());
  std::jthread echo([server = std::move(pair->server), echo_core] {
    const ScopedPin pin(echo_core);
    Echo(server);
  });
  const uint64_t begin_ns = SystemClock().MonotonicNs();
  const Status status = Drive(pair->client, messages, in_flight);
  const uint64_t end_ns = SystemClock().MonotonicNs();
  shutdown(pair->client.get(), SHUT_RDWR);  // ends Echo, which the jthread waits for
  if (!status.ok()) return Fail(status);
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

}  // namespace skep::bench
