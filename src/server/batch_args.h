// batch_args.h: reads the arguments of KBATCH.
//
//   KBATCH [IF condition]... DO operation...
//
//   condition                        operation
//   VALUE key value                  GET key
//   DIGEST key digest                PUT key value [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
//   ABSENT key                       DELETE key
//   PRESENT key                      INCRBY key number
//   EMPTY min max | PREFIX prefix    APPEND key value
//                                    EXPIRE key seconds
//                                    PEXPIRE key milliseconds
//                                    PERSIST key
//                                    DELRANGE min max | PREFIX prefix
//
// The meaning of every word follows from its place: a key may be called DO, a value EX. Upper and
// lower case are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/store_now.h"
#include "skep/batch.h"
#include "skep/scratch.h"

namespace skep {

// The most conditions and operations of one KBATCH, together.
inline constexpr size_t kKbatchMax = 4096;

// Adds the requests of `words` (all words behind the command's name) to `out`, an empty atomic
// batch: the conditions, then the operations, one request each. Bytes that have to be built are in
// `scratch`. Returns an error text with its code, which names the condition or operation by its
// index, or an empty one; after an error `out` is worthless.
std::string_view ParseKbatch(std::span<const std::string_view> words, const StoreNow& now,
                             Scratch& scratch, Batch& out);

}  // namespace skep
