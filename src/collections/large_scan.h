// large_scan.h: HSCAN and its kin on a large collection: some members, and where to go on.
//
// Members come in their order, some segments at a time, each time of another version. A member that
// is there from the first step to the last comes at least once, for its place is always ahead until
// it has come; a sorted set is gone through by member, so a changed score moves nothing.
//
// Thread safety: all functions are pure.
#pragma once

#include <optional>
#include <string_view>

#include "collections/large_call.h"
#include "collections/view.h"

namespace skep::collections {

// The operand and the answer are those of types/collection.h: MemberScanRequest. Returns as many
// members as are asked for, and those that follow in the last one's segment; fewer if they have
// more bytes than Access::portion_bytes_max().
Answer ScanMembers(Access& access, View& view, uint8_t kind, std::string_view operand);

}  // namespace skep::collections
