// The EngineInfo of the engine btree: its options are parsed, checked and printed here.
#include <bit>

#include "btree/btree_engine.h"

namespace skep {
namespace {

constexpr uint32_t kNodeBytesMin = 2048;
constexpr uint32_t kNodeBytesMax = 32768;

Status CheckOptions(const IndexOptions& options) {
  const uint32_t bytes = options.btree.node_bytes;
  if (std::has_single_bit(bytes) && bytes >= kNodeBytesMin && bytes <= kNodeBytesMax) return {};
  return {Code::kInvalidArgument, "the node bytes of a btree are a power of two, 2048 to 32768",
          bytes};
}

}  // namespace

constinit const EngineInfo BtreeEngine::kInfo = {
    .name = "btree",
    .summary = "ordered, multi-version B+tree with wait-free reads (Honeycomb)",
    .make = &BtreeEngine::Make,
    .check = &CheckOptions};

}  // namespace skep
