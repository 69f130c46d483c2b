// web_page.h: recognises requests that a page in a browser has sent.
//
// A page can make a reader's browser speak to any port of the reader's machine, and of its network:
//   HTTP    a POST has a body, whose lines would be commands; every request has a line "Host: ..."
//           before the body.
//   HTTPS   the handshake of TLS repeats bytes that another server chose, such as the ticket of a
//           session, which may have lines in it.
//   a name that leads to the machine: then the page may use any word as method and any path, so
//           that the first line is a command by itself: "DEL /key HTTP/1.1".
// No client of this server sends any of these, so the connection can be closed.
#pragma once

#include <span>
#include <string_view>

#include "base/ascii.h"

namespace skep {

// Whether the first word of a request, which is no command, is of such a request.
constexpr bool BeginsLikeWebPage(std::string_view word) {
  constexpr std::string_view kTlsHandshake = "\x16\x03";
  return EqualsIgnoringCase(word, "post") || EqualsIgnoringCase(word, "host:") ||
         word.starts_with(kTlsHandshake);
}

// Whether the words of a line that is a command by itself, not an array, are a line of HTTP.
constexpr bool IsRequestOfHttp(std::span<const std::string_view> words) {
  return words.size() == 3 && words[2].starts_with("HTTP/");
}

}  // namespace skep
