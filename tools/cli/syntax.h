// syntax.h: the syntax of a command's arguments, as a line for people, and what is left to be
// typed.
//
//   key value [NX | XX] [EX seconds | PX milliseconds]     KRANGE: min max | PREFIX prefix [REV]
//
//   word      lower case: a placeholder; upper case: a token, to be typed as it is
//   [a | b]   may be left out; one of them otherwise
//   <a | b>   one of them
//   a | B c   the same without brackets: from the first word on, or a token and one word
//   ...       the part before it, and in the same brackets, may be repeated
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skep::cli {

// Returns what is still to be typed behind `words`, one item a string. Options that were typed are
// left out, the others stay, in whatever order they come. Words that do not fit are ignored.
std::vector<std::string> RemainingSyntax(std::string_view syntax,
                                         std::span<const std::string_view> words);

// Returns the tokens that may be typed next, in the order of the syntax.
std::vector<std::string> NextTokens(std::span<const std::string> remaining);

}  // namespace skep::cli
