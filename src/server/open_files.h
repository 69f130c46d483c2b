// open_files.h: how many descriptors of the process clients may use.
#pragma once

#include <cstdint>

#include "server/options.h"

namespace skep {

// The greatest possible number of clients: some descriptors are kept back for the log and its next
// segments, snapshots, listeners, and two for each worker. First raises the system's limit as far
// as it may be.
uint32_t ClientsPossible(const ServerOptions& options);

}  // namespace skep
