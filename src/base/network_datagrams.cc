#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/network_address.h"
#include "base/network_socket.h"

namespace skep {
namespace {

constexpr size_t kBuffers = 64;
// A buffer holds one datagram, or several that the kernel joined. Its size is no power of two: that
// would put the beginnings of all buffers into the same few lines of the cache.
constexpr size_t kBufferBytes = 64 * 1024 + 192;
// Size of the kernel's buffers, for bursts; the kernel may give less.
constexpr int kKernelBytes = 4 << 20;
constexpr size_t kMessagesMax = 64;     // in one system call
constexpr size_t kVectorsMax = 512;     // in one system call
constexpr size_t kSegmentsMax = 64;     // the kernel's limit for one message
constexpr size_t kSegmentBytes = 1400;  // a longer segment may exceed what the link takes

using Control = std::array<char, CMSG_SPACE(sizeof(int))>;

DatagramPeer PeerOf(const sockaddr_storage& address, socklen_t length) {
  DatagramPeer peer;
  static_assert(sizeof(sockaddr_in6) <= sizeof(peer.bytes));
  peer.size = static_cast<uint8_t>(std::min<size_t>(length, peer.bytes.size()));
  std::memcpy(peer.bytes.data(), &address, peer.size);
  return peer;
}

// Returns the size of each of the datagrams that the kernel joined; 0: the message is one datagram.
size_t JoinedBytes(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO) continue;
    int bytes = 0;
    std::memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
    return static_cast<size_t>(std::max(bytes, 0));
  }
  return 0;
}

void AskToSegment(msghdr& message, Control& control, size_t bytes) {
  const auto size = static_cast<uint16_t>(bytes);
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(sizeof(size));
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = IPPROTO_UDP;
  c->cmsg_type = UDP_SEGMENT;
  c->cmsg_len = CMSG_LEN(sizeof(size));
  std::memcpy(CMSG_DATA(c), &size, sizeof(size));
}

}  // namespace

struct SocketDatagrams::Incoming {
  std::array<std::array<char, kBufferBytes>, kBuffers> buffers;
  std::array<mmsghdr, kBuffers> headers;
  std::array<iovec, kBuffers> vectors;
  std::array<sockaddr_storage, kBuffers> peers;
  alignas(cmsghdr) std::array<Control, kBuffers> controls;
  std::vector<Datagram> datagrams;

  void Prepare() {
    for (size_t i = 0; i < kBuffers; ++i) {
      vectors[i] = {.iov_base = buffers[i].data(), .iov_len = kBufferBytes};
      headers[i].msg_hdr = {.msg_name = &peers[i],
                            .msg_namelen = sizeof(peers[i]),
                            .msg_iov = &vectors[i],
                            .msg_iovlen = 1,
                            .msg_control = controls[i].data(),
                            .msg_controllen = controls[i].size(),
                            .msg_flags = 0};
    }
  }

  void Split(size_t index) {
    msghdr& message = headers[index].msg_hdr;
    const DatagramPeer peer = PeerOf(peers[index], message.msg_namelen);
    std::string_view bytes(buffers[index].data(), headers[index].msg_len);
    const size_t joined = JoinedBytes(message);
    do {
      const std::string_view first = joined == 0 ? bytes : bytes.substr(0, joined);
      datagrams.push_back({.peer = peer, .bytes = first});
      bytes.remove_prefix(first.size());
    } while (!bytes.empty());
  }
};

struct SocketDatagrams::Outgoing {
  std::array<mmsghdr, kMessagesMax> headers;
  std::array<iovec, kVectorsMax> vectors;
  alignas(cmsghdr) std::array<Control, kMessagesMax> controls;
  std::array<DatagramPeer, kMessagesMax> peers;
};

SocketDatagrams::SocketDatagrams(FileDescriptor fd)
    : fd_(std::move(fd)),
      incoming_(std::make_unique_for_overwrite<Incoming>()),
      outgoing_(std::make_unique_for_overwrite<Outgoing>()) {
  // A socket whose options are refused still works, only slower, or loses more.
  const int on = 1;
  const int none = 0;
  static_cast<void>(
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &kKernelBytes, sizeof(kKernelBytes)));
  static_cast<void>(
      setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &kKernelBytes, sizeof(kKernelBytes)));
  static_cast<void>(setsockopt(fd_.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof(on)));
  segments_ = setsockopt(fd_.get(), IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
}

SocketDatagrams::~SocketDatagrams() = default;

std::span<const Datagram> SocketDatagrams::Receive() {
  Incoming& in = *incoming_;
  in.Prepare();
  in.datagrams.clear();
  // An error tells that an earlier datagram of ours was not delivered: it counts as lost.
  const int came = recvmmsg(fd_.get(), in.headers.data(), kBuffers, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < came; ++i) in.Split(static_cast<size_t>(i));
  return in.datagrams;
}

// Returns how many datagrams at the front can be sent as one message.
size_t SocketDatagrams::RunOf(std::span<const Datagram> datagrams) const {
  const Datagram& first = datagrams.front();
  const size_t bytes = first.bytes.size();
  if (!segments_ || bytes == 0 || bytes > kSegmentBytes) return 1;
  const size_t fit = std::min(kSegmentsMax, kDatagramBytesMax / bytes);
  const size_t most = std::min(datagrams.size(), fit);
  size_t run = 1;
  while (run < most && datagrams[run].peer == first.peer && datagrams[run].bytes.size() == bytes) {
    ++run;
  }
  // The last datagram of a message may be shorter than the others.
  const bool takes_another = run < most && datagrams[run].peer == first.peer &&
                             !datagrams[run].bytes.empty() && datagrams[run].bytes.size() < bytes;
  return run + (takes_another ? 1 : 0);
}

void SocketDatagrams::Send(std::span<const Datagram> datagrams) {
  while (!datagrams.empty()) datagrams = datagrams.subspan(SendSome(datagrams));
}

// Makes one system call; returns how many datagrams were sent or dropped.
size_t SocketDatagrams::SendSome(std::span<const Datagram> datagrams) {
  Outgoing& out = *outgoing_;
  std::array<size_t, kMessagesMax> ends;  // of each message, in `datagrams`
  size_t messages = 0;
  size_t vectors = 0;
  for (; messages < kMessagesMax && vectors < datagrams.size(); ++messages) {
    const size_t run = RunOf(datagrams.subspan(vectors));
    if (vectors + run > kVectorsMax) break;
    const Datagram& first = datagrams[vectors];
    out.peers[messages] = first.peer;
    msghdr& header = out.headers[messages].msg_hdr;
    header = {.msg_name = first.peer.size == 0 ? nullptr : out.peers[messages].bytes.data(),
              .msg_namelen = first.peer.size,
              .msg_iov = &out.vectors[vectors],
              .msg_iovlen = run,
              .msg_control = nullptr,
              .msg_controllen = 0,
              .msg_flags = 0};
    if (run > 1) AskToSegment(header, out.controls[messages], first.bytes.size());
    for (size_t i = 0; i < run; ++i, ++vectors) {
      const std::string_view bytes = datagrams[vectors].bytes;
      out.vectors[vectors] = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    }
    ends[messages] = vectors;
  }
  const int sent = sendmmsg(fd_.get(), out.headers.data(), static_cast<unsigned>(messages),
                            MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) return ends[static_cast<size_t>(sent) - 1];
  if (errno == EINTR) return 0;
  if (out.headers[0].msg_hdr.msg_iovlen > 1 && (errno == EINVAL || errno == EIO)) {
    segments_ = false;  // this link cannot segment
    return 0;
  }
  return errno == EAGAIN || errno == ENOBUFS ? datagrams.size() : ends[0];
}

Address SocketDatagrams::address() const {
  SocketAddress local;
  if (getsockname(fd_.get(), local.raw(), &local.length) < 0) local = {};
  return FormatAddress(local);
}

}  // namespace skep
