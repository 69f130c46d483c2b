#include "netindex/controller/leaf_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/network_socket.h"
#include "client/remote.h"
#include "wire/packed_top.h"

namespace skep::netindex {

uint64_t NumberOf(std::string_view key) {
  uint64_t number = 0;
  std::memcpy(&number, key.data(), std::min(key.size(), sizeof(number)));
  return __builtin_bswap64(number);
}

Result<ServerLeaves> RemoteLeafSource::LeavesOf(const ServerRange& range, std::string_view upper) {
  const auto remote = client::Remote::Connect({.address = range.address, .timeout_ms = timeout_ms_},
                                              SocketNetwork(), SystemClock());
  if (!remote) return Fail(remote.error());
  if (((*remote)->connection(0).hello().features & packed::kHasTop) == 0) {
    return Fail(Code::kNotSupported, "the server does not tell its leaves");
  }
  ServerLeaves found{.first = NumberOf(range.lower), .leaves = {}};
  for (std::string from = range.lower; upper.empty() || from < upper;) {
    std::string question;
    packed::AppendTopQuestion(question, {.links_max = 0, .from = from});
    const auto payload = (*remote)->Ask(packed::Kind::kTop, 0, question, 0);
    if (!payload) return Fail(payload.error());
    LeafLinks page;
    if (!packed::ReadTop(*payload, &page)) return Fail(Code::kCorrupt, "the links are malformed");
    for (const LeafLink& link : page.links) {
      if (!upper.empty() && link.lower >= upper) break;
      found.leaves.push_back(
          {.first = NumberOf(link.lower), .address = link.hint.bits, .hits = link.hits});
    }
    if (page.next.empty()) break;
    from = page.next;
  }
  return found;
}

}  // namespace skep::netindex
