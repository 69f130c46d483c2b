#include "base/network_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/network_address.h"

namespace skep {

ssize_t Stream::Write(std::span<const std::string_view> parts) {
  ssize_t taken = 0;
  for (const std::string_view part : parts) {
    const ssize_t of_part = Write(part);
    if (of_part < 0) return taken > 0 ? taken : of_part;
    taken += of_part;
    if (static_cast<size_t>(of_part) < part.size()) break;
  }
  return taken;
}

namespace {

constexpr int kBacklog = 4096;
constexpr int kSocketType = SOCK_STREAM | SOCK_CLOEXEC;

Status IoError(const char* what) { return Status(Code::kIo, what, static_cast<uint64_t>(errno)); }

void SetOption(int fd, int level, int option) {
  const int on = 1;
  // A socket that lacks an option still works, only slower; nothing depends on it.
  static_cast<void>(setsockopt(fd, level, option, &on, sizeof(on)));
}

void SetNoDelay(int fd, sa_family_t family) {
  if (family != AF_UNIX) SetOption(fd, IPPROTO_TCP, TCP_NODELAY);
}

std::atomic<uint32_t> keepalive_seconds{0};  // relaxed: no other memory depends on it

void SetKeepalive(int fd, sa_family_t family) {
  constexpr int kProbes = 3;
  const auto seconds = static_cast<int>(keepalive_seconds.load(std::memory_order_relaxed));
  if (family == AF_UNIX || seconds == 0) return;
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE);
  const int between = std::max(seconds / kProbes, 1);
  for (const auto& [option, value] :
       {std::pair(TCP_KEEPIDLE, seconds), std::pair(TCP_KEEPINTVL, between),
        std::pair(TCP_KEEPCNT, kProbes)}) {
    static_cast<void>(setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)));
  }
}

// Limits how long connect(2) waits, to at least a millisecond.
void SetConnectTimeout(int fd, int64_t ms) {
  constexpr int64_t kSecondMs = 1000;
  ms = std::max<int64_t>(ms, 1);
  const timeval timeout = {.tv_sec = ms / kSecondMs, .tv_usec = ms % kSecondMs * 1000};
  static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)));
}

// Connects, and blocks until the outcome is known; errno is ETIMEDOUT if it is not in time. An
// interrupted connect(2) goes on in the kernel, and calling it again waits for the same attempt.
bool ConnectSocket(int fd, const SocketAddress& to, int timeout_ms) {
  const uint64_t begin_ms = SystemClock().MonotonicMs();
  int result;
  do {
    const auto waited_ms = static_cast<int64_t>(SystemClock().MonotonicMs() - begin_ms);
    if (timeout_ms >= 0) SetConnectTimeout(fd, timeout_ms - waited_ms);
    result = connect(fd, to.raw(), to.length);
  } while (result < 0 && errno == EINTR);
  // A TCP socket reports a timeout as EINPROGRESS, or EALREADY once it was interrupted; a unix
  // socket as EAGAIN.
  const bool is_late = errno == EINPROGRESS || errno == EALREADY || errno == EAGAIN;
  if (result < 0 && is_late) errno = ETIMEDOUT;
  return result == 0;
}

SocketAddress LocalAddress(int fd) {
  SocketAddress local;
  if (getsockname(fd, local.raw(), &local.length) < 0) local = {};
  return local;
}

std::string UnixPath(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_un&>(address.storage).sun_path;
}

// Returns the inode of the socket file at `path`; nullopt if there is none, or a file of another
// kind.
std::optional<uint64_t> SocketInode(const std::string& path) {
  struct stat about;
  if (lstat(path.c_str(), &about) < 0 || !S_ISSOCK(about.st_mode)) return std::nullopt;
  return about.st_ino;
}

// Returns whether a socket file is left from an owner that died, which makes bind(2) fail; a live
// owner still answers.
bool IsStale(const SocketAddress& address) {
  if (!SocketInode(UnixPath(address))) return false;
  const FileDescriptor probe(socket(AF_UNIX, kSocketType | SOCK_NONBLOCK, 0));
  return probe.valid() && !ConnectSocket(probe.get(), address, -1) && errno == ECONNREFUSED;
}

bool Bind(int fd, const SocketAddress& address) {
  if (bind(fd, address.raw(), address.length) == 0) return true;
  if (errno != EADDRINUSE || address.family() != AF_UNIX) return false;
  if (!IsStale(address) || unlink(UnixPath(address).c_str()) < 0) {
    errno = EADDRINUSE;
    return false;
  }
  return bind(fd, address.raw(), address.length) == 0;
}

// Whether the system has given the socket the port that it is connected to, as it may if nobody
// receives there: then the socket would receive what it sends.
bool IsItsOwnPeer(int fd, const SocketAddress& peer) {
  SocketAddress own = peer;
  if (getsockname(fd, own.raw(), &own.length) < 0) return true;
  if (own.length != peer.length || std::memcmp(own.raw(), peer.raw(), own.length) != 0)
    return false;
  errno = ECONNREFUSED;
  return true;
}

class Sockets final : public Network {
 public:
  Result<std::unique_ptr<Listener>> Listen(const Address& address) override {
    Result<SocketAddress> parsed = ParseAddress(address);
    if (!parsed) return Fail(parsed.error());
    FileDescriptor fd(socket(parsed->family(), kSocketType | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return Fail(IoError("cannot make a socket"));
    if (parsed->family() != AF_UNIX) SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR);
    // Without the option [::] would also take the port of 0.0.0.0.
    if (parsed->family() == AF_INET6) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY);
    if (!Bind(fd.get(), *parsed)) return Fail(IoError("cannot bind a socket to its address"));
    if (listen(fd.get(), kBacklog) < 0) return Fail(IoError("cannot listen on a socket"));
    return std::make_unique<SocketListener>(std::move(fd));
  }

  Result<std::unique_ptr<Stream>> Connect(const Address& address, int timeout_ms) override {
    Result<SocketAddress> parsed = ParseAddress(address);
    if (!parsed) return Fail(parsed.error());
    FileDescriptor fd(socket(parsed->family(), kSocketType, 0));
    if (!fd.valid()) return Fail(IoError("cannot make a socket"));
    if (!ConnectSocket(fd.get(), *parsed, timeout_ms)) return Fail(IoError("cannot connect"));
    int on = 1;
    if (ioctl(fd.get(), FIONBIO, &on) < 0)
      return Fail(IoError("cannot make a socket non-blocking"));
    SetNoDelay(fd.get(), parsed->family());
    return std::make_unique<SocketStream>(std::move(fd), FormatAddress(*parsed));
  }

  Result<std::unique_ptr<DatagramSocket>> BindDatagrams(const Address& address) override {
    // Several workers may receive on one port.
    return OpenDatagrams(
        address,
        [](int fd, const SocketAddress& at) {
          SetOption(fd, SOL_SOCKET, SO_REUSEPORT);
          return bind(fd, at.raw(), at.length) == 0;
        },
        "cannot bind a socket to its address");
  }
  Result<std::unique_ptr<DatagramSocket>> ConnectDatagrams(const Address& address) override {
    return OpenDatagrams(
        address,
        [](int fd, const SocketAddress& peer) {
          return connect(fd, peer.raw(), peer.length) == 0 && !IsItsOwnPeer(fd, peer);
        },
        "cannot connect");
  }

  std::unique_ptr<Poller> NewPoller() override { return NewEpollPoller(); }

 private:
  static Result<std::unique_ptr<DatagramSocket>> OpenDatagrams(
      const Address& address, bool (*open)(int, const SocketAddress&), const char* problem) {
    Result<SocketAddress> parsed = ParseAddress(address);
    if (!parsed) return Fail(parsed.error());
    if (parsed->family() == AF_UNIX) {
      return Fail(Code::kInvalidArgument, "a unix socket takes no datagrams");
    }
    FileDescriptor fd(socket(parsed->family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return Fail(IoError("cannot make a socket"));
    if (parsed->family() == AF_INET6) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY);
    if (!open(fd.get(), *parsed)) return Fail(IoError(problem));
    return std::make_unique<SocketDatagrams>(std::move(fd));
  }
};

}  // namespace

ssize_t SocketStream::Read(char* to, size_t bytes) {
  ssize_t got;
  do {
    got = recv(fd_.get(), to, bytes, 0);
  } while (got < 0 && errno == EINTR);
  return got < 0 ? -errno : got;
}

ssize_t SocketStream::Write(std::string_view bytes) {
  ssize_t taken;
  do {
    taken = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (taken < 0 && errno == EINTR);
  return taken < 0 ? -errno : taken;
}

// Parts beyond those that fit into one call are left to the next.
ssize_t SocketStream::Write(std::span<const std::string_view> parts) {
  constexpr size_t kPartsMax = 128;
  std::array<iovec, kPartsMax> vectors;
  const size_t count = std::min(parts.size(), kPartsMax);
  for (size_t i = 0; i < count; ++i) {
    vectors[i] = {.iov_base = const_cast<char*>(parts[i].data()), .iov_len = parts[i].size()};
  }
  const msghdr message = {.msg_iov = vectors.data(), .msg_iovlen = count};
  ssize_t taken;
  do {
    taken = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  } while (taken < 0 && errno == EINTR);
  return taken < 0 ? -errno : taken;
}

// shutdown(2) fails only if the connection is gone already, which the next Read or Write tells.
void SocketStream::FinishSending() { static_cast<void>(shutdown(fd_.get(), SHUT_WR)); }

Address SocketStream::local() const { return FormatAddress(LocalAddress(fd_.get())); }

SocketListener::SocketListener(FileDescriptor fd) : fd_(std::move(fd)) {
  const SocketAddress local = LocalAddress(fd_.get());
  address_ = FormatAddress(local);
  if (local.family() != AF_UNIX) return;
  path_ = UnixPath(local);
  path_inode_ = SocketInode(path_).value_or(0);
}

SocketListener::~SocketListener() {
  if (!path_.empty() && SocketInode(path_) == path_inode_) unlink(path_.c_str());
}

std::unique_ptr<Stream> SocketListener::Accept(int* error) {
  while (true) {
    SocketAddress peer;
    FileDescriptor fd(accept4(fd_.get(), peer.raw(), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      *error = 0;
      SetNoDelay(fd.get(), peer.family());
      SetKeepalive(fd.get(), peer.family());
      return std::make_unique<SocketStream>(std::move(fd), FormatAddress(peer));
    }
    // A client that left the queue before it was accepted is not an error.
    if (errno == EINTR || errno == ECONNABORTED) continue;
    *error = errno;
    return nullptr;
  }
}

void SetSocketKeepalive(uint32_t seconds) {
  keepalive_seconds.store(seconds, std::memory_order_relaxed);
}

Network& SocketNetwork() {
  static Sockets network;
  return network;
}

}  // namespace skep
