// glob.h: the patterns of KEYS, SCAN MATCH and CONFIG GET, byte for byte as Redis reads them.
//
//   element    matches
//   *          any bytes, or none
//   ?          any one byte
//   [abc]      one byte of the class. a-z is a range, also written z-a; \x is the byte x
//   [^abc]     one byte not of the class
//   \x         the byte x
//   x          the byte x, for any other x
//
// Rules that are not obvious, all as in Redis:
//   - A class that is not closed ends with the pattern: "[ab" is "[ab]", "[^" is any byte.
//   - "]" always closes: "[]" matches nothing, "[^]" any byte. As a range's end it is a byte.
//   - "-" is a range only with a byte on both sides; neither side can be escaped.
//   - A range compares bytes as signed, like Redis on x86: [\x80-\x01] holds \x00.
//   - A backslash that ends the pattern is the byte itself, in a class too.
//   - The empty text matches "" and "*", but not "**".
#pragma once

#include <string>
#include <string_view>

namespace skep {

// True if the whole of `text` matches. Takes at most |pattern| * |text| steps, no memory.
bool GlobMatch(std::string_view pattern, std::string_view text);

// True if no byte of the pattern is special, so that the one text it matches is its prefix below.
bool GlobIsLiteral(std::string_view pattern);

// The bytes that every match begins with: those before the first special byte, escapes resolved.
// *whole tells whether the pattern is that prefix and one final "*": then every text that begins
// with the prefix matches, and GlobMatch need not be called.
std::string LiteralPrefix(std::string_view pattern, bool* whole);

}  // namespace skep
