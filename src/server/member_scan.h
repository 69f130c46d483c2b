// member_scan.h: HSCAN, SSCAN and ZSCAN.
//
// A collection in one value comes as a whole, whatever the cursor and the count, as Redis does with
// its small ones. A large one comes in steps; between them the server keeps the member to go on
// from under the cursor's number, as SCAN keeps a key (server_state.h). A number that it has not,
// or no longer, begins again. A host without cursors gets the whole collection.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/command.h"
#include "server/server_call.h"

namespace skep {

// Adds a request of the function "...-scan" (types/collection.h).
Plan PlanMemberScan(const Call& call, Batch& batch, const Function* function);
Plan PlanMemberScan(const ServerCall& call, Batch& batch, const Function* function);
// Replies with the members that match. The texts are `each` strings for a member, of which the
// first is matched.
void FinishMemberScan(const Call& call, const Batch& batch, uint32_t slot, size_t each);
void FinishMemberScan(const ServerCall& call, const Batch& batch, uint32_t slot, size_t each);

}  // namespace skep
