#include "rma/descriptor_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace skep::rma {
namespace {

constexpr size_t kSystemMax = 253;  // SCM_MAX_FD: what one message of the kernel's can have
static_assert(kRegionsMax <= kSystemMax);

// Room for the descriptors of one message.
union ControlBuffer {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(kSystemMax * sizeof(int))];
};

void KeepDescriptors(msghdr& message, std::vector<FileDescriptor>& kept) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      FileDescriptor owned(fd);
      if (kept.size() < kRegionsMax) kept.push_back(std::move(owned));
    }
  }
}

}  // namespace

std::vector<FileDescriptor> DescriptorStream::TakeReceived() {
  is_receiving_ = false;
  return std::exchange(received_, {});
}

// The kernel closes what comes with bytes that are read without asking for it.
ssize_t DescriptorStream::Read(char* to, size_t bytes) {
  if (!is_receiving_) return socket_.Read(to, bytes);
  iovec part = {.iov_base = to, .iov_len = bytes};
  ControlBuffer control;
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t got;
  do {
    got = recvmsg(socket_.fd(), &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return -errno;
  KeepDescriptors(message, received_);
  return got;
}

ssize_t DescriptorStream::Write(std::string_view bytes) {
  if (to_send_.empty()) return socket_.Write(bytes);
  SKEP_CHECK(to_send_.size() <= kRegionsMax);
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  ControlBuffer control = {};
  const size_t descriptor_bytes = to_send_.size() * sizeof(int);
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(descriptor_bytes);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptor_bytes);
  std::memcpy(CMSG_DATA(rights), to_send_.data(), descriptor_bytes);
  ssize_t taken;
  do {
    taken = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
  } while (taken < 0 && errno == EINTR);
  if (taken < 0) return -errno;
  to_send_.clear();
  return taken;
}

}  // namespace skep::rma
