// The EngineInfo of the engine hashleaf: its options are parsed, checked and printed here.
#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <string_view>

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

constexpr std::string_view kOptionNames[] = {"key", "value", "leaf", "threads"};
constexpr uint32_t HashleafOptions::* kOptions[] = {
    &HashleafOptions::key_bytes, &HashleafOptions::value_bytes, &HashleafOptions::leaf_bytes,
    &HashleafOptions::threads};
static_assert(std::size(kOptions) == std::size(kOptionNames));

Status ReadOption(std::string_view name, std::string_view value, IndexOptions& index) {
  const auto number = ParseDecimal<uint32_t>(value);
  if (!number) return {Code::kInvalidArgument, "the value is not a number"};
  const auto at = std::ranges::find(kOptionNames, name);
  index.hashleaf.*kOptions[at - std::begin(kOptionNames)] = *number;
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
    .option_names = kOptionNames,
    .read_option = &ReadOption,
    .format = &FormatOptions};

}  // namespace skep
