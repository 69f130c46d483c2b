// remote_range_copy.h: copies a range from a server that only reads it, for range_owner.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/network.h"
#include "base/store_now.h"
#include "engine/engine.h"
#include "ranges/range_owner.h"

namespace skep::ranges {

struct RangeCopyOptions {
  std::string password;           // of the servers
  std::function<StoreNow()> now;  // of the engine that the pairs are copied into; thread-safe
};

// Copies on a thread of its own, in pieces of kCopyPairsMax pairs and kCopyBytesMax bytes, with
// deadlines. Its errors are those of the connection and of the engine. Its destruction waits for
// the piece under way, at most for kCopyTimeoutMs.
inline constexpr uint32_t kCopyPairsMax = 1024;
inline constexpr size_t kCopyBytesMax = 1 << 20;
inline constexpr uint32_t kCopyTimeoutMs = 2000;
std::unique_ptr<RangeCopy> CopyRemoteRange(const RangeToCopy& range, Engine& to,
                                           RangeCopyOptions options);

}  // namespace skep::ranges
