// batch_changes.h: what an executed batch has changed, as a record of the log.
#pragma once

#include <cstdint>
#include <string>

#include "skep/batch.h"

namespace skep::durable {

// A value that a function has made is logged itself if it has at most so many bytes more than the
// function's operand; else the function and operand are.
inline constexpr size_t kValueBytesMore = 256;

struct ChangesWritten {
  uint64_t count = 0;
  Version last = 0;  // the highest version of a change
};

// Appends the payload of the batch's record to `to`; nothing if the batch has changed nothing. The
// batch must have noted its effects.
ChangesWritten WriteChanges(const Batch& batch, uint32_t keyspace, std::string& to);

}  // namespace skep::durable
