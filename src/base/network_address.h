// network_address.h: between the text of an Address (network.h) and what the kernel takes.
#pragma once

#include <sys/socket.h>

#include "base/network.h"

namespace skep {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(sockaddr_storage);

  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sa_family_t family() const { return storage.ss_family; }
};

// Numeric hosts only: no name is looked up, so the call never waits.
//   kInvalidArgument  not of the forms network.h lists, or a path longer than the kernel's limit
Result<SocketAddress> ParseAddress(const Address& address);

// The inverse. A unix socket without a name (a client's) is "unix:"; an unknown family is "".
Address FormatAddress(const SocketAddress& address);

}  // namespace skep
