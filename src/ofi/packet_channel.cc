#include "ofi/packet_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace skep::rma {

Status PacketChannel::Begin(fid_ep* ep) {
  ep_ = ep;
  memory_.resize((kReceives + kSends) * kPacketBytes);
  auto registered = domain_.RegisterLocal(memory_.data(), memory_.size(), ep);
  if (!registered) return registered.error();
  registered_ = std::move(*registered);
  buffers_.resize(kReceives + kSends);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    Buffer& buffer = buffers_[i];
    buffer.context.completer = this;
    buffer.context.what = &buffer;
    buffer.memory = memory_.data() + i * kPacketBytes;
    buffer.is_send = i >= kReceives;
    if (buffer.is_send) {
      free_.push_back(&buffer);
    } else {
      PostReceive(buffer);
    }
  }
  return error_ == 0 ? Status() : OfiError("libfabric takes no receive", error_);
}

void PacketChannel::Fail(ssize_t code) {
  if (error_ == 0) error_ = static_cast<int>(code < 0 ? -code : code);
}

void PacketChannel::PostReceive(Buffer& buffer) {
  const ssize_t code = fi_recv(ep_, buffer.memory, kPacketBytes, DescriptorOfMemory(),
                               FI_ADDR_UNSPEC, &buffer.context);
  if (code == -FI_EAGAIN) {
    unposted_.push_back(&buffer);
  } else if (code != 0) {
    Fail(code);
  }
}

// False: the provider has no room.
bool PacketChannel::Send(std::string_view bytes) {
  Buffer& buffer = *free_.back();
  const Header header = {.consumed = consumed_, .bytes = static_cast<uint32_t>(bytes.size())};
  std::memcpy(buffer.memory, &header, sizeof(header));
  if (!bytes.empty()) std::memcpy(buffer.memory + sizeof(header), bytes.data(), bytes.size());
  const ssize_t code = fi_send(ep_, buffer.memory, sizeof(header) + bytes.size(),
                               DescriptorOfMemory(), peer_, &buffer.context);
  is_refused_ = code == -FI_EAGAIN;
  if (code == 0) {
    free_.pop_back();
    told_ = consumed_;
  } else if (!is_refused_) {
    Fail(code);
  }
  return code == 0;
}

ssize_t PacketChannel::Write(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && CanWrite()) {
    const std::string_view part = bytes.substr(taken, kBodyBytesMax);
    if (!Send(part)) break;
    ++sent_;
    taken += part.size();
  }
  if (error_ != 0) return -ECONNRESET;
  return taken > 0 ? static_cast<ssize_t>(taken) : -EAGAIN;
}

ssize_t PacketChannel::Read(char* to, size_t bytes) {
  size_t given = 0;
  while (given < bytes && CanRead()) {
    const std::byte* const memory = received_.front()->memory;
    Header header;
    std::memcpy(&header, memory, sizeof(header));
    const size_t part = std::min(bytes - given, header.bytes - read_);
    std::memcpy(to + given, memory + sizeof(header) + read_, part);
    given += part;
    read_ += part;
    if (read_ == header.bytes) Consume();
  }
  if (error_ != 0) return -ECONNRESET;
  return given > 0 ? static_cast<ssize_t>(given) : -EAGAIN;
}

void PacketChannel::Consume() {
  Buffer& buffer = *received_.front();
  received_.pop_front();
  read_ = 0;
  ++consumed_;
  PostReceive(buffer);
  MoveOn();
}

void PacketChannel::MoveOn() {
  for (Buffer* const buffer : std::exchange(unposted_, {})) PostReceive(*buffer);
  const bool owes = consumed_ - told_ >= kWindow / 2;
  if (owes && error_ == 0 && !free_.empty()) Send({});
}

void PacketChannel::Complete(OfiContext& context, int error) {
  Buffer& buffer = *static_cast<Buffer*>(context.what);
  if (error != 0) return Fail(error);
  if (buffer.is_send) {
    free_.push_back(&buffer);
  } else {
    TakePacket(buffer);
  }
}

// A packet's length is that of its receive, so that what the peer says of it can be wrong: bytes of
// an older packet would be read then, but none outside of the buffer.
void PacketChannel::TakePacket(Buffer& buffer) {
  Header header;
  std::memcpy(&header, buffer.memory, sizeof(header));
  if (header.bytes > kBodyBytesMax || header.consumed - peer_consumed_ > Unconsumed()) {
    return Fail(EPROTO);
  }
  peer_consumed_ = header.consumed;
  if (header.bytes > 0) {
    received_.push_back(&buffer);
  } else {
    PostReceive(buffer);
  }
}

}  // namespace skep::rma
