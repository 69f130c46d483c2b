// loopback_limit.h: measures a TCP round trip through the loopback, with nothing behind it.
//
//   client (this thread)                       echo thread
//   send n messages  ------------------------> recv what has come, send it back
//   recv what has come <----------------------
//   send as many new ones as were answered ...
//
// With one message in flight each round trip is four system calls and two wake-ups. With many, both
// sides find several messages at once and share the calls among them, as a pipelining client and a
// batching server do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "skep/status.h"

namespace skep::bench {

inline constexpr size_t kMessageBytes = 32;

// Returns the seconds from the first send to the last answer of `messages` (> 0) messages with
// `in_flight` (> 0) of them under way at any moment. The connection is made before the clock
// starts. The echo thread runs on `echo_core`.
//   kIo  the errno of a socket call
Result<double> LoopbackSeconds(uint64_t messages, uint64_t in_flight, int echo_core);

}  // namespace skep::bench
