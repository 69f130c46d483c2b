// packed_top.h: the payloads of kTop messages, by which a client learns the links of a tree's
// leaves (engine/leaf_links.h), a page at a time.
//
//   from the client   varint   the most links wanted; 0: as many as the server gives
//                     key      until the end: the first leaf is that of this key
//   from the server   varint   how many links
//                     for each link
//                       varint lower, bytes   the leaf's lower fence
//                       8             hint
//                       varint        sampled operations on the leaf
//                     next     until the end: the key to ask for next; empty: that was all
//
// The fences rise. A page is cut by the server, at kTopLinksMax links or kTopBytesMax bytes of
// fences, but has at least one link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/leaf_links.h"

namespace skep::packed {

inline constexpr uint32_t kTopLinksMax = 1024;
inline constexpr size_t kTopBytesMax = 64 * 1024;

struct TopQuestion {
  uint64_t links_max = 0;
  std::string_view from;
};

void AppendTopQuestion(std::string& to, const TopQuestion& question);
// False: the payload is malformed.
bool ReadTopQuestion(std::string_view payload, TopQuestion* question);

void AppendTop(std::string& to, const LeafLinks& page);
// False: the payload is malformed: it ends too early, has no link, or its fences do not rise. The
// links are views of the payload.
bool ReadTop(std::string_view payload, LeafLinks* page);

}  // namespace skep::packed
