// hex.h: any bytes as hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace skep {

// Returns "0x" and two digits a byte.
std::string ToHex(std::string_view bytes);
// The inverse of ToHex; digits of either case. Returns false if the text has another form; *bytes
// is then undefined.
bool FromHex(std::string_view text, std::string* bytes);

}  // namespace skep
