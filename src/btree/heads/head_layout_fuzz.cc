// The property is that of layout_fuzz.h, for HeadLayout.
//
// Input: byte 0 chooses geometry and read version, byte 1 is the number of log items; the rest is a
// node from byte 0 of its front up to its last byte in use.

#include "btree/heads/head_layout_search.h"
#include "btree/testing/layout_fuzz.h"

namespace skep::btree {
namespace {

bool HasOutsideKeys(const Codec& codec, const NodeHeader* node, uint32_t used) {
  const auto fences = HeadLayout::FencesOf(codec, node);
  bool has = fences.lower.outside || (!fences.unbounded && fences.upper.outside);
  const HeadLayout::Sorted sorted(node);
  for (uint32_t i = 0; i < sorted.count(); ++i) has |= sorted.key(i).outside;
  for (uint32_t i = 0; i < heads::Fill::Of(used).log_items; ++i) {
    has |= heads::LogItem(node, heads::LogOffset(node, i)).key().outside;
  }
  return has;
}

}  // namespace
}  // namespace skep::btree

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::btree;
  if (size < 2 || size > 2 + 32768) return 0;
  const uint8_t choice = data[0];
  LayoutFuzz<HeadLayout> fuzz({.node_bytes = 2048u << (choice & 3)}, HasOutsideKeys);
  const auto bytes = static_cast<uint32_t>(size - 2);
  if (bytes < HeadLayout::kFrontBytes) return 0;
  const heads::Fill fill = {.bytes = bytes - HeadLayout::kFrontBytes, .log_items = data[1]};
  fuzz.CheckNode(data + 2, bytes, fill.used(), choice >> 2);
  return 0;
}
