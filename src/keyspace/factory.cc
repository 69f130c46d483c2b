#include "keyspace/factory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "btree/btree_engine.h"
#include "hash/hash_engine.h"
#include "hashleaf/hashleaf_engine.h"
#include "model/model_engine.h"
#include "pool/connected_pool.h"
#include "ranges/connected_ranges.h"

namespace skep {
namespace {

std::string UnknownEngine(std::string_view name) {
  std::vector<std::string_view> names;
  for (const EngineInfo& info : AllEngines()) names.push_back(info.name);
  return fmt::format("unknown engine '{}'; this build has: {}", name, fmt::join(names, ", "));
}

// "hashleaf takes key=, value=", or which engines take options if this one takes none.
std::string OptionsTaken(const EngineInfo& info) {
  if (!info.option_names.empty()) {
    return fmt::format("{} takes {}=", info.name, fmt::join(info.option_names, "=, "));
  }
  std::string text = fmt::format("{} takes none", info.name);
  for (const EngineInfo& other : AllEngines()) {
    if (!other.option_names.empty()) text += ", " + OptionsTaken(other);
  }
  return text;
}

// `option` is NAME=VALUE.
Status ReadOption(const EngineInfo& info, std::string_view option, IndexOptions& options,
                  std::string* problem) {
  const size_t name_bytes = std::min(option.find('='), option.size());
  const std::string_view name = option.substr(0, name_bytes);
  if (std::ranges::find(info.option_names, name) == info.option_names.end()) {
    *problem =
        fmt::format("the engine {} has no option '{}': {}", info.name, name, OptionsTaken(info));
    return {Code::kInvalidArgument, "the engine has no option of that name"};
  }
  const std::string_view value = option.substr(std::min(name_bytes + 1, option.size()));
  const Status s = info.read_option(name, value, options);
  if (!s.ok()) {
    *problem = fmt::format("the option '{}' of the engine {}: {}", option, info.name, s.what());
  }
  return s;
}

}  // namespace

std::span<const EngineInfo> AllEngines() {
  static const EngineInfo kEngines[] = {BtreeEngine::kInfo,    HashEngine::kInfo,
                                        HashleafEngine::kInfo, pool::kPoolInfo,
                                        ranges::kRangesInfo,   ModelEngine::kInfo};
  return kEngines;
}

const EngineInfo* FindEngine(std::string_view name) {
  const auto engines = AllEngines();
  const auto at = std::ranges::find(engines, name, &EngineInfo::name);
  return at == engines.end() ? nullptr : &*at;
}

IndexOptions IndexOptionsOf(const Options& options) {
  return {.btree = options.btree, .hash = options.hash, .hashleaf = options.hashleaf, .pool = {}};
}

Result<EngineSpec> ParseEngine(std::string_view text, const IndexOptions& defaults,
                               std::string* problem) {
  std::string unwanted;
  if (problem == nullptr) problem = &unwanted;
  size_t comma = text.find(',');
  const std::string_view name = text.substr(0, comma);
  EngineSpec spec{.info = FindEngine(name), .options = defaults};
  if (spec.info == nullptr) {
    *problem = UnknownEngine(name);
    return Fail(Code::kInvalidArgument, "no engine of that name");
  }
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    const Status s = ReadOption(*spec.info, text.substr(0, comma), spec.options, problem);
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
