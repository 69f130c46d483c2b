#include "netindex/xdp/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace skep::xdp {
namespace {

// The space that descriptors take beside a message.
struct alignas(cmsghdr) Space {
  std::array<char, CMSG_SPACE(kFilesMax * sizeof(int))> bytes{};
};

std::optional<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return std::nullopt;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

FileDescriptor NewSocket() {
  return FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

bool Bind(int socket, const sockaddr_un& address) {
  return bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// Takes every descriptor that came, so that none stays open unknown.
std::array<FileDescriptor, kFilesMax> FilesOf(msghdr& head) {
  std::array<FileDescriptor, kFilesMax> files;
  for (cmsghdr* part = CMSG_FIRSTHDR(&head); part != nullptr; part = CMSG_NXTHDR(&head, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count && i < kFilesMax; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      files[i] = FileDescriptor(fd);
    }
  }
  return files;
}

}  // namespace

std::optional<FileDescriptor> ConnectUnix(const std::string& path) {
  const auto address = AddressOf(path);
  FileDescriptor made = NewSocket();
  if (!address || !made.valid() ||
      connect(made.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return std::nullopt;
  }
  return made;
}

std::optional<FileDescriptor> ListenUnix(const std::string& path) {
  const auto address = AddressOf(path);
  FileDescriptor made = NewSocket();
  if (!address || !made.valid()) return std::nullopt;
  if (!Bind(made.get(), *address)) {
    if (errno != EADDRINUSE) return std::nullopt;
    if (ConnectUnix(path)) {
      errno = EADDRINUSE;
      return std::nullopt;
    }
    if (errno != ECONNREFUSED || unlink(path.c_str()) != 0 || !Bind(made.get(), *address)) {
      return std::nullopt;
    }
  }
  if (listen(made.get(), 8) != 0) return std::nullopt;
  return made;
}

bool SendWithFiles(int socket, const void* message, size_t bytes, std::span<const int> files) {
  iovec part{.iov_base = const_cast<void*>(message), .iov_len = bytes};
  Space space;
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  if (!files.empty()) {
    head.msg_control = space.bytes.data();
    head.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  return sendmsg(socket, &head, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

std::optional<std::array<FileDescriptor, kFilesMax>> ReceiveWithFiles(int socket, void* message,
                                                                      size_t bytes) {
  iovec part{.iov_base = message, .iov_len = bytes};
  Space space;
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = space.bytes.data();
  head.msg_controllen = space.bytes.size();
  const ssize_t received = recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
  if (received < 0) return std::nullopt;
  auto files = FilesOf(head);
  if (static_cast<size_t>(received) != bytes || (head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return std::nullopt;
  }
  return files;
}

}  // namespace skep::xdp
