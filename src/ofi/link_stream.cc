#include "ofi/link_stream.h"

#include <cerrno>

namespace skep::rma {

// The bytes that have come over the link are read before the end of the socket is told.
ssize_t LinkStream::Read(char* to, size_t bytes) {
  if (link_ == nullptr) return socket_.Read(to, bytes);
  const ssize_t got = ReadLink(to, bytes);
  if (got != -EAGAIN) return got;
  char unwanted;
  const ssize_t more = socket_.Read(&unwanted, 1);
  return more > 0 ? -EPROTO : more;
}

ssize_t LinkStream::ReadLink(char* to, size_t bytes) {
  const MutexLock lock(domain_->mutex);
  if (!link_->channel().CanRead()) static_cast<void>(domain_->Drain());
  return link_->channel().Read(to, bytes);
}

ssize_t LinkStream::WriteLink(std::string_view bytes) {
  if (link_ == nullptr) return -EAGAIN;
  const MutexLock lock(domain_->mutex);
  return link_->channel().Write(bytes);
}

ssize_t LinkStream::Write(std::string_view bytes) {
  if (socket_bytes_ == 0) return WriteLink(bytes);
  const ssize_t taken = socket_.Write(bytes.substr(0, socket_bytes_));
  if (taken < 0) return taken;
  socket_bytes_ -= static_cast<size_t>(taken);
  const std::string_view rest = bytes.substr(static_cast<size_t>(taken));
  if (socket_bytes_ > 0 || rest.empty()) return taken;
  const ssize_t more = WriteLink(rest);
  return more < 0 ? taken : taken + more;
}

}  // namespace skep::rma
