// The EngineInfo of the engine hashleaf: its options are parsed, checked and printed here.
#include <bit>
#include <string>

#include "base/decimal.h"
#include "hashleaf/hashleaf_engine.h"

namespace skep {
namespace {

constexpr uint32_t kLeafBytesMin = 32 << 10;
constexpr uint32_t kLeafBytesMax = 4 << 20;
constexpr uint32_t kThreadsMax = 256;

Status CheckOptions(const IndexOptions& index) {
  const HashleafOptions& options = index.hashleaf;
  for (const uint32_t bytes : {options.key_bytes, options.value_bytes}) {
    if (bytes != 4 && bytes != 8 && bytes != 16) {
      return {Code::kInvalidArgument, "keys and values of hash leaves have 4, 8 or 16 bytes",
              bytes};
    }
  }
  if (!std::has_single_bit(options.leaf_bytes) || options.leaf_bytes < kLeafBytesMin ||
      options.leaf_bytes > kLeafBytesMax) {
    return {Code::kInvalidArgument, "the bytes of a hash leaf are a power of two, 32 KiB to 4 MiB",
            options.leaf_bytes};
  }
  if (options.threads == 0 || options.threads > kThreadsMax) {
    return {Code::kInvalidArgument, "the threads of hash leaves are 1 to 256", options.threads};
  }
  return {};
}

Status ReadOption(std::string_view name, std::string_view value, IndexOptions& index) {
  HashleafOptions& options = index.hashleaf;
  uint32_t* const option = name == "key"       ? &options.key_bytes
                           : name == "value"   ? &options.value_bytes
                           : name == "leaf"    ? &options.leaf_bytes
                           : name == "threads" ? &options.threads
                                               : nullptr;
  const auto number = ParseDecimal<uint32_t>(value);
  if (option == nullptr || !number) {
    return {Code::kInvalidArgument, "an option of hashleaf is key=, value=, leaf= or threads="};
  }
  *option = *number;
  return {};
}

std::string FormatOptions(const IndexOptions& options) {
  return HashleafEngine::FormatOf(options.hashleaf.key_bytes, options.hashleaf.value_bytes);
}

}  // namespace

std::string HashleafEngine::FormatOf(uint32_t key_bytes, uint32_t value_bytes) {
  return std::string(kInfo.name) + ",key=" + std::to_string(key_bytes) +
         ",value=" + std::to_string(value_bytes);
}

constinit const EngineInfo HashleafEngine::kInfo = {
    .name = "hashleaf",
    .summary = "ordered, one version; for batches of pairs of one size (HeteroKV)",
    .make = &HashleafEngine::Make,
    .keyspaces_max = HashleafEngine::kKeyspacesMax,
    .check = &CheckOptions,
    .read_option = &ReadOption,
    .format = &FormatOptions};

}  // namespace skep
