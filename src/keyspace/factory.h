// factory.h: the one place that knows engines by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/engine_info.h"

namespace skep {

std::span<const EngineInfo> AllEngines();

// Null if there is no such engine.
const EngineInfo* FindEngine(std::string_view name);

// The engines' options among those of a store.
IndexOptions IndexOptionsOf(const Options& options);

// The engine that a keyspace is to have, with its options.
struct EngineSpec {
  const EngineInfo* info;
  IndexOptions options;
};

// The engine's name, behind which options may follow that the engine reads:
// "hashleaf,key=8,value=16,leaf=262144". Those that do not are `defaults`.
//   kInvalidArgument  no such engine, no such option of it, or not with this value
Result<EngineSpec> ParseEngine(std::string_view text, const IndexOptions& defaults);

// Engine::format() of such a keyspace.
std::string FormatOf(const EngineSpec& spec);
// Whether there can be one.
//   as EngineInfo::check
Status CheckEngine(const EngineSpec& spec);

}  // namespace skep
