// optimistic_write.h: a write that is made of what other keys hold: BITOP, COPY.
//
// Requests of one batch do not see each other's values, so such a command is a read and then a
// write, on the condition that nothing has come in between:
//
//   1. Watch all keys (Engine::Watch).
//   2. Read them, each at an instant after its watch; values of any type after a look at the type.
//   3. In one atomic batch: require that no watched key has changed, and write.
//   4. If one has, begin again.
//
// Safety. At the instant of step 3 no key has changed since its watch, so each still has the value
// that step 2 read: the command takes effect at that instant. The reads are points, which see the
// newest state; an atomic read may see the released one, which may be older than the watch.
// Progress. An attempt fails only because somebody else has written one of the keys. After
// kAttemptsMax failures in a row the command is an error, so that a worker's other connections go
// on; nothing is changed then.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "server/server_call.h"

namespace skep {

inline constexpr int kOptimisticAttemptsMax = 100;

// The error of a command whose attempts have all failed.
inline constexpr std::string_view kWrittenAllTheTime =
    "ERR the keys are written all the time: try again";
inline constexpr Status kWrittenStatus(Code::kAborted,
                                       "the keys are written all the time: try again");

// Adds the writes that the values in `read` lead to; its slots are the keys in their order. Without
// writes nothing is executed. The bytes it names live in a scratch of either batch.
using MakeWrites = std::function<void(const Batch& read, Batch& write)>;

// Which values the keys may have: a value of another type is an error.
enum class ValuesOf : uint8_t { kStrings, kAnyTypes };

// Returns false, with the error sent, if there is one. Else `write`, an atomic batch, is executed,
// and its first slots are conditions, as many as there are keys.
bool WriteIfUnchanged(const ServerCall& call, std::span<const std::string_view> keys,
                      ValuesOf values, const MakeWrites& make, Batch& write);

// Fills `read`, which is empty, with GETs of the keys, for values of the type that each has when it
// is looked at, and executes it by `execute`. False: a key has got a value of another type since.
bool ReadOfAnyTypes(const std::function<void(Batch&)>& execute,
                    std::span<const std::string_view> keys, Batch& read);

}  // namespace skep
