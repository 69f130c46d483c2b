// inline_request.h: a command that a person typed: words and quotes on one line.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace skep {

// Appends the words of `line` (without its line end) to `args`. The rules are Redis's:
//
//   a b     words end at a space, TAB, CR or LF; VT and FF separate too, but only before a word
//   "a b"   \n \r \t \b \a, \xHH (two hex digits); \ before any other byte is that byte
//   'a b'   \' is a quote, every other byte is itself
//   a"b c"  quotes may begin inside a word; behind a closing quote the word ends
//
// Words without quotes are views into `line`; words with quotes are built in `unquoted`, which is
// replaced when the first one is met and has to outlive `args`.
//
// False if a quote is not closed, or is closed and not followed by a space or the end; `args` then
// holds the words before it.
bool SplitInlineRequest(std::string_view line, std::unique_ptr<char[]>& unquoted,
                        std::vector<std::string_view>& args);

}  // namespace skep
