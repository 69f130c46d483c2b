#include "rma/mem_fence.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace skep::rma {
namespace {

bool Has(int fd, short events) {
  pollfd about = {.fd = fd, .events = events, .revents = 0};
  return poll(&about, 1, 0) > 0 && (about.revents & events) != 0;
}

bool IsConnected(int socket) { return !Has(socket, POLLHUP | POLLRDHUP | POLLERR); }

FileDescriptor OpenProcess(int socket) {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return FileDescriptor();
  FileDescriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  return IsConnected(socket) ? std::move(pidfd) : FileDescriptor();
}

}  // namespace

PeerProcess::PeerProcess(const SocketStream& socket) : pidfd_(OpenProcess(socket.fd())) {}

bool PeerProcess::HasEnded() const { return pidfd_.valid() && Has(pidfd_.get(), POLLIN); }

MemFence::MemFence(std::unique_ptr<SocketStream> socket, PeerProcess process)
    : socket_(std::move(socket)), process_(std::move(process)) {
  socket_->FinishSending();
}

bool MemFence::IsOver() const {
  if (process_.HasEnded()) return true;
  constexpr int kReadsMax = 64;  // of what the peer sent before it knew
  std::array<char, 16 * 1024> dropped;
  for (int i = 0; i < kReadsMax; ++i) {
    const ssize_t got = socket_->Read(dropped.data(), dropped.size());
    if (got > 0) continue;
    return got != -EAGAIN;
  }
  return false;
}

}  // namespace skep::rma
