// syntax.h: what a command takes, as a line for people, and what of it is still to be typed.
//
//   key value [NX | XX] [EX seconds | PX milliseconds]     KRANGE: min max | PREFIX prefix [REV]
//
//   word      lower case: something to put there; upper case: a token, to be typed as it is
//   [a | b]   may be left out; one of them otherwise
//   <a | b>   one of them
//   a | B c   the same without brackets: from the first word on, or a token and one word
//   ...       what is before it, and in the same brackets, may be repeated
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skep::cli {

// What is still to be typed behind `words`, one item a string. Options that were typed are left
// out, others stay, in whatever order they come. What does not fit is passed over.
std::vector<std::string> RemainingSyntax(std::string_view syntax,
                                         std::span<const std::string_view> words);

// The tokens that one might type next, in the order of the syntax.
std::vector<std::string> NextTokens(std::span<const std::string> remaining);

}  // namespace skep::cli
