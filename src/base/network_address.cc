#include "base/network_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace skep {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

template <typename T>
SocketAddress Pack(const T& address, size_t length = sizeof(T)) {
  SocketAddress packed;
  memcpy(&packed.storage, &address, length);
  packed.length = static_cast<socklen_t>(length);
  return packed;
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end) return std::nullopt;
  return port;
}

Result<SocketAddress> ParseUnix(std::string_view path) {
  sockaddr_un address = {};
  // One byte is left for the terminating zero.
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Fail(Code::kInvalidArgument, "the path of a unix socket is empty or too long",
                sizeof(address.sun_path) - 1);
  }
  if (path.find('\0') != path.npos) {
    return Fail(Code::kInvalidArgument, "the path of a unix socket has a zero byte");
  }
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  return Pack(address, offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

Result<SocketAddress> ParseTcp(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::optional<uint16_t> port =
      colon == text.npos ? std::nullopt : ParsePort(text.substr(colon + 1));
  if (!port) return Fail(Code::kInvalidArgument, "an address needs a port: 127.0.0.1:6379");

  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(*port);
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) == 1) return Pack(address);
  } else {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(*port);
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1) return Pack(address);
  }
  return Fail(Code::kInvalidArgument, "the host of an address must be numeric");
}

Address FormatUnix(const SocketAddress& address) {
  const auto& unix_address = reinterpret_cast<const sockaddr_un&>(address.storage);
  const size_t start = offsetof(sockaddr_un, sun_path);
  const size_t size = address.length > start ? address.length - start : 0;
  return Address(kUnixPrefix).append(unix_address.sun_path, strnlen(unix_address.sun_path, size));
}

}  // namespace

Address AddressOf(const std::string& host, uint16_t port) {
  const bool is_ipv6 = host.find(':') != host.npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

Result<SocketAddress> ParseAddress(const Address& address) {
  if (address.starts_with(kUnixPrefix)) {
    return ParseUnix(std::string_view(address).substr(kUnixPrefix.size()));
  }
  return ParseTcp(address);
}

Result<std::vector<Address>> LookUp(const Address& address) {
  const size_t colon = address.rfind(':');
  const auto parsed = ParseAddress(address);
  if (parsed || address.starts_with(kUnixPrefix) || colon == address.npos) {
    if (!parsed) return Fail(parsed.error());
    return std::vector{address};
  }
  // getaddrinfo(3) would take a port that is too large for a smaller one.
  if (!ParsePort(std::string_view(address).substr(colon + 1))) return Fail(parsed.error());
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = address.substr(0, colon);
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &wanted, &found) != 0) {
    return Fail(Code::kInvalidArgument, "the host of the address is unknown");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    SocketAddress one;
    memcpy(&one.storage, at->ai_addr, at->ai_addrlen);
    one.length = at->ai_addrlen;
    addresses.push_back(FormatAddress(one));
  }
  return addresses;
}

Address FormatAddress(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN];
  switch (address.family()) {
    case AF_INET: {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
      inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
      return fmt::format("{}:{}", host, ntohs(v4.sin_port));
    }
    case AF_INET6: {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
      inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
      return fmt::format("[{}]:{}", host, ntohs(v6.sin6_port));
    }
    case AF_UNIX:
      return FormatUnix(address);
    default:
      return "";
  }
}

}  // namespace skep
