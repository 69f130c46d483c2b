// reply_format.h: prints replies as text: for people, for pipes, or as JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/resp_reply.h"

namespace skep::cli {

enum class ReplyStyle : uint8_t {
  kReadable,  // like redis-cli on a terminal: types, numbers before elements, bytes in quotes
  kRaw,       // like redis-cli into a pipe: bytes as they are, an element a line
  kJson,
};

// How the types of replies become JSON, on one line:
//
//   null                      null
//   simple, bulk, verbatim    a string; {"base64":".."} if it is not UTF-8
//   error                     {"error":".."}
//   integer, boolean, double  number, boolean, number; infinities and NaN "inf", "-inf", "nan"
//   big number                a string of digits
//   array, set, push          an array
//   map                       an object if all keys are different strings that are UTF-8, or
//                             integers; else an array of arrays of two
//
// With `hex`, bulks and verbatims become "0x..", in every style, and never base64.
struct ReplyFormat {
  ReplyStyle style = ReplyStyle::kReadable;
  bool hex = false;
};

// Returns the reply as text, with a line end.
std::string FormatReply(const RespReply& reply, const ReplyFormat& format);

// Returns whether the command's reply is a text that people want to see as it is: INFO and the
// like.
bool RepliesText(std::span<const std::string_view> args);

}  // namespace skep::cli
