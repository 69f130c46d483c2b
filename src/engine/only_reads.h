// only_reads.h: requests that change nothing, whatever they find.
#pragma once

#include "skep/batch.h"

namespace skep {

// Whether the request never changes a key. A function that only reads is such a request, though
// Op::kApply is an operation that may write.
inline bool OnlyReads(const Request& request) {
  return !IsWrite(request.op) ||
         (request.op == Op::kApply && request.function != nullptr && request.function->reads_only);
}

}  // namespace skep
