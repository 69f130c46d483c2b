// The engines of the conformance suite: a keyspace of three ranges, whose borders lie among the
// keys of the tests, over ordered engines of this process.
#include <string>
#include <utility>
#include <vector>

#include "engine/forwarding_engine.h"
#include "engine/testing/conformance.h"
#include "engine/testing/masked_engine.h"
#include "ranges/ranged_engine.h"

namespace skep {
namespace {

constexpr std::string_view kLowers[] = {"", "b", "k5"};

struct RangeParts {
  RangeParts(const EngineOptions& options, std::string_view name) {
    for (const std::string_view lower : kLowers) {
      engines.push_back(FindEngine(name)->make(options));
      parts.push_back({.lower = std::string(lower), .engine = engines.back().get()});
    }
  }
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<ranges::RangePart> parts;
};

// The base that is the parts outlives the engine over them.
class OwningRangedEngine final : private RangeParts, public ForwardingEngine {
 public:
  OwningRangedEngine(const EngineOptions& options, std::string_view name)
      : RangeParts(options, name),
        ForwardingEngine(std::make_unique<ranges::RangedEngine>(std::move(parts))) {}
};

// Atomic batches would have to lie in one part.
std::unique_ptr<Engine> MakeOver(const EngineOptions& options, std::string_view name) {
  auto engine = std::make_unique<OwningRangedEngine>(options, name);
  EngineTraits traits = engine->traits();
  traits.atomic = false;
  return std::make_unique<MaskedEngine>(std::move(engine), traits);
}

std::unique_ptr<Engine> MakeOverTrees(const EngineOptions& options) {
  return MakeOver(options, "btree");
}
std::unique_ptr<Engine> MakeOverModels(const EngineOptions& options) {
  return MakeOver(options, "model");
}

const EngineInfo kOverTrees = {"ranges", "over three trees", &MakeOverTrees};
const EngineInfo kOverModels = {"ranges", "over three models", &MakeOverModels};

}  // namespace

// The oracle takes ranges of an engine without versions to see the batch's writes before them.
std::vector<EngineVariant> EnginesUnderTest() {
  return {{.name = "ranges_of_btree",
           .info = &kOverTrees,
           .options = {.index = {.btree = {.multi_version = false}}}},
          {.name = "ranges_of_model", .info = &kOverModels}};
}

}  // namespace skep
