// escape.h: any bytes as one line that a person can read.
#pragma once

#include <string>
#include <string_view>

namespace skep {

// In double quotes; what is not printable ASCII as \n, \r, \t, \a, \b or \x1f, quotes and
// backslashes with a backslash before them: as redis-cli prints and reads it.
std::string Quoted(std::string_view bytes);

// Whether the bytes are UTF-8, as Unicode defines it: shortest forms, no surrogates.
bool IsUtf8(std::string_view bytes);

// "0x" and two digits a byte.
std::string ToHex(std::string_view bytes);
// The inverse; digits of either case. False: it is not that; *bytes is not defined then.
bool FromHex(std::string_view text, std::string* bytes);

std::string ToBase64(std::string_view bytes);
// With padding. False: it is not that; *bytes is not defined then.
bool FromBase64(std::string_view text, std::string* bytes);

}  // namespace skep
