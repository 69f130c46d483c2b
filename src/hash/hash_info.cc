// The EngineInfo of the engine hash: its options are parsed, checked and printed here.
#include "hash/hash_engine.h"

namespace skep {
namespace {

constexpr uint32_t kFillSlotsMax = 40;
static_assert(hash::Bucket::kInlineBytesMax == 50);  // as the message says

Status CheckOptions(const IndexOptions& options) {
  const auto& [inline_bytes_max, fill_slots] = options.hash;
  if (inline_bytes_max > hash::Bucket::kInlineBytesMax) {
    return {Code::kInvalidArgument, "at most 50 bytes of a hash table's pair lie inline",
            inline_bytes_max};
  }
  if (fill_slots == 0 || fill_slots > kFillSlotsMax) {
    return {Code::kInvalidArgument, "the fill slots of a hash table are 1 to 40", fill_slots};
  }
  return {};
}

}  // namespace

constinit const EngineInfo HashEngine::kInfo = {
    .name = "hash",
    .summary = "unordered, one version; for points, atomics and batches (KV-Direct)",
    .make = &HashEngine::Make,
    .keyspaces_max = HashEngine::kKeyspacesMax,
    .check = &CheckOptions};

}  // namespace skep
