// link_stream.h: the stream of a peer of ofi: the hellos go over its socket, everything after them
// over libfabric.
//
// The socket stays open for the connection's life, and carries nothing more: its end is how a peer
// learns that the other one has disconnected or that its process is gone, which a provider may not
// tell.
#pragma once

#include <limits>
#include <memory>
#include <string_view>

#include "base/network_socket.h"
#include "ofi/ofi_link.h"

namespace skep::rma {

// Owner: one thread. Takes the domain's mutex itself.
class LinkStream final : public Stream {
 public:
  // The socket outlives it.
  explicit LinkStream(SocketStream& socket) : socket_(socket) {}

  // The next `bytes` bytes are written to the socket, and those after them to the link.
  void set_socket_bytes(size_t bytes) { socket_bytes_ = bytes; }
  // From now on the stream reads what the peer has sent over the link. The domain and the link
  // outlive the last call of this stream.
  void Join(OfiDomain& domain, OfiLink& link) {
    domain_ = &domain;
    link_ = &link;
  }
  // The link is about to end: nothing is read or written any more.
  void Leave() { link_ = nullptr; }
  bool is_on_socket() const { return socket_bytes_ > 0; }

  ssize_t Read(char* to, size_t bytes) override;
  ssize_t Write(std::string_view bytes) override;
  void FinishSending() override { socket_.FinishSending(); }
  Address peer() const override { return socket_.peer(); }
  Address local() const override { return socket_.local(); }

 private:
  ssize_t ReadLink(char* to, size_t bytes);
  ssize_t WriteLink(std::string_view bytes);

  SocketStream& socket_;
  size_t socket_bytes_ = std::numeric_limits<size_t>::max();
  OfiDomain* domain_ = nullptr;
  OfiLink* link_ = nullptr;
};

}  // namespace skep::rma
