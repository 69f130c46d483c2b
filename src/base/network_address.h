// network_address.h: converts between the text of an Address (network.h) and the kernel's form.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/network.h"

namespace skep {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(sockaddr_storage);

  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sa_family_t family() const { return storage.ss_family; }
};

// Returns "host:port", or "[host]:port" if the host has colons itself.
Address AddressOf(const std::string& host, uint16_t port);

// Parses an address. Hosts are numeric: no name is looked up, so the call never waits.
//   kInvalidArgument  not of the forms network.h lists, or a path longer than the kernel's limit
Result<SocketAddress> ParseAddress(const Address& address);

// Returns the numeric addresses that an address with a host's name stands for ("localhost:6379"),
// in the system's order of preference; at least one. A numeric address, or one of a unix socket,
// stands for itself. May wait for a name server.
//   kInvalidArgument  the name is unknown, or what ParseAddress says
Result<std::vector<Address>> LookUp(const Address& address);

// The inverse of ParseAddress. A unix socket without a name (a client's) is "unix:"; an unknown
// family is "".
Address FormatAddress(const SocketAddress& address);

}  // namespace skep
