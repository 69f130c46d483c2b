// rdb_packed.h: small collections as Redis packs them into one string, in memory and in RDB files.
//
//   listpack   total bytes, 4 | entries, 2 | entry ... | FF               Redis 7.0 and later
//     entry    an integer or a string, its kind in the first bits; then its length, backward
//   ziplist    total bytes, 4 | place of the last entry, 4 | entries, 2 | entry ... | FF    to 6.2
//     entry    length of the entry before; an integer or a string, its kind in the first bits
//   zipmap     entries, 1 | entry ... | FF                                                  to 2.4
//     entry    key length | key | value length | unused bytes, 1 | value | the unused bytes
//   intset     bytes of an integer, 4: 2, 4 or 8 | integers, 4 | integer ...
//
// Numbers of fixed size are little-endian, but for the lengths in the entries of a ziplist. A
// number of entries of 65535, in a zipmap of 254 and more, is not to be believed.
//
// Nothing is believed of the bytes: lengths and places that contradict each other are an error.
//
// Thread safety: all functions are pure. Cost: a look at each entry.
#pragma once

#include <functional>
#include <string_view>

namespace skep::durable {

// Is called with each entry, in order; integers come as decimals. The view is valid in the call.
using OnPacked = std::function<void(std::string_view entry)>;

// Each returns false if the bytes are no such thing; some entries may have been shown by then.
bool ReadListpack(std::string_view bytes, const OnPacked& on_entry);
bool ReadZiplist(std::string_view bytes, const OnPacked& on_entry);
// Shows keys and values in turns.
bool ReadZipmap(std::string_view bytes, const OnPacked& on_entry);
bool ReadIntset(std::string_view bytes, const OnPacked& on_entry);

}  // namespace skep::durable
