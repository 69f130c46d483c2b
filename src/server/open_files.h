// open_files.h: the descriptors of the process, of which clients may have most.
#pragma once

#include <cstdint>

#include "server/options.h"

namespace skep {

// How many clients there can be: some descriptors are kept back for the log and its next segments,
// snapshots, listeners, and two for each worker. The system's limit is raised first as far as it
// may be.
uint32_t ClientsPossible(const ServerOptions& options);

}  // namespace skep
