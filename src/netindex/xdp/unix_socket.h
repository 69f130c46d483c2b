// unix_socket.h: unix sockets of whole messages, by which processes give descriptors to each other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/file_descriptor.h"

namespace skep::xdp {

inline constexpr size_t kFilesMax = 2;

// Nullopt: errno says why.
std::optional<FileDescriptor> ConnectUnix(const std::string& path);
// Listens at a path. What a process that has ended left there is replaced.
//   nullopt  errno says why; EADDRINUSE: another process listens
std::optional<FileDescriptor> ListenUnix(const std::string& path);

// Sends one message with these descriptors. False: errno says why.
bool SendWithFiles(int socket, const void* message, size_t bytes, std::span<const int> files);
// Receives one message of exactly so many bytes, and at most kFilesMax descriptors. Nullopt: there
// is none.
std::optional<std::array<FileDescriptor, kFilesMax>> ReceiveWithFiles(int socket, void* message,
                                                                      size_t bytes);

}  // namespace skep::xdp
