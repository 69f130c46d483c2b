// escape.h: converts any bytes to one line that people can read.
#pragma once

#include <string>
#include <string_view>

namespace skep {

// Returns the bytes in double quotes, with \n, \r, \t, \a, \b or \x1f for what is not printable
// ASCII, and a backslash before quotes and backslashes: as redis-cli prints and reads them.
std::string Quoted(std::string_view bytes);

// Returns whether the bytes are UTF-8, as Unicode defines it: shortest forms, no surrogates.
bool IsUtf8(std::string_view bytes);

std::string ToBase64(std::string_view bytes);
// Decodes base64 with padding. Returns false if the text has another form; *bytes is then
// undefined.
bool FromBase64(std::string_view text, std::string* bytes);

}  // namespace skep
