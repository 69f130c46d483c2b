// The property is that of layout_fuzz.h, for PaperLayout.
//
// Input: byte 0 chooses geometry and read version; the rest is a node from byte 0 of its header up
// to its last byte in use.

#include "btree/paper/paper_layout.h"
#include "btree/testing/layout_fuzz.h"

namespace skep::btree {
namespace {

bool HasOutsideKeys(const Codec& codec, const NodeHeader* node, uint32_t used) {
  const auto fences = PaperLayout::FencesOf(codec, node);
  bool has = fences.lower.outside || (!fences.unbounded && fences.upper.outside);
  for (paper::SortedPosition at(codec, node); !at.at_end(); at.Next()) has |= at.key().outside;
  for (uint32_t at = node->log_begin; at < used; at = paper::LogItem(node, at).end()) {
    has |= paper::LogItem(node, at).key().outside;
  }
  return has;
}

}  // namespace
}  // namespace skep::btree

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::btree;
  if (size == 0 || size > 1 + 16384) return 0;
  const uint8_t choice = data[0];
  LayoutFuzz<PaperLayout> fuzz({.node_bytes = 2048u << (choice & 3)}, HasOutsideKeys);
  const auto bytes = static_cast<uint32_t>(size - 1);
  fuzz.CheckNode(data + 1, bytes, bytes, choice >> 2);
  return 0;
}
