// monitor.h: the lines that MONITOR sends.
//
//   a command has run --> TellMonitors --> Subscriptions::Publish (subscriptions.h)
//
// A line has the time, the database, the client's address and the command's words, as Redis writes
// them; a password is replaced. Commands that administrate the server have no line, nor have those
// that were refused. A line comes when its command has run, that of EXEC behind those of its
// commands; for a command that takes many turns, or waits, when it begins. A worker's commands have
// one order; those of several workers come in the order in which they reach the subscriptions.
//
// Cost: a load for each command while nobody monitors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/session.h"

namespace skep {

class ServerState;

// A line has about so many bytes at most; the rest of the words is left out, which three dots say.
inline constexpr size_t kMonitorLineBytesMax = size_t{64} << 10;

std::string MonitorLine(uint64_t unix_us, uint32_t keyspace, std::string_view peer,
                        std::span<const std::string_view> args);

// Sends the line to those who monitor. `bytes_max`: as in Subscriptions::Publish.
void TellMonitors(ServerState& state, const Session& session, const Command& command,
                  std::span<const std::string_view> args, uint64_t bytes_max);

}  // namespace skep
