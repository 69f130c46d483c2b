#include "engine/testing/conformance.h"
#include "engine/testing/padded_engine.h"

namespace skep {
namespace {

std::unique_ptr<Engine> MakePaddedHashleaf(const EngineOptions& options) {
  EngineOptions all = options;
  all.index.hashleaf.key_bytes = PaddedEngine::kBytes;
  all.index.hashleaf.value_bytes = PaddedEngine::kBytes;
  auto engine = FindEngine("hashleaf")->make(all);
  return engine == nullptr ? nullptr : std::make_unique<PaddedEngine>(std::move(engine));
}

const EngineInfo kPaddedHashleaf = {"hashleaf", "keys and values of up to 15 bytes",
                                    &MakePaddedHashleaf};

}  // namespace

// Returns every engine with its defaults, and the variants below whose engine this build has.
std::vector<EngineVariant> EnginesUnderTest() {
  struct Line {
    const char* name;
    const char* engine;
    EngineOptions options;
  };
  constexpr NodeLayout kPaper = NodeLayout::kPaper;
  const Line lines[] = {
      {"btree_paper", "btree", {.index = {.btree = {.layout = kPaper}}}},
      {"btree_2048_0", "btree", {.index = {.btree = {.node_bytes = 2048, .log_bytes = 0}}}},
      {"btree_2048_320_paper",
       "btree",
       {.index = {.btree = {.node_bytes = 2048, .log_bytes = 320, .layout = kPaper}}}},
      {"btree_4096_1024", "btree", {.index = {.btree = {.node_bytes = 4096, .log_bytes = 1024}}}},
      {"btree_16384_512_paper",
       "btree",
       {.index = {.btree = {.node_bytes = 16384, .log_bytes = 512, .layout = kPaper}}}},
      {"btree_single_version", "btree", {.index = {.btree = {.multi_version = false}}}},
      {"btree_single_version_paper",
       "btree",
       {.index = {.btree = {.layout = kPaper, .multi_version = false}}}},
  };
  std::vector<EngineVariant> variants;
  for (const EngineInfo& info : AllEngines()) {
    if (info.external) continue;
    const bool is_fixed = info.name == "hashleaf";
    variants.push_back(
        {.name = std::string(info.name), .info = is_fixed ? &kPaddedHashleaf : &info});
  }
  // The leaves split after some hundred pairs.
  variants.push_back({.name = "hashleaf_4096",
                      .info = &kPaddedHashleaf,
                      .options = {.index = {.hashleaf = {.leaf_bytes = 4096}}}});
  for (const Line& line : lines) {
    const EngineInfo* const info = FindEngine(line.engine);
    if (info == nullptr) continue;
    // Under a sanitizer each option and each layout is tested, but not every pair of them.
    const BtreeOptions& btree = line.options.index.btree;
    const bool is_both = btree.layout == kPaper && btree != BtreeOptions{.layout = kPaper};
    if (kSanitized && is_both) continue;
    variants.push_back({.name = line.name, .info = info, .options = line.options});
  }
  return variants;
}

std::vector<EngineVariant> EnginesUnderMemoryTest() {
  std::vector<EngineVariant> variants = EnginesUnderTest();
  std::erase_if(variants, [](const EngineVariant& variant) {
    return kSanitized && variant.options.index.btree.node_bytes != BtreeOptions{}.node_bytes;
  });
  return variants;
}

}  // namespace skep
