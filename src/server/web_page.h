// web_page.h: how a request is known that a page in a browser has sent.
//
// A page can make the browser of who looks at it speak to any port of that machine, and of its
// network:
//   HTTP    a POST has a body, whose lines would be commands; every request has a line "Host: ..."
//           before the body.
//   HTTPS   the handshake of TLS repeats what another server chose, as the ticket of a session is,
//           which may have lines in it.
//   a name that leads to the machine: then the page may use any word as method and any path, so
//           that the first line is a command by itself: "DEL /key HTTP/1.1".
// None of them is what a client of this server sends, so that the connection can be closed there.
#pragma once

#include <span>
#include <string_view>

#include "base/ascii.h"

namespace skep {

// Of the first word of a command, which is none.
constexpr bool BeginsLikeWebPage(std::string_view word) {
  constexpr std::string_view kTlsHandshake = "\x16\x03";
  return EqualsIgnoringCase(word, "post") || EqualsIgnoringCase(word, "host:") ||
         word.starts_with(kTlsHandshake);
}

// Of the words of a line that is a command by itself, not of an array.
constexpr bool IsRequestOfHttp(std::span<const std::string_view> words) {
  return words.size() == 3 && words[2].starts_with("HTTP/");
}

}  // namespace skep
