// object_encoding.h: how Redis 7.0 would keep a value that is stored anew, as OBJECT ENCODING says.
//
//   string      int, embstr, raw
//   hash        listpack up to hash-max-listpack-entries fields, none of which, nor of their
//               values, is longer than hash-max-listpack-value; else hashtable. Redis 7.4's
//               listpackex instead of listpack if a field has a deadline
//   set         intset if all members are integers, up to set-max-intset-entries; else hashtable
//   list        quicklist
//   sorted set  listpack up to zset-max-listpack-entries members, none of which is longer than
//               zset-max-listpack-value; else skiplist
//
// Redis keeps what it once has unpacked, and here there are other encodings (types/hash.h and its
// kin): so this tells no more than it says. A large collection (types/large_record.h) has the last
// encoding of its type.
//
// Thread safety: a pure function. Cost: a look at each member.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/options.h"

namespace skep {

// `value` may be empty if it is not known: then the encoding is the first one of the type.
std::string_view EncodingOf(uint8_t type, std::string_view value, const ServerOptions& options);

}  // namespace skep
