#include "engine/factory.h"

#include <algorithm>

#include "btree/btree_engine.h"
#include "engine/model_engine.h"
#include "hash/hash_engine.h"
#include "hashleaf/hashleaf_engine.h"

namespace skep {

std::span<const EngineInfo> AllEngines() {
  static constexpr EngineInfo kEngines[] = {
      {"btree", "ordered, multi-version B+tree with wait-free reads (Honeycomb)",
       &BtreeEngine::Make},
      {"hash", "unordered, one version; for points, atomics and batches (KV-Direct)",
       [](const EngineOptions& options) { return HashEngine::Make(options); },
       HashEngine::kKeyspacesMax},
      {"hashleaf", "ordered, one version; for batches of pairs of one size (HeteroKV)",
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

}  // namespace skep
