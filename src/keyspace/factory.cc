#include "keyspace/factory.h"

#include <algorithm>

#include "btree/btree_engine.h"
#include "hash/hash_engine.h"
#include "hashleaf/hashleaf_engine.h"
#include "model/model_engine.h"

namespace skep {

std::span<const EngineInfo> AllEngines() {
  static const EngineInfo kEngines[] = {BtreeEngine::kInfo, HashEngine::kInfo,
                                        HashleafEngine::kInfo, ModelEngine::kInfo};
  return kEngines;
}

const EngineInfo* FindEngine(std::string_view name) {
  const auto engines = AllEngines();
  const auto at = std::ranges::find(engines, name, &EngineInfo::name);
  return at == engines.end() ? nullptr : &*at;
}

IndexOptions IndexOptionsOf(const Options& options) {
  return {.btree = options.btree, .hash = options.hash, .hashleaf = options.hashleaf};
}

Result<EngineSpec> ParseEngine(std::string_view text, const IndexOptions& defaults) {
  size_t comma = text.find(',');
  EngineSpec spec{.info = FindEngine(text.substr(0, comma)), .options = defaults};
  if (spec.info == nullptr) return Fail(Code::kInvalidArgument, "no engine of that name");
  if (comma != std::string_view::npos && spec.info->read_option == nullptr) {
    return Fail(Code::kInvalidArgument, "this engine takes no options behind its name");
  }
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    const size_t name_bytes = std::min(option.find('='), option.size());
    const std::string_view value = option.substr(std::min(name_bytes + 1, option.size()));
    const Status s = spec.info->read_option(option.substr(0, name_bytes), value, spec.options);
    if (!s.ok()) return Fail(s);
  }
  return spec;
}

std::string FormatOf(const EngineSpec& spec) {
  return spec.info->format != nullptr ? spec.info->format(spec.options)
                                      : std::string(spec.info->name);
}

Status CheckEngine(const EngineSpec& spec) {
  return spec.info->check != nullptr ? spec.info->check(spec.options) : Status();
}

}  // namespace skep
