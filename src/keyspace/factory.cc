#include "keyspace/factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/decimal.h"
#include "btree/btree_engine.h"
#include "hash/hash_engine.h"
#include "hashleaf/hashleaf_engine.h"
#include "model/model_engine.h"

namespace skep {
namespace {

constexpr std::string_view kHashleaf = "hashleaf";

}  // namespace

std::span<const EngineInfo> AllEngines() {
  static constexpr EngineInfo kEngines[] = {
      {"btree", "ordered, multi-version B+tree with wait-free reads (Honeycomb)",
       &BtreeEngine::Make},
      {"hash", "unordered, one version; for points, atomics and batches (KV-Direct)",
       [](const EngineOptions& options) { return HashEngine::Make(options); },
       HashEngine::kKeyspacesMax},
      {kHashleaf, "ordered, one version; for batches of pairs of one size (HeteroKV)",
       [](const EngineOptions& options) { return HashleafEngine::Make(options); },
       HashleafEngine::kKeyspacesMax},
      {"model", "ordered, multi-version, behind one lock; the oracle of every other engine",
       [](const EngineOptions& options) -> std::unique_ptr<Engine> {
         return std::make_unique<ModelEngine>(options);
       }},
  };
  return kEngines;
}

const EngineInfo* FindEngine(std::string_view name) {
  const auto engines = AllEngines();
  const auto at = std::ranges::find(engines, name, &EngineInfo::name);
  return at == engines.end() ? nullptr : &*at;
}

Result<EngineSpec> ParseEngine(std::string_view text, const HashleafOptions& defaults) {
  size_t comma = text.find(',');
  EngineSpec spec{.info = FindEngine(text.substr(0, comma)), .hashleaf = defaults};
  if (spec.info == nullptr) return Fail(Code::kInvalidArgument, "no engine of that name");
  if (comma != std::string_view::npos && spec.info->name != kHashleaf) {
    return Fail(Code::kInvalidArgument, "only hashleaf takes options behind its name");
  }
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    const size_t equal = option.find('=');
    const auto number = equal == std::string_view::npos
                            ? std::nullopt
                            : ParseDecimal<uint32_t>(option.substr(equal + 1));
    uint32_t* const to = equal == std::string_view::npos        ? nullptr
                         : option.substr(0, equal) == "key"     ? &spec.hashleaf.key_bytes
                         : option.substr(0, equal) == "value"   ? &spec.hashleaf.value_bytes
                         : option.substr(0, equal) == "leaf"    ? &spec.hashleaf.leaf_bytes
                         : option.substr(0, equal) == "threads" ? &spec.hashleaf.threads
                                                                : nullptr;
    if (to == nullptr || !number) {
      return Fail(Code::kInvalidArgument,
                  "an option of hashleaf is key=, value=, leaf= or threads=");
    }
    *to = *number;
  }
  return spec;
}

std::string FormatOf(const EngineTraits& traits) {
  if (traits.key_bytes_min == 0) return std::string(traits.name);
  return fmt::format("{},key={},value={}", traits.name, traits.key_bytes_min,
                     traits.value_bytes_min);
}

std::string FormatOf(const EngineSpec& spec) {
  if (spec.info->name != kHashleaf) return std::string(spec.info->name);
  return fmt::format("{},key={},value={}", kHashleaf, spec.hashleaf.key_bytes,
                     spec.hashleaf.value_bytes);
}

}  // namespace skep
