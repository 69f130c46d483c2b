// descriptor_stream.h: a unix socket that takes descriptors along with its first bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/network_socket.h"
#include "rma/fabric.h"

namespace skep::rma {

// At most kRegionsMax go each way: SCM_RIGHTS, which the kernel takes up to 253 of. Owner: one
// thread.
class DescriptorStream final : public Stream {
 public:
  // The socket outlives it.
  explicit DescriptorStream(SocketStream& socket) : socket_(socket) {}

  // They go with the first byte of the next Write that moves any, and stay open until then.
  void SendWithNext(std::vector<int> descriptors) { to_send_ = std::move(descriptors); }
  // Those that have come so far. More that come are closed.
  std::vector<FileDescriptor> TakeReceived();

  ssize_t Read(char* to, size_t bytes) override;
  ssize_t Write(std::string_view bytes) override;
  void FinishSending() override { socket_.FinishSending(); }
  Address peer() const override { return socket_.peer(); }
  Address local() const override { return socket_.local(); }

 private:
  SocketStream& socket_;
  std::vector<int> to_send_;
  bool is_receiving_ = true;
  std::vector<FileDescriptor> received_;
};

}  // namespace skep::rma
